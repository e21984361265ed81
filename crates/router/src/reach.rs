//! From a route to a connection with its worker.

use std::net::IpAddr;

use tokio::net::TcpStream;

use crate::door::Pass;
use crate::route::{Route, Standing};
use crate::router::Router;
use crate::turned::Turned;

/// Counts somebody, wakes the worker if it sleeps and they may, and connects.
pub(crate) async fn reach(router: &Router, route: &Route, from: IpAddr) -> Result<(Pass, TcpStream), Turned> {
    let may_wake = match route.rules.standing(from) {
        Standing::MayWake => true,
        Standing::MayCome | Standing::Robot => false,
    };
    let door = router.door(&route.worker);
    let reached = tokio::time::timeout(route.rules.wait_for, async {
        loop {
            let pass = door.enter(from, route.target, may_wake).await?;
            if let Ok(worker) = TcpStream::connect(route.target).await {
                return Ok((pass, worker));
            }
            door.doubt(route.target);
        }
    });
    reached.await.unwrap_or(Err(Turned::Late { waited_for: route.rules.wait_for }))
}
