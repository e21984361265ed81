use std::collections::BTreeSet;
use std::path::Path;

use serde_json::json;

use super::*;

/// Kind, what is written, and what is said.
#[expect(clippy::too_many_lines, reason = "a table is read as a whole")]
fn samples() -> Vec<(&'static str, Value, &'static str)> {
    let until = "2026-03-01T09:30:00.358033Z";
    let exemption = json!({ "subject": { "owner": "bob" }, "from": ["idle_timeout", "max_runtime"],
        "reason": "grant deadline", "approved_by": "carol", "expires_on": { "at": until } });
    let warning =
        json!({ "kind": "idle", "deadline": until, "happens_at": until, "percent": 80.0, "is_fyi": false });
    vec![
        (
            "brake.engaged",
            json!({ "engaged": { "cause": "fleet_gone", "gone": 12, "total": 20 } }),
            "automatic actions are held back: 12 of 20 workers went silent at once",
        ),
        (
            "brake.released",
            json!({ "released": { "how": "person", "by": "alice", "why": "it was the switch" } }),
            "automatic actions go ahead again: alice said so: it was the switch",
        ),
        (
            "discovery.problem",
            json!({ "container": "web", "problems": ["drowse.port: expected a port, found \"http\"", "b"] }),
            "container web: drowse.port: expected a port, found \"http\"; b",
        ),
        (
            "drowse.ended",
            json!({ "thawed": ["a", "b"], "kept_frozen": [], "late": ["c"] }),
            "Drowse ended: 2 thawed, 0 left frozen, 1 not back in time",
        ),
        (
            "exemption.expiring",
            json!({ "exemption": exemption }),
            "ends soon: owner bob from idle_timeout and max_runtime until 2026-03-01T09:30:00Z, approved by carol: \
             grant deadline",
        ),
        (
            "exemption.granted",
            json!({ "id": 3, "by": "alice", "exemption": exemption }),
            "number 3 by alice: owner bob from idle_timeout and max_runtime until 2026-03-01T09:30:00Z, approved by \
             carol: grant deadline",
        ),
        ("exemption.removed", json!({ "id": 3, "by": "alice" }), "number 3 was ended by alice"),
        (
            "policy.changed",
            json!({ "level": "group", "name": "student", "key": "idle_timeout", "value": "30m", "by": "alice",
                "message": "exams" }),
            "group student: idle_timeout set to 30m by alice: exams",
        ),
        (
            "policy.changed",
            json!({ "level": "worker", "name": "web", "key": "sleep", "value": null, "by": "label", "message": "" }),
            "worker web: sleep no longer set by label",
        ),
        (
            "policy.reloaded",
            json!({ "by": "SIGHUP" }),
            "the configuration was read again, asked for by SIGHUP",
        ),
        ("session.opened", json!({ "id": "ses_1", "by": "admin" }), "admin signed in to the page"),
        (
            "token.created",
            json!({ "id": "tok_1", "name": "ci", "role": "viewer", "by": "admin" }),
            "tok_1 for ci with the role viewer, made by admin",
        ),
        ("token.revoked", json!({ "id": "tok_1", "by": "admin" }), "tok_1 counts no more, revoked by admin"),
        ("worker.changed", json!({ "by": "admin" }), "what it is was changed by admin"),
        (
            "worker.exempt",
            json!({ "from": "idle_timeout", "idle_since": until }),
            "spared by an exemption from idle_timeout: idle since 2026-03-01T09:30:00Z",
        ),
        (
            "worker.exempt",
            json!({ "from": "max_runtime", "over_at": until }),
            "spared by an exemption from max_runtime, which was over at 2026-03-01T09:30:00Z",
        ),
        (
            "worker.hook_failed",
            json!({ "hook": "after_resume", "error": "exit code 7: no" }),
            "after_resume failed, and it runs all the same: exit code 7: no",
        ),
        ("worker.judged", json!({ "summary": "it is idle" }), "judged: it is idle"),
        ("worker.keep_alive_ended", json!({ "file": "/w/.k" }), "/w/.k keeps it awake no longer"),
        (
            "worker.kept_alive",
            json!({ "file": "/w/.k", "until": until }),
            "kept awake by the file /w/.k until 2026-03-01T09:30:00Z",
        ),
        (
            "worker.lease_ceiling_near",
            json!({ "credential": "tok_1" }),
            "tok_1 will soon have held it for as long as lease_ceiling allows",
        ),
        (
            "worker.lease_ended",
            json!({ "holder": "build", "by": "expiry", "at": until }),
            "the lease of build ended: nobody renewed it",
        ),
        (
            "worker.lease_taken",
            json!({ "holder": "build", "reason": "nightly", "until": until }),
            "kept awake by a lease of build until 2026-03-01T09:30:00Z: nightly",
        ),
        ("worker.readable", json!({}), "everything that it is judged by can be read again"),
        (
            "worker.registered",
            json!({ "by": "alice", "driver": "docker" }),
            "on the books by alice, driver docker",
        ),
        ("worker.removed", json!({ "by": "alice" }), "off the books by alice"),
        (
            "worker.resume_asked",
            json!({ "by": "alice", "message": "demo" }),
            "a resume was asked for by alice: demo",
        ),
        ("worker.snooze_ended", json!({ "by": "alice" }), "the snooze of alice was ended"),
        (
            "worker.snoozed",
            json!({ "by": "bob", "message": "demo", "until": until }),
            "kept awake by bob until 2026-03-01T09:30:00Z: demo",
        ),
        (
            "worker.unknown_alert",
            json!({ "why": ["network cannot be read: it is the machine's"] }),
            "nobody can say for a long time whether it is in use: network cannot be read: it is the machine's",
        ),
        (
            "worker.unknown_alert",
            json!({ "why": [] }),
            "nobody can say for a long time whether it is in use: what its policy requires cannot be read",
        ),
        (
            "worker.unreadable",
            json!({ "causes": {}, "message": "cpu cannot be read: a\nport 1 cannot be found: b" }),
            "cpu cannot be read: a; port 1 cannot be found: b",
        ),
        ("worker.warned", warning, "it will be put to sleep at 2026-03-01T09:30:00Z, because it is idle"),
        (
            "worker.warned",
            json!({ "kind": "max_runtime", "deadline": until, "happens_at": until, "percent": 90.0, "is_fyi": true }),
            "for information only, because it is exempt: it would be stopped at 2026-03-01T09:30:00Z, because it has \
             run for as long as max_runtime allows",
        ),
        (
            "worker.warning_delivered",
            json!({ "terminals": 2 }),
            "the warning is in its file and on 2 terminals",
        ),
        (
            "worker.warning_undelivered",
            json!({ "terminals": 0, "error": "No space left on device" }),
            "the warning is not in its file: No space left on device; it is on no terminal",
        ),
        (
            "worker.would_pause",
            json!({ "reason": "idle_timeout" }),
            "would have been put to sleep (idle_timeout), but auto_pause is false",
        ),
    ]
}

