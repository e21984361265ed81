//! The one place where the API and the page are started.

use std::net::SocketAddr;

use anyhow::Context as _;
use drowse_server::Fleet;
use drowse_server::tasks::Tasks;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::doors::in_use;
use super::folder::{Folder, hex, random};

/// The port of the API, taken before anything is touched.
pub(super) struct Api {
    listener: TcpListener,
    pub(super) address: SocketAddr,
}

/// Where clients on the same machine find the way in.
const ADDRESS: &str = "address";
const TOKEN: &str = "admin-token";

impl Api {
    pub(super) async fn bind(listen: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(listen)
            .await
            .map_err(|error| in_use(error, listen, "the API; choose another with --listen"))?;
        let address = listener.local_addr().context("the API has no address")?;
        Ok(Self { listener, address })
    }

    /// Serves until `stop` is true.
    pub(super) fn serve(
        self,
        fleet: &Fleet,
        folder: &Folder,
        tasks: &Tasks,
        mut stop: watch::Receiver<bool>,
    ) -> anyhow::Result<()> {
        let Api { listener, address } = self;
        let _token = admin_token(folder)?;
        let _fleet = fleet.clone();
        tasks.spawn(async move {
            // The routes of the API go here, with `fleet` and the admin token. Until then whoever comes is
            // sent away at once and not left waiting.
            loop {
                tokio::select! {
                    _ = stop.wait_for(|stop| *stop) => return,
                    accepted = listener.accept() => drop(accepted),
                }
            }
        });
        folder.write(ADDRESS, &format!("http://{address}\n"))
    }

    /// Nobody answers there any more.
    pub(super) fn withdraw(folder: &Folder) {
        folder.remove(ADDRESS);
    }
}

/// The token of whoever can read the data folder; made at the first start and kept.
fn admin_token(folder: &Folder) -> anyhow::Result<String> {
    let kept = folder.read(TOKEN).map(|text| text.trim().to_owned()).filter(|token| !token.is_empty());
    if let Some(token) = kept {
        return Ok(token);
    }
    let token = hex(&random::<32>()?);
    folder.write(TOKEN, &format!("{token}\n"))?;
    Ok(token)
}
