//! Where a container is: an address is a run's, and nobody else is taken for it.

use std::net::{IpAddr, SocketAddr};

use drowse_core::id::WorkerId;
use drowse_core::worker::Power;
use drowse_drivers::docker::{Container, Spec as Docker};
use drowse_drivers::{Error, Hint, Located, Spec};

use crate::engine::IMAGE;
use crate::laws::{done, stop_within};
use crate::rig::{LONG, Rig};

async fn adopt(rig: &Rig, name: &str) -> WorkerId {
    let worker = WorkerId::new(name).expect("a good name");
    let spec = Spec::Docker(Docker { container: Container::Named(name.to_owned()) });
    rig.driver().adopt(&worker, &spec, LONG).await.expect("it can be adopted");
    worker
}

async fn run(rig: &Rig, name: &str, more: &[&str]) -> WorkerId {
    let run = ["run", "--detach", "--init", "--name", name];
    rig.engine().docker(&[&run, more, &[IMAGE, "sleep", "100000"]].concat());
    adopt(rig, name).await
}

async fn locate(rig: &Rig, worker: &WorkerId, port: u16) -> Result<Located, Error> {
    rig.driver().locate(worker, port, LONG).await
}

async fn at(rig: &Rig, worker: &WorkerId) -> Located {
    locate(rig, worker, 80).await.expect("it has an address")
}

fn address(rig: &Rig, name: &str) -> IpAddr {
    let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
    let said = rig.engine().docker(&["inspect", "--format", format, name]);
    said.parse().unwrap_or_else(|_| panic!("no address: {said}"))
}

pub(crate) async fn an_address_is_a_runs_and_stands_as_long_as_that(rig: &mut Rig) {
    let network = ["--network", rig.engine().network()];
    let (first, second) = (run(rig, "first", &network).await, run(rig, "second", &network).await);
    let before = (at(rig, &first).await, at(rig, &second).await);
    assert_eq!(
        (before.0.address.ip(), before.1.address.ip()),
        (address(rig, "first"), address(rig, "second"))
    );
    assert!(before.0.run.stands() && before.1.run.stands());
    // A freeze keeps the run, and so its address.
    done(rig.driver().freeze(&first, LONG).await);
    assert!(before.0.run.stands());
    assert_eq!(at(rig, &first).await.address, before.0.address);
    done(rig.driver().thaw(&first, LONG).await);
    for worker in [&first, &second] {
        done(rig.driver().stop(worker, stop_within(1, LONG), LONG).await);
    }
    assert!(!before.0.run.stands() && !before.1.run.stands());
    assert!(matches!(locate(rig, &first, 80).await, Err(Error::Refused { .. })));
    // The other way round: each gets the address that the other one had.
    for worker in [&second, &first] {
        done(rig.driver().start(worker, LONG).await);
    }
    let after = (at(rig, &first).await, at(rig, &second).await);
    assert_eq!((after.0.address, after.1.address), (before.1.address, before.0.address));
    assert_eq!(after.0.address.ip(), address(rig, "first"));
    assert!(after.0.run.stands() && after.1.run.stands());
    assert!(!before.0.run.stands() && !before.1.run.stands(), "what is over stays over");
}

/// Somebody else starts and stops it, and nobody has looked since.
pub(crate) async fn the_way_leads_to_the_present_run_whatever_was_last_seen(rig: &mut Rig) {
    let network = ["--network", rig.engine().network()];
    let worker = run(rig, "web", &network).await;
    let before = at(rig, &worker).await;
    rig.engine().docker(&["stop", "--time", "0", "web"]);
    run(rig, "thief", &network).await;
    rig.engine().docker(&["start", "web"]);
    let after = at(rig, &worker).await;
    assert_eq!(address(rig, "thief"), before.address.ip());
    assert_eq!(after.address.ip(), address(rig, "web"));
    assert_ne!((after.address, &after.boot), (before.address, &before.boot));
    assert!(after.run.stands() && !before.run.stands());
}

/// Its first process goes on, and its address is another's.
pub(crate) async fn a_container_that_is_moved_to_another_network_is_asked_for_again(rig: &mut Rig) {
    let network = rig.engine().network();
    let worker = run(rig, "web", &["--network", network]).await;
    let before = at(rig, &worker).await;
    rig.engine().docker(&["network", "disconnect", network, "web"]);
    rig.eventually("it is told", async || before.run.stands(), |stands| !stands).await;
    run(rig, "thief", &["--network", network]).await;
    rig.engine().docker(&["network", "connect", network, "web"]);
    let after = rig.eventually("it is there", async || locate(rig, &worker, 80).await, Result::is_ok).await;
    let after = after.expect("just now");
    assert_ne!(after.address, before.address);
    assert_eq!(after.address.ip(), address(rig, "web"));
}

pub(crate) async fn a_port_is_where_the_engine_has_really_bound_it(rig: &mut Rig) {
    let network = rig.engine().network();
    // Another one each time; the engine chooses.
    let chosen = run(rig, "chosen", &["--network", network, "--publish", "127.0.0.1::80"]).await;
    let said = rig.engine().docker(&["port", "chosen", "80/tcp"]);
    assert_eq!(at(rig, &chosen).await.address, said.parse::<SocketAddr>().expect("an address"));
    // Asked for and never bound: it does not run.
    let create = ["create", "--name", "idle", "--network", network, "--publish", "127.0.0.1:1:80"];
    rig.engine().docker(&[&create[..], &[IMAGE, "sleep", "1"]].concat());
    let idle = adopt(rig, "idle").await;
    assert!(matches!(locate(rig, &idle, 80).await, Err(Error::Refused { .. })));
    // Asked for and never bound: there is no network to bind it in.
    let none = run(rig, "none", &["--network", "none", "--publish", "127.0.0.1:2:80"]).await;
    let refused = locate(rig, &none, 80).await;
    assert!(
        matches!(&refused, Err(Error::Refused { message }) if message.contains("port 80")),
        "{refused:?}"
    );
}

/// Whoever asks for the way may be the first to notice.
pub(crate) async fn asking_the_way_keeps_no_end_from_anybody(rig: &mut Rig) {
    let network = rig.engine().network();
    let worker = run(rig, "web", &["--network", network]).await;
    rig.observe(&worker).await;
    rig.engine().docker(&["kill", "web"]);
    assert!(locate(rig, &worker, 80).await.is_err());
    let is_end = |hint: &Hint| matches!(hint, Hint::Exited { code: Some(137), .. });
    rig.eventually("its end is told", async || rig.hint().await, is_end).await;
    assert_eq!(rig.observe(&worker).await.power, Power::Stopped);
}
