//! Tokens, links, spans, liveness, replicas: what is simply kept.

use drowse_core::liveness::{Boots, Power, Reliability, Seen};
use drowse_store::{Heard, LoginLink, Replica, SpanLane, Store, StoreError, Token};
use serde_json::json;

use super::support::*;

#[test]
fn a_token_is_found_by_its_hash_until_it_is_swept() {
    on_both(|database| {
        let store = database.open();
        let token = Token {
            id: "t1".to_owned(),
            name: "agent of web".to_owned(),
            role: "agent".to_owned(),
            worker: Some(id("web")),
            created_at: at(0),
            expires_at: Some(at(100)),
            revoked_at: None,
        };
        store.tx(|t| t.add_token(&token, &[1, 0, 255])).unwrap();
        assert_eq!(store.read(|t| t.token_by_hash(&[1, 0, 255])).unwrap(), Some(token.clone()));
        assert_eq!(store.read(|t| t.token_by_hash(&[1, 0])).unwrap(), None);
        assert!(token.is_live(at(99)) && !token.is_live(at(100)));
        let revoke = || store.tx(|t| t.revoke_token("t1", at(50))).unwrap();
        assert!(revoke() && !revoke());
        let found = database.open().read(|t| t.tokens()).unwrap();
        assert_eq!((found[0].revoked_at, found[0].is_live(at(51))), (Some(at(50)), false));
        assert_eq!(store.tx(|t| t.sweep_tokens(at(50))).unwrap(), 0);
        assert_eq!(store.tx(|t| t.sweep_tokens(at(51))).unwrap(), 1);
    });
}

/// Both take the link at once; the first is slow to commit. Fails when the link is read and then deleted.
#[test]
fn a_login_link_works_once() {
    on_both(|database| {
        let store = database.open();
        let link = |secret: u8, expires: i64| LoginLink {
            hash: vec![secret],
            name: "ann".to_owned(),
            role: "admin".to_owned(),
            expires_at: at(expires),
        };
        store.tx(|t| t.add_login_link(&link(1, 100))).unwrap();
        store.tx(|t| t.add_login_link(&link(2, 10))).unwrap();
        let first = store.clone();
        let first = Party::start(move |steps| {
            first.tx(|t| {
                let link = t.take_login_link(&[1], at(50))?;
                steps.stop("taken");
                Ok::<_, StoreError>(link)
            })
        });
        first.reaches("taken");
        let second = store.clone();
        let second = Party::start(move |_| second.tx(|t| t.take_login_link(&[1], at(50))).unwrap());
        until_blocked(database, &store, 1);
        assert_eq!(first.finish().unwrap(), Some(link(1, 100)));
        assert_eq!(second.end(), None);
        assert_eq!(store.tx(|t| t.take_login_link(&[2], at(10))).unwrap(), None, "it has expired");
    });
}

fn activity(store: &Store, from: i64, until: i64) {
    store.tx(|t| t.record_span(&id("web"), SpanLane::Activity, at(from), at(until), "cpu")).unwrap();
}

fn lane(store: &Store, lane: SpanLane) -> Vec<(i64, Option<i64>, String)> {
    let secs = |at: drowse_core::Timestamp| at.as_micros() / 1_000_000 - 1_000_000;
    let spans = store.read(|t| t.lane_spans(lane, at(0), at(10_000))).unwrap();
    spans.into_iter().map(|span| (secs(span.from), span.until.map(secs), span.value)).collect()
}

#[test]
fn activity_over_short_gaps_is_one_span() {
    on_both(|database| {
        let store = database.open();
        let cpu = |from, until| (from, Some(until), "cpu".to_owned());
        activity(&store, 100, 105);
        activity(&store, 135, 140);
        assert_eq!(lane(&store, SpanLane::Activity), [cpu(100, 140)], "a gap of 30 s");
        activity(&store, 171, 175);
        assert_eq!(lane(&store, SpanLane::Activity), [cpu(100, 140), cpu(171, 175)], "a gap of 31 s");
        // One that comes late closes the gap, and one inside changes nothing.
        activity(&store, 150, 151);
        activity(&store, 110, 111);
        assert_eq!(lane(&store, SpanLane::Activity), [cpu(100, 175)]);
        store.tx(|t| t.record_span(&id("web"), SpanLane::Activity, at(100), at(101), "tcp")).unwrap();
        let overlapping = store.read(|t| t.spans(&id("web"), at(174), at(200))).unwrap();
        assert_eq!(overlapping.len(), 1);
    });
}

#[test]
fn power_is_a_chain_of_spans_of_which_the_last_is_open() {
    on_both(|database| {
        let store = with_worker(database, "web");
        let switch = |value: Option<&str>, secs| {
            let value = value.map(str::to_owned);
            store
                .tx(move |t| {
                    t.lock_worker(&id("web"))?.unwrap().switch_span(
                        SpanLane::Power,
                        value.as_deref(),
                        at(secs),
                    )
                })
                .unwrap();
        };
        switch(Some("running"), 10);
        switch(Some("running"), 20);
        switch(Some("frozen"), 30);
        let expected = [(10, Some(30), "running".to_owned()), (30, None, "frozen".to_owned())];
        assert_eq!(lane(&store, SpanLane::Power), expected);
        switch(None, 50);
        assert_eq!(lane(&store, SpanLane::Power)[1].1, Some(50));
        let prune = || store.tx(|t| t.prune_spans(at(40), 1)).unwrap();
        assert_eq!((prune(), prune()), (1, 0));
    });
}

#[test]
fn whether_a_worker_is_heard_is_kept_with_its_deadline() {
    on_both(|database| {
        let store = with_worker(database, "web");
        assert_eq!(store.read(|t| t.heard(&id("web"))).unwrap(), None);
        let heard = Heard {
            seen: Seen {
                enrolled_at: Some(at(1)),
                last_heartbeat_at: Some(at(2)),
                boots: Boots::default(),
                power: Power::Awake { resumed_at: None },
                said_goodbye_at: None,
                was: None,
                observer_resumed_at: None,
                brake_engaged: false,
            },
            reliability: Reliability::default(),
        };
        store.tx(|t| t.lock_worker(&id("web"))?.unwrap().save_heard(&heard, Some(at(92)))).unwrap();
        assert_eq!(database.open().read(|t| t.heard(&id("web"))).unwrap(), Some(heard));
        assert_eq!(store.read(|t| t.maybe_stale(at(91), 9)).unwrap(), []);
        assert_eq!(store.read(|t| t.maybe_stale(at(92), 9)).unwrap(), [id("web")]);
    });
}

#[test]
fn replicas_come_and_go() {
    on_both(|database| {
        let store = database.open();
        let replica = |name: &str, alive_until| Replica {
            id: name.to_owned(),
            doc: json!({"sites": ["here"]}),
            started_at: at(0),
            alive_until: at(alive_until),
            flushed_through: None,
        };
        for name in ["b", "a"] {
            store.tx(|t| t.announce_replica(&replica(name, 10))).unwrap();
        }
        store.tx(|t| t.announce_replica(&replica("a", 50))).unwrap();
        assert_eq!(store.read(|t| t.replicas()).unwrap(), [replica("a", 50), replica("b", 10)]);
        assert_eq!(store.tx(|t| t.forget_dead_replicas(at(20))).unwrap(), 1);
        store.tx(|t| t.forget_replica("a")).unwrap();
        assert_eq!(store.read(|t| t.replicas()).unwrap(), []);
    });
}