#[test]
fn each_kind_says_what_happened() {
    for (kind, doc, expected) in samples() {
        assert_eq!(sentence(kind, &doc), expected, "{kind}");
    }
    let said: BTreeSet<&str> = samples().iter().map(|(kind, ..)| *kind).collect();
    let known: BTreeSet<&str> = SENTENCES.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(said, known);
}

/// The first letters of kinds of events. What the configuration calls by such a name is not among them.
const BEGINNINGS: [&str; 9] = [
    "\"brake.",
    "\"discovery.",
    "\"drowse.ended",
    "\"exemption.",
    "\"policy.",
    "\"session.",
    "\"token.",
    "\"worker.",
    "\"fleet.",
];

#[test]
fn every_kind_that_is_written_has_a_sentence() {
    let mut written = BTreeSet::new();
    kinds_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut written);
    assert!(written.len() > 25, "{written:?}");
    // What the rules note is said there.
    let from_rules = ["worker.paused"];
    let unsaid: Vec<&String> = written
        .iter()
        .filter(|kind| {
            SENTENCES.iter().all(|(known, _)| known != kind) && !from_rules.contains(&kind.as_str())
        })
        .collect();
    assert!(unsaid.is_empty(), "without a sentence: {unsaid:?}");
}

fn kinds_in(folder: &Path, written: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path.file_name().is_none_or(|name| name != "config") {
                kinds_in(&path, written);
            }
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for beginning in BEGINNINGS {
            for (at, _) in text.match_indices(beginning) {
                let rest = &text[at + 1..];
                let end = rest.find(|c: char| !(c.is_ascii_lowercase() || "._".contains(c))).unwrap_or(0);
                if rest[end..].starts_with('"') && !rest[..end].ends_with('.') {
                    written.insert(rest[..end].to_owned());
                }
            }
        }
    }
}

#[test]
fn half_of_an_entry_is_said_as_far_as_it_goes() {
    assert_eq!(sentence("worker.warned", &json!({ "by": "x", "message": "y" })), "warned by x: y");
    assert_eq!(sentence("brake.engaged", &Value::Null), "engaged");
    assert_eq!(sentence("some.thing_new", &json!({ "reason": "because" })), "thing new: because");
}
