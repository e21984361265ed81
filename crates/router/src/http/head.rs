//! Whom a request is for, and what of its head is for the next hop only.

use std::net::{IpAddr, SocketAddr};

use drowse_core::host::HostName;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request;
use hyper::{Method, Uri, Version};

/// With this a client shows that it may wake a worker. It is for Drowse alone and goes no further.
pub(super) const WAKE_TOKEN: HeaderName = HeaderName::from_static("drowse-wake-token");

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");

/// A request that is for nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotForUs {
    #[error("the request names more than one host")]
    Host,
    #[error("the host is no name of a host")]
    Name,
    #[error("the request names no host, as HTTP/1.1 demands")]
    NoHost,
    #[error("this is no proxy for the rest of the world: CONNECT is not for it")]
    Connect,
}

/// Whom it is for. The name in the request line counts before the header, as HTTP has it.
pub(super) fn host(head: &request::Parts) -> Result<Option<HostName>, NotForUs> {
    if head.method == Method::CONNECT {
        return Err(NotForUs::Connect);
    }
    let mut named = head.headers.get_all(header::HOST).iter();
    let (first, second) = (named.next(), named.next());
    if second.is_some() {
        // Whoever comes after us might believe the other one.
        return Err(NotForUs::Host);
    }
    let text = match (head.uri.authority(), first) {
        (Some(authority), _) if authority.as_str().contains('@') => return Err(NotForUs::Name),
        (Some(authority), _) => authority.as_str(),
        (None, Some(host)) => host.to_str().map_err(|_| NotForUs::Name)?,
        // As old clients have it; where all hosts lead to one worker, that is enough.
        (None, None) if head.version < Version::HTTP_11 => return Ok(None),
        (None, None) => return Err(NotForUs::NoHost),
    };
    HostName::of_authority(text).map(Some).map_err(|_| NotForUs::Name)
}

/// What it wants to speak from now on, if not HTTP. Another version of HTTP is nothing to offer the worker: nobody would
/// read what is asked then.
pub(super) fn upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let asks = listed(headers).any(|name| name.eq_ignore_ascii_case("upgrade"));
    let offered = headers.get(header::UPGRADE).filter(|_| asks)?.to_str().ok()?;
    let is_http = |protocol: &str| {
        let name = protocol.split('/').next().unwrap_or_default();
        name.eq_ignore_ascii_case("h2c") || name.eq_ignore_ascii_case("http")
    };
    let others: Vec<&str> =
        offered.split(',').map(str::trim).filter(|word| !word.is_empty() && !is_http(word)).collect();
    HeaderValue::try_from(others.join(", ")).ok().filter(|others| !others.is_empty())
}

fn listed(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',').map(str::trim))
}

/// Whether what is said after a body is heard.
fn takes_trailers(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::TE).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|word| word.trim().eq_ignore_ascii_case("trailers"))
}

/// Takes away what is for one hop only.
pub(super) fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = listed(headers).filter_map(|name| name.parse().ok()).collect();
    for name in named {
        // What tells how the body ends, or where the client is, is not for the client to take away.
        let is_kept = [header::TRANSFER_ENCODING, header::CONTENT_LENGTH, header::HOST].contains(&name)
            || name.as_str().starts_with("x-forwarded-");
        if !is_kept {
            headers.remove(name);
        }
    }
    for name in [
        header::CONNECTION,
        header::UPGRADE,
        header::TE,
        header::PROXY_AUTHENTICATE,
        header::PROXY_AUTHORIZATION,
        KEEP_ALIVE,
        PROXY_CONNECTION,
        HTTP2_SETTINGS,
    ] {
        headers.remove(name);
    }
}

/// What Drowse says of itself in an answer is for nobody else to say.
pub(super) fn drop_words_of_ours(headers: &mut HeaderMap) {
    let said: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with("drowse-")).cloned().collect();
    for name in said {
        headers.remove(name);
    }
}

