//! The database goes away and comes back: nothing is put to sleep meanwhile, nobody is kept waiting, and the
//! journal learns of what was done without it.

use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use drowse_core::worker::Power;

use super::cluster::Cluster;
use super::law::{all_is_well, at_rest};
use super::stand::Stand;
use super::truth;
use super::wait::{seconds, until, until_or};

const IDLE_ONE_SECOND: &str =
    "policy.idle_timeout = \"1s\"\npolicy.stop_after = \"1h\"\npolicy.flap_guard = false";
const IDLE_FOUR_SECONDS: &str = "policy.idle_timeout = \"4s\"\npolicy.stop_after = \"1h\"";
const BY_PEOPLE: &str = "policy.idle_timeout = \"1h\"\npolicy.wake_from = [\"idle_timeout\"]";

const AWAY: &str = "drowse: the database cannot be written to: ";
const BACK: &str = "drowse: the database can be written to again";

fn stand(cluster: &Cluster, workers: &[&str]) -> Stand {
    let stand = Stand::at(cluster.url(&cluster.database()));
    for (number, policy) in (0..).zip(workers) {
        stand.worker(number, policy);
    }
    stand
}

#[track_caller]
fn is_seen(stand: &Stand, number: u16, wanted: Power) {
    let look = || match truth::power(stand.target(number)) {
        power if power == wanted => Ok(()),
        other => Err(format!("{other:?}")),
    };
    until_or(&format!("the kernel says {wanted:?}"), look, || stand.story(number));
}

#[test]
fn a_fleet_on_postgres_sleeps_wakes_and_is_found_again_after_a_clean_end() {
    let cluster = Cluster::start();
    let stand = stand(&cluster, &[IDLE_ONE_SECOND]);
    let mut up = stand.up();
    stand.wait_for(0, "paused");
    all_is_well(&stand, 0, "woken by a connection");
    stand.wait_for(0, "paused");
    let before = truth::processes(stand.target(0))[0].0;
    assert_eq!(up.end(), Some(0), "{}", up.told());
    assert_eq!(truth::processes(stand.target(0)), [(before, false)], "thawed, and still there");

    let _up = stand.up();
    stand.wait_for(0, "paused");
    all_is_well(&stand, 0, "after a restart");
    assert_eq!(truth::processes(stand.target(0))[0].0, before, "it was started again instead of found");
}

#[test]
fn while_the_database_is_away_nothing_is_put_to_sleep_and_connections_still_wake() {
    let mut cluster = Cluster::start();
    let stand = stand(&cluster, &[IDLE_ONE_SECOND, IDLE_FOUR_SECONDS, BY_PEOPLE, IDLE_ONE_SECOND]);
    let mut up = stand.up();
    stand.wait_for(2, "running");
    assert!(matches!(stand.order(2, "pause"), Ok((202, _))));
    stand.wait_for(2, "paused");
    stand.wait_for(0, "paused");
    // Awake when it begins: one by use, one by a lease that ends meanwhile.
    stand.ask(1).unwrap();
    stand.ask(3).unwrap();
    stand.lease(3, "5s");
    let wakes = stand.count(0, "worker.resumed");
    cluster.down();
    let line = up.wait_for(AWAY);
    assert!(line.contains("nothing is put to sleep until it can"), "{line}");

    stand.ask(0).unwrap();
    is_seen(&stand, 0, Power::Running);
    // What a person paused is not woken by just anybody; who tries is told at once.
    assert!(stand.ask(2).is_err());
    is_seen(&stand, 2, Power::Paused);
    assert!(!stand.is_ready());
    assert!(matches!(stand.api("GET", "/healthz", ""), Ok((200, _))));
    // Longer than either of the timeouts.
    seconds(6.0);
    is_seen(&stand, 0, Power::Running);
    is_seen(&stand, 1, Power::Running);
    is_seen(&stand, 3, Power::Running);

    cluster.up();
    up.wait_for(BACK);
    assert!(stand.is_leased(3), "it ended although nobody could renew it: {}", stand.story(3));
    until("it is ready", || if stand.is_ready() { Ok(()) } else { Err("not ready".to_owned()) });
    for number in 0..4 {
        stand.wait_for(number, "paused");
        at_rest(&stand, number, "the database is back");
    }
    assert_eq!(stand.count(0, "worker.resumed"), wakes + 1, "{}", stand.story(0));
    all_is_well(&stand, 0, "afterwards");
}

