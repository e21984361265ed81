//! Whether a browser's request comes from our own page.
//!
//! `SameSite=Strict` already keeps other sites from sending the cookie. This is the second lock: "site" is wider
//! than "origin" (another port of the same host is the same site), and a worker behind our router may be just
//! that neighbour.

use axum::http::HeaderMap;
use axum::http::header::{HOST, ORIGIN};

/// What a browser says about where a request comes from; scripts cannot set it.
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// Whether a request that changes something was made by our own page. A browser that says nothing at all about
/// it is not believed.
pub(crate) fn is_same_origin(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    match (text(SEC_FETCH_SITE), text(ORIGIN.as_str())) {
        (Some(site), None) => site == "same-origin",
        (site, Some(origin)) => {
            let is_ours = origin.split_once("://").map(|(_, host)| host) == text(HOST.as_str());
            is_ours && site.is_none_or(|site| site == "same-origin")
        }
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn only_our_own_page_may_change_something() {
        let cases: [(&[(&str, &str)], bool); 8] = [
            (&[], false),
            (&[("origin", "http://drowse:7070")], true),
            (&[("origin", "http://drowse:7071")], false),
            (&[("origin", "null")], false),
            (&[("sec-fetch-site", "same-origin")], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "none")], false),
            (&[("sec-fetch-site", "cross-site"), ("origin", "http://drowse:7070")], false),
        ];
        for (lines, expected) in cases {
            let mut headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static("drowse:7070"))]);
            for (name, value) in lines {
                headers.insert(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
            }
            assert_eq!(is_same_origin(&headers), expected, "{lines:?}");
        }
    }
}
