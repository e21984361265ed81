//! The page that a person sees instead of a worker. Whoever wants another one brings a template.

use std::fmt;

use super::progress;

const BUILT_IN: &str = include_str!("page.html");

/// What may stand in a template, and has to be there.
const FOLLOW: &str = "{{follow}}";
const WORDS: [&str; 4] = ["{{worker}}", "{{title}}", "{{message}}", FOLLOW];

/// A template.
#[derive(Clone, PartialEq, Eq)]
pub struct Page(String);

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Page({} bytes)", self.0.len())
    }
}

impl Default for Page {
    fn default() -> Self {
        Self(BUILT_IN.to_owned())
    }
}

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPage {
    /// It would show something that nobody fills in.
    #[error(
        "it has {{{{{name}}}}}, which nothing stands for; there are {{{{worker}}}}, {{{{title}}}}, {{{{message}}}} and {{{{follow}}}}"
    )]
    Unknown {
        /// What it has.
        name: String,
    },
    /// The page would never go on.
    #[error("it lacks {{{{follow}}}}, without which it would not go on when the worker is there")]
    NoFollow,
}

impl Page {
    /// A template of somebody's own.
    pub fn new(text: &str) -> Result<Self, BadPage> {
        let mut rest = text;
        while let Some(at) = rest.find("{{") {
            rest = &rest[at..];
            let end = rest.find("}}").map_or(rest.len(), |end| end + 2);
            let word = &rest[..end];
            if !WORDS.contains(&word) {
                let name = word.trim_matches(['{', '}']).chars().take(40).collect();
                return Err(BadPage::Unknown { name });
            }
            rest = &rest[end..];
        }
        if text.contains(FOLLOW) { Ok(Self(text.to_owned())) } else { Err(BadPage::NoFollow) }
    }

    /// In one go from left to right: what is filled in is not looked at again.
    pub(super) fn render(&self, shown: &Shown<'_>) -> String {
        let mut page = String::with_capacity(self.0.len() + 512);
        let mut rest = self.0.as_str();
        while let Some(at) = rest.find("{{") {
            page.push_str(&rest[..at]);
            rest = &rest[at..];
            let end = rest.find("}}").map_or(rest.len(), |end| end + 2);
            match &rest[..end] {
                "{{worker}}" => escape(&mut page, shown.worker),
                "{{title}}" => escape(&mut page, shown.title),
                "{{message}}" => escape(&mut page, shown.message),
                FOLLOW if shown.is_waiting => page.push_str(&follow()),
                _ => {}
            }
            rest = &rest[end..];
        }
        page.push_str(rest);
        page
    }
}

/// What a page shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown<'a> {
    pub(super) worker: &'a str,
    pub(super) title: &'a str,
    pub(super) message: &'a str,
    /// It goes on by itself.
    pub(super) is_waiting: bool,
}

fn follow() -> String {
    include_str!("follow.html").replace("{{events}}", progress::PATH)
}

fn escape(page: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => page.push_str("&amp;"),
            '<' => page.push_str("&lt;"),
            '>' => page.push_str("&gt;"),
            '"' => page.push_str("&quot;"),
            '\'' => page.push_str("&#39;"),
            c => page.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(message: &str, is_waiting: bool) -> Shown<'_> {
        Shown { worker: "web", title: "Waking up", message, is_waiting }
    }

    #[test]
    fn the_built_in_page_is_a_template_like_any_other() {
        assert_eq!(Page::new(BUILT_IN), Ok(Page::default()));
        let page = Page::default().render(&shown("soon", true));
        assert!(page.contains("web") && page.contains("soon") && page.contains(progress::PATH), "{page}");
        assert!(!page.contains("{{"), "{page}");
        assert!(!Page::default().render(&shown("no", false)).contains(progress::PATH));
    }

    #[test]
    fn what_is_filled_in_stays_text() {
        let page = Page::new("{{message}}{{follow}}").unwrap();
        let rendered = page.render(&shown("<script>{{worker}}</script>", false));
        assert_eq!(rendered, "&lt;script&gt;{{worker}}&lt;/script&gt;");
    }

    #[test]
    fn a_template_that_cannot_work_is_named() {
        assert_eq!(Page::new("hello"), Err(BadPage::NoFollow));
        let unknown = Page::new("{{wroker}}{{follow}}").unwrap_err();
        assert!(unknown.to_string().starts_with("it has {{wroker}}, which nothing stands for"), "{unknown}");
        assert!(Page::new("{{follow}} {{").is_err());
    }
}
