//! Who asks, and what they may do.
//!
//! A credential is 256 random bits, shown once and stored as its hash. It comes as `Authorization: Bearer` from
//! programs and as a cookie from browsers; a browser sends a cookie by itself, so with it a change counts only if
//! it comes from our own page.
//!
//! What must stay true: there is no cache. Every request asks the store, so that a token that was taken back
//! opens nothing from the next request on.

mod origin;
mod rate;
mod roles;
mod secret;
mod tokens;

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, COOKIE};
use drowse_core::id::WorkerId;
use drowse_core::lease::Credential;
use drowse_wire::v1::Role;

pub(crate) use origin::is_same_origin;
pub(crate) use rate::Rate;
pub use roles::Roles;
pub use secret::Chance;
pub(crate) use secret::Secret;

/// The cookie of a browser that has signed in.
pub(crate) const COOKIE_NAME: &str = "drowse_session";

/// Somebody whose credential opened the door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Principal {
    /// Of the token or the session; tells nothing about the secret.
    pub(crate) token_id: String,
    /// As the journal names them.
    pub(crate) name: String,
    /// What they may do.
    pub(crate) role: Role,
    /// The only worker that they may touch.
    pub(crate) worker: Option<WorkerId>,
}

impl Principal {
    /// In whose name leases are taken. The id and not the name: two tokens of one name do not share a ceiling.
    pub(crate) fn credential(&self) -> Credential {
        Credential::new(format!("token:{}", self.token_id))
    }
}

/// A credential as it came with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Presented {
    /// By the program itself.
    Bearer(Secret),
    /// By a browser, whether its user meant it or not.
    Cookie(Secret),
}

impl Presented {
    /// What a request carries. A header that cannot be read as one of ours is none; if both are there, the one
    /// that somebody sent on purpose counts.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        bearer(headers).map(Self::Bearer).or_else(|| cookie(headers).map(Self::Cookie))
    }

    pub(crate) const fn secret(&self) -> &Secret {
        match self {
            Presented::Bearer(secret) | Presented::Cookie(secret) => secret,
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<Secret> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, secret) = text.split_once(' ')?;
    // The scheme's name is not case-sensitive (RFC 9110).
    scheme.eq_ignore_ascii_case("bearer").then(|| Secret::presented(secret.trim()))
}

fn cookie(headers: &HeaderMap) -> Option<Secret> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .find_map(|pair| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == COOKIE_NAME).then(|| Secret::presented(value))
        })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_token_that_was_sent_on_purpose_counts_before_a_cookie() {
        let both = headers(&[("cookie", "a=b; drowse_session=c"), ("authorization", "bearer  t ")]);
        assert_eq!(Presented::of(&both), Some(Presented::Bearer(Secret::presented("t"))));
        let cookie = headers(&[("cookie", "drowse_sessions=x; drowse_session=c")]);
        assert_eq!(Presented::of(&cookie), Some(Presented::Cookie(Secret::presented("c"))));
        for other in [headers(&[]), headers(&[("authorization", "Basic eDp5")])] {
            assert_eq!(Presented::of(&other), None);
        }
    }
}
