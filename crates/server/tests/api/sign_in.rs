//! Browsers.

use drowse_wire::v1::Role;
use serde_json::Value;

use crate::rig::{Answer, Rig};

fn cookie(answer: &Answer) -> String {
    answer.header("set-cookie").split(';').next().unwrap().to_owned()
}

#[test]
fn a_link_signs_in_once() {
    let rig = Rig::new();
    let path = rig.runtime.block_on(rig.state.login_path("alice", Role::Operator)).unwrap();
    let looked = rig.send("HEAD", &path, &[], &[]);
    assert_eq!((looked.status, looked.header("set-cookie")), (405, ""), "a look uses nothing up");
    let first = rig.send("GET", &path, &[], &[]);
    assert_eq!(first.status, 200);
    let attributes = first.header("set-cookie").to_owned();
    for wanted in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(attributes.contains(wanted), "{attributes}");
    }
    assert!(first.text.contains("url=/"), "{}", first.text);
    assert_eq!(first.header("referrer-policy"), "no-referrer");
    let second = rig.send("GET", &path, &[], &[]);
    assert_eq!((second.status, second.header("set-cookie")), (404, ""));

    let cookie = cookie(&first);
    assert_eq!(rig.send("GET", "/", &[("cookie", &cookie)], &[]).status, 200);
    rig.send("GET", "/api/v1/tokens", &[("cookie", &cookie)], &[]).is_problem(403, "forbidden");
    let without = rig.send("GET", "/", &[], &[]);
    assert_eq!(without.status, 401);
    assert!(without.text.contains("drowse up"), "it says how to sign in");
}

#[test]
fn with_a_cookie_only_our_own_page_changes_something() {
    let rig = Rig::new();
    rig.worker("web");
    let path = rig.runtime.block_on(rig.state.login_path("alice", Role::Admin)).unwrap();
    let cookie = cookie(&rig.send("GET", &path, &[], &[]));
    let before = rig.newest();
    let url = rig.url();
    let pause = |headers: &[(&str, &str)]| {
        let mut all = vec![("cookie", cookie.as_str())];
        all.extend(headers);
        rig.send("POST", "/api/v1/workers/web/pause", &all, &[])
    };
    for foreign in [
        &[][..],
        &[("origin", "http://127.0.0.1:1")],
        &[("origin", "null")],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "cross-site"), ("origin", &url)],
    ] {
        pause(foreign).is_problem(403, "forbidden");
    }
    assert_eq!(rig.newest(), before);
    pause(&[("origin", &url), ("sec-fetch-site", "same-origin")]).is(202);
    rig.reaches("web", "paused");

    // The session is a token like any other, and taken back like one.
    let tokens = rig.get("/api/v1/tokens")["tokens"].take();
    let session = tokens.as_array().unwrap().iter().find(|token| token["name"] == "alice").unwrap();
    let id = session["id"].as_str().unwrap();
    rig.admin("DELETE", &format!("/api/v1/tokens/{id}"), &Value::Null).is(200);
    assert_eq!(rig.send("GET", "/", &[("cookie", &cookie)], &[]).status, 401);
}

#[test]
fn a_person_gets_a_new_link_with_their_own_role() {
    let rig = Rig::new();
    let viewer = rig.token(Role::Viewer, None);
    let link = rig.ask(&viewer, "POST", "/api/v1/login-links", &Value::Null).is(201);
    let cookie = cookie(&rig.send("GET", link["path"].as_str().unwrap(), &[], &[]));
    assert_eq!(rig.send("GET", "/", &[("cookie", &cookie)], &[]).status, 200);
    rig.send("GET", "/api/v1/tokens", &[("cookie", &cookie)], &[]).is_problem(403, "forbidden");
    assert_eq!(rig.client().login_link().unwrap().split("/login/").count(), 2);
}

#[test]
fn a_page_wakes_a_worker_and_a_look_at_it_does_not() {
    let rig = Rig::new();
    rig.worker("web");
    let path = rig.runtime.block_on(rig.state.login_path("vera", Role::Viewer)).unwrap();
    let cookie = cookie(&rig.send("GET", &path, &[], &[]));
    let url = rig.url();
    let headers = [("cookie", cookie.as_str()), ("origin", url.as_str()), ("sec-fetch-site", "same-origin")];
    let look = || rig.send("GET", "/wake/web", &headers, &[]);
    let before = rig.newest();
    assert_eq!(look().status, 200);
    assert_eq!(rig.newest(), before, "a look changes nothing");
    rig.send("GET", "/wake/nobody", &headers, &[]).is_problem(404, "not_found");
    assert_eq!(rig.send("GET", "/wake/web", &[], &[]).status, 401);
    // From a page of somebody else's it does nothing.
    rig.send("POST", "/wake/web", &headers[..1], &[]).is_problem(403, "forbidden");
    assert_eq!(rig.newest(), before);
    let woken = rig.send("POST", "/wake/web", &headers, &[]);
    assert_eq!((woken.status, woken.header("location")), (303, "/wake/web"), "{}", woken.text);
}
