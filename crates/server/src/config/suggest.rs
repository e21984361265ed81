//! What somebody may have meant by a word that is none.

/// Longer words are no slip of the keyboard, and comparing them costs time.
const LONGEST: usize = 64;

/// The word that is most like what was written, if any is like it.
pub fn nearest<'a>(written: &str, words: impl IntoIterator<Item = &'a str>) -> Option<String> {
    if written.len() > LONGEST {
        return None;
    }
    let lower = written.to_lowercase();
    // A third of the letters: more is another word. One is always forgiven, "gup" for "gpu".
    let limit = (written.chars().count() / 3).max(1);
    words
        .into_iter()
        .map(|word| (strsim::damerau_levenshtein(&lower, &word.to_lowercase()), word))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, word)| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let words = ["idle_timeout", "max_runtime", "window", "gpu"];
        for (written, meant) in [
            ("idle_timout", Some("idle_timeout")),
            ("IdleTimeout", Some("idle_timeout")),
            ("max-runtime", Some("max_runtime")),
            ("gup", Some("gpu")),
            ("colour", None),
            ("", None),
            (&"window".repeat(20), None),
        ] {
            assert_eq!(nearest(written, words).as_deref(), meant, "{written}");
        }
    }
}