#[test]
fn a_connection_that_began_without_the_database_holds_its_worker_when_it_is_back() {
    let mut cluster = Cluster::start();
    let stand = stand(&cluster, &[IDLE_ONE_SECOND]);
    let mut up = stand.up();
    stand.wait_for(0, "paused");
    cluster.down();
    up.wait_for(AWAY);
    let mut client = std::net::TcpStream::connect(stand.door(0)).unwrap();
    is_seen(&stand, 0, Power::Running);
    // Speaks slowly, for longer than a door is taken for alive that does not say so. The worker itself hangs up on
    // whoever says nothing for ten seconds.
    for part in ["GET / HTTP/1.1\r\n", "host: web\r\n", "connection: close\r\n\r\n"] {
        seconds(7.0);
        client.write_all(part.as_bytes()).unwrap();
    }
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("hello from w0"), "{answer:?}");

    // And another one, which stays. The first one's side is still open: it would count.
    drop(client);
    let client = std::net::TcpStream::connect(stand.door(0)).unwrap();
    cluster.up();
    up.wait_for(BACK);
    stand.wait_for(0, "running");
    let holds = stand.api("GET", "/api/v1/workers/w0/holds", "").unwrap().1;
    assert!(holds.to_string().contains("connection"), "{holds}");
    // Longer than the timeout.
    seconds(3.0);
    at_rest(&stand, 0, "somebody is connected");
    is_seen(&stand, 0, Power::Running);
    drop(client);
    stand.wait_for(0, "paused");
    at_rest(&stand, 0, "nobody is connected any more");
}

#[test]
fn what_was_frozen_and_could_not_be_written_down_is_not_left_frozen() {
    let mut cluster = Cluster::start();
    let stand = stand(&cluster, &[BY_PEOPLE]);
    let mut up = stand.up();
    stand.wait_for(0, "running");
    thread::scope(|scope| {
        // It may stand still before it has answered.
        let mut ordered = None;
        stand.stop_at(&up, "freeze:after-call", || ordered = Some(scope.spawn(|| stand.order(0, "pause"))));
        assert_eq!(truth::power(stand.target(0)), Power::Paused);
        cluster.down();
        up.signal("-CONT");
        up.wait_for(AWAY);
        is_seen(&stand, 0, Power::Running);
        let ordered = ordered.unwrap().join().unwrap();
        assert!(matches!(ordered, Ok((202, _))), "{ordered:?}");
    });
    cluster.up();
    // It is still wanted, and there is somebody to write it down.
    stand.wait_for(0, "paused");
    at_rest(&stand, 0, "the pause is done after all");
    assert_eq!(stand.count(0, "worker.sleep_intended"), 1, "{}", stand.story(0));
}

/// The worker is awake, and only the books do not know.
#[test]
fn a_wake_that_cannot_be_written_down_keeps_nobody_waiting() {
    let mut cluster = Cluster::start();
    let stand = stand(&cluster, &[IDLE_ONE_SECOND]);
    for point in
        ["connections:before-commit", "connections:after-commit", "thaw:before-call", "thaw:after-call"]
    {
        let mut up = stand.up();
        stand.wait_for(0, "paused");
        let wakes = stand.count(0, "worker.resumed");
        thread::scope(|scope| {
            let mut client = None;
            stand.stop_at(&up, point, || client = Some(scope.spawn(|| stand.ask(0))));
            cluster.down();
            up.signal("-CONT");
            let answer = client.unwrap().join().unwrap();
            assert!(answer.is_ok(), "{point}: {answer:?}");
        });
        cluster.up();
        // Until then the books say what they said before: paused.
        until(&format!("{point}: the wake is written down"), || match stand.count(0, "worker.resumed") {
            woken if woken == wakes + 1 => Ok(()),
            other => Err(format!("{other} after {wakes}: {}", stand.story(0))),
        });
        stand.wait_for(0, "paused");
        at_rest(&stand, 0, point);
        assert_eq!(up.end(), Some(0), "{}", up.told());
    }
}

#[test]
fn an_end_without_the_database_leaves_nothing_frozen() {
    let mut cluster = Cluster::start();
    let stand = stand(&cluster, &[IDLE_ONE_SECOND]);
    let mut up = stand.up();
    stand.wait_for(0, "paused");
    cluster.down();
    up.wait_for(AWAY);
    assert_eq!(up.end(), Some(0), "{}", up.told());
    assert!(up.told().contains("the database does not answer at the end"), "{}", up.told());
    assert_eq!(truth::power(stand.target(0)), Power::Running);
}

/// Whoever connects is answered, whatever the database does just then.
#[test]
fn a_database_that_restarts_again_and_again_keeps_nobody_waiting_and_loses_nothing() {
    let mut cluster = Cluster::start();
    let stand = stand(&cluster, &[IDLE_ONE_SECOND, IDLE_ONE_SECOND, IDLE_ONE_SECOND]);
    let mut up = stand.up();
    for number in 0..3 {
        stand.wait_for(number, "running");
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 0..3 {
            let (stand, is_over) = (&stand, &is_over);
            scope.spawn(move || {
                // Each at its own pace, so that restarts meet them on every stage of a pause and a wake.
                let pause = 0.9 + 0.25 * f64::from(number);
                while !is_over.load(Ordering::Acquire) {
                    if let Err(error) = stand.ask(number) {
                        is_over.store(true, Ordering::Release);
                        panic!("w{number} did not answer: {error}: {}", stand.story(number));
                    }
                    seconds(pause);
                }
            });
        }
        for _ in 0..6 {
            seconds(1.3);
            cluster.down();
            up.wait_for(AWAY);
            cluster.up();
            up.wait_for(BACK);
        }
        is_over.store(true, Ordering::Release);
    });
    for number in 0..3 {
        stand.wait_for(number, "paused");
        at_rest(&stand, number, "after all restarts");
        all_is_well(&stand, number, "after all restarts");
    }
}