/// Makes the head one for the worker. `is_trusted`: it comes from a proxy whose word is taken for what it says of its client.
pub(super) fn pass_on(
    head: &mut request::Parts,
    from: IpAddr,
    is_trusted: bool,
    upgrade: Option<HeaderValue>,
) {
    if let Some(authority) = head.uri.authority()
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        head.headers.insert(header::HOST, host);
    }
    let path = head.uri.path_and_query().cloned();
    head.uri = path.map_or_else(|| Uri::from_static("/"), Uri::from);
    let takes_trailers = takes_trailers(&head.headers);
    strip(&mut head.headers);
    // Answered here, when the body is asked for.
    head.headers.remove(header::EXPECT);
    head.headers.remove(WAKE_TOKEN);
    if let Some(protocol) = upgrade {
        head.headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        head.headers.insert(header::UPGRADE, protocol);
    } else if takes_trailers {
        head.headers.insert(header::CONNECTION, HeaderValue::from_static("te"));
        head.headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
    tell_of(&mut head.headers, from, is_trusted);
}

/// Whether workers ask for a client by this name.
fn tells_of_a_client(name: &str) -> bool {
    name.starts_with("x-forwarded-") || ["forwarded", "x-real-ip"].contains(&name)
}

/// Whether it would be taken for such a name: many workers do not tell an underscore from a hyphen.
fn looks_like_one(name: &str) -> bool {
    name.contains('_') && tells_of_a_client(&name.replace('_', "-"))
}

/// Says where the client is and what it asked for, for a worker that cannot see it.
fn tell_of(headers: &mut HeaderMap, from: IpAddr, is_trusted: bool) {
    // Whoever speaks for itself could say anything. And no proxy writes these names like that: it lets them pass.
    let is_hearsay = |name: &str| looks_like_one(name) || (!is_trusted && tells_of_a_client(name));
    let said: Vec<HeaderName> = headers.keys().filter(|name| is_hearsay(name.as_str())).cloned().collect();
    for name in said {
        headers.remove(name);
    }
    let before = headers.get_all(&FORWARDED_FOR).iter().filter_map(|value| value.to_str().ok());
    let all: Vec<String> = before.map(str::to_owned).chain([from.to_string()]).collect();
    if let Ok(value) = HeaderValue::from_str(&all.join(", ")) {
        headers.insert(FORWARDED_FOR, value);
    }
    // A proxy in front knows better: it has seen the client's own connection.
    if !headers.contains_key(&FORWARDED_PROTO) {
        headers.insert(FORWARDED_PROTO, HeaderValue::from_static("http"));
    }
    if !headers.contains_key(&FORWARDED_HOST)
        && let Some(host) = headers.get(header::HOST).cloned()
    {
        headers.insert(FORWARDED_HOST, host);
    }
}

/// Names the worker by where it was called, to one who asked for no host: what goes on is HTTP/1.1, which demands one.
pub(super) fn name_host(headers: &mut HeaderMap, called: SocketAddr) {
    if !headers.contains_key(header::HOST)
        && let Ok(host) = HeaderValue::from_str(&called.to_string())
    {
        headers.insert(header::HOST, host);
    }
}

