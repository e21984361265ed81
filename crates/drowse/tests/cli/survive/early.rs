//! Nothing is paused early because Drowse was away, stood still, or had a wrong idea of the time.

use drowse_core::worker::Power;
use serde_json::Value;

use super::cluster::Cluster;
use super::law::at_rest;
use super::stand::{Engine, Stand};
use super::truth;
use super::wait::{seconds, until};

const IDLE_FIVE_SECONDS: &str = "policy.idle_timeout = \"5s\"\npolicy.stop_after = \"1h\"";

fn brake(stand: &Stand) -> Value {
    stand.api("GET", "/api/v1/brake", "").unwrap().1
}

/// Waits until the brake is on, for this cause.
#[track_caller]
fn is_braked(stand: &Stand, cause: &str) {
    until(&format!("the brake is on for {cause}"), || {
        let brake = brake(stand);
        if brake["is_engaged"] == true && brake["cause"] == cause { Ok(()) } else { Err(brake.to_string()) }
    });
}

fn release_brake(stand: &Stand) {
    let released = stand.api("POST", "/api/v1/brake/release", r#"{"message":"looked at it"}"#).unwrap();
    assert_eq!(released.0, 200, "{}", released.1);
}

#[test]
fn after_a_kill_idleness_is_counted_anew_and_a_lease_gets_its_time_again() {
    let stand = Stand::new(Engine::Sqlite);
    stand.worker(0, IDLE_FIVE_SECONDS);
    stand.worker(1, IDLE_FIVE_SECONDS);
    let up = stand.up();
    stand.wait_for(1, "running");
    stand.ask(0).unwrap();
    stand.lease(1, "4s");
    // One second before the first would sleep, and as long before the other's lease would be renewed.
    seconds(3.5);
    up.kill();
    // Now it would have ended, had Drowse lived. And longer than two checks: what is shorter is told by the counters of
    // the same run.
    seconds(6.0);
    let _up = stand.up();
    assert!(stand.is_leased(1), "it ended although nobody could renew it");
    // The moment at which the first was to sleep is past, and this is less than its timeout.
    seconds(3.0);
    for number in [0, 1] {
        assert_eq!(stand.count(number, "worker.sleep_intended"), 0, "{}", stand.story(number));
    }
    for number in [0, 1] {
        stand.wait_for(number, "paused");
        at_rest(&stand, number, "after a kill");
    }
}

#[test]
fn after_it_stood_still_drowse_puts_the_brake_on_before_anybody_sleeps() {
    let stand = Stand::new(Engine::Sqlite);
    stand.worker(0, IDLE_FIVE_SECONDS);
    stand.worker(1, IDLE_FIVE_SECONDS);
    let up = stand.up();
    stand.wait_for(1, "running");
    stand.ask(0).unwrap();
    stand.lease(1, "4s");
    up.signal("-STOP");
    // Longer than the timeout, than the lease, and than a loop may be late.
    seconds(12.0);
    up.signal("-CONT");
    is_braked(&stand, "loop_stalled");
    assert!(stand.is_leased(1), "it ended although nobody could renew it");
    seconds(6.0);
    for number in [0, 1] {
        assert_eq!(stand.count(number, "worker.sleep_intended"), 0, "{}", stand.story(number));
        assert_eq!(truth::power(stand.target(number)), Power::Running);
    }
    release_brake(&stand);
    for number in [0, 1] {
        stand.wait_for(number, "paused");
        at_rest(&stand, number, "after it stood still");
    }
}

/// Gives a database a clock that can be set. Functions are looked for in our schema first.
fn settable_clock(cluster: &Cluster, name: &str) {
    let mut client = cluster.connect(name);
    client
        .batch_execute(
            "CREATE TABLE skew (shift interval NOT NULL, wait double precision NOT NULL);
             INSERT INTO skew VALUES ('1 day', 0);
             CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql VOLATILE AS $$
             BEGIN
                 PERFORM pg_sleep((SELECT wait FROM skew));
                 RETURN pg_catalog.clock_timestamp() + (SELECT shift FROM skew);
             END $$;",
        )
        .unwrap();
    let set = format!("ALTER DATABASE {name} SET search_path = public, pg_catalog");
    client.batch_execute(&set).unwrap();
}

#[test]
fn the_databases_clock_counts_and_its_jumps_put_nobody_to_sleep() {
    let cluster = Cluster::start();
    let name = cluster.database();
    settable_clock(&cluster, &name);
    let stand = Stand::at(cluster.url(&name));
    stand.worker(0, "policy.idle_timeout = \"10m\"");
    let _up = stand.up();
    stand.wait_for(0, "running");
    let set = |what: &str| {
        // All in one: nobody sees half of it.
        cluster.connect(&name).batch_execute(&format!("UPDATE skew SET {what}")).unwrap();
    };
    let newest = || {
        let (_, journal) = stand.books(0).unwrap();
        journal.last().unwrap().event.at.as_micros() / 1_000_000
    };
    let days_ahead = |at: i64| {
        let now = std::fs::metadata("/proc/self").unwrap().modified().unwrap();
        let now = now.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        (at - i64::try_from(now).unwrap() + 3_600) / 86_400
    };
    assert_eq!(days_ahead(newest()), 1, "the journal is dated by the machine's clock");

    // An hour on: all ages are an hour too long.
    set("shift = '1 day 1 hour'");
    is_braked(&stand, "clock_jumped");
    seconds(3.0);
    assert_eq!(stand.status(0).unwrap(), "running");
    assert_eq!(stand.count(0, "worker.sleep_intended"), 0, "{}", stand.story(0));
    release_brake(&stand);

    // A database that takes so long to answer that nobody knows when it did.
    set("wait = 1.5");
    is_braked(&stand, "loop_stalled");
    set("wait = 0");
}