/// Whether to ask the same twice is to ask it once.
pub(super) fn is_idempotent(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE)
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    fn head(uri: &str, headers: &[(&str, &str)]) -> request::Parts {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn the_host_is_read_in_all_its_forms() {
        let host = |uri: &str, headers: &[(&str, &str)]| {
            host(&head(uri, headers)).map(|host| host.map(|host| host.as_str().to_owned()))
        };
        let is = |name: &str| Ok(Some(name.to_owned()));
        assert_eq!(host("/", &[("host", "Web.Example.org:8080")]), is("web.example.org"));
        assert_eq!(host("http://one/x", &[("host", "two")]), is("one"), "the line counts");
        assert_eq!(host("/", &[]), Err(NotForUs::NoHost));
        let mut old = head("/", &[]);
        old.version = Version::HTTP_10;
        assert_eq!(super::host(&old), Ok(None));
        assert_eq!(host("/", &[("host", "a"), ("host", "b")]), Err(NotForUs::Host));
        assert_eq!(host("/", &[("host", "a/../b")]), Err(NotForUs::Name));
        assert_eq!(host("http://me@one/", &[]), Err(NotForUs::Name));
    }

    #[test]
    fn what_is_for_one_hop_goes_no_further() {
        let mut head = head(
            "http://web/a?b=c",
            &[
                ("connection", "keep-alive, x-mine"),
                ("x-mine", "1"),
                ("keep-alive", "timeout=5"),
                ("drowse-wake-token", "secret"),
                ("expect", "100-continue"),
                ("x-forwarded-for", "192.0.2.7"),
                ("accept", "*/*"),
            ],
        );
        pass_on(&mut head, [10, 0, 0, 1].into(), true, None);
        assert_eq!(head.uri, "/a?b=c");
        let mut names: Vec<&str> = head.headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept", "host", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"]);
        assert_eq!(head.headers["x-forwarded-for"], "192.0.2.7, 10.0.0.1");
        assert_eq!(head.headers["host"], "web");
    }

    #[test]
    fn a_client_cannot_take_away_how_its_body_ends() {
        let mut head = head(
            "/",
            &[
                ("host", "web"),
                ("connection", "content-length, host, x-forwarded-for"),
                ("content-length", "3"),
            ],
        );
        pass_on(&mut head, [10, 0, 0, 1].into(), false, None);
        assert_eq!(head.headers["content-length"], "3");
        assert_eq!(head.headers["host"], "web");
    }

    #[test]
    fn a_client_does_not_say_who_it_is_however_it_is_written() {
        let said = ["x-forwarded-for", "X_Forwarded_For", "x_real-ip", "forwarded", "x-forwarded-ssl"];
        let mut headers: Vec<(&str, &str)> = said.iter().map(|name| (*name, "192.0.2.7")).collect();
        headers.extend([("host", "web"), ("x-forwarder", "kept")]);
        let mut head = head("/", &headers);
        pass_on(&mut head, [10, 0, 0, 1].into(), false, None);
        assert!(head.headers.values().all(|value| value != "192.0.2.7"), "{:?}", head.headers);
        assert_eq!(head.headers["x-forwarded-for"], "10.0.0.1");
        assert_eq!(head.headers["x-forwarder"], "kept");
    }

    #[test]
    fn a_proxy_is_believed_and_what_it_let_pass_is_not() {
        let mut head = head("/", &[("host", "web"), ("x-real-ip", "10.0.0.9"), ("x_real_ip", "192.0.2.7")]);
        pass_on(&mut head, [10, 0, 0, 1].into(), true, None);
        assert_eq!(head.headers["x-real-ip"], "10.0.0.9");
        assert!(!head.headers.contains_key("x_real_ip"));
    }

    #[test]
    fn a_worker_does_not_speak_as_drowse() {
        let mut headers =
            head("/", &[("drowse-state", "asleep"), ("drowse-cold-start-ms", "1"), ("server", "x")]).headers;
        drop_words_of_ours(&mut headers);
        assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["server"]);
    }

    #[test]
    fn an_upgrade_is_asked_for_in_two_places() {
        let asks = |headers: &[(&str, &str)]| upgrade(&head("/", headers).headers);
        assert!(asks(&[("connection", "Keep-Alive, Upgrade"), ("upgrade", "websocket")]).is_some());
        assert!(asks(&[("upgrade", "websocket")]).is_none());
        assert!(asks(&[("connection", "upgrade")]).is_none());
        let left = asks(&[("connection", "upgrade"), ("upgrade", "H2C, websocket, http/2.0")]);
        assert_eq!(left.unwrap(), "websocket");
        for http in ["h2c", "H2C, ", "HTTP/2.0", ""] {
            assert!(
                asks(&[("connection", "upgrade"), ("upgrade", http)]).is_none(),
                "{http} would be read by nobody"
            );
        }
    }
}
