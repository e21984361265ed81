//! The one place where the API and the page are started.

use std::net::SocketAddr;

use anyhow::{Context as _, bail};
use drowse_server::Chance;
use drowse_server::Fleet;
use drowse_server::http::{self, AllDoors, ApiParts, ApiState, Limits};
use drowse_server::tasks::Tasks;
use drowse_wire::v1::{CreateToken, Role};
use rustix::fd::{AsFd as _, OwnedFd};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::doors::in_use;
use super::folder::Folder;
use super::inherit::Inherited;

/// The port of the API, taken before anything is touched.
pub(super) struct Api {
    listener: TcpListener,
    pub(super) address: SocketAddr,
}

/// Where clients on the same machine find the way in.
const ADDRESS: &str = "address";
const TOKEN: &str = "admin-token";

/// Who holds that token, in the journal.
const ADMIN: &str = "admin";

/// Who made it.
const BY: &str = "drowse up";

impl Api {
    pub(super) async fn bind(
        listen: SocketAddr,
        is_plain_allowed: bool,
        inherited: &mut Inherited,
    ) -> anyhow::Result<Self> {
        Self::check(listen, is_plain_allowed)?;
        let listener = match inherited.take(listen) {
            Some(ours) => ours.set_nonblocking(true).and_then(|()| TcpListener::from_std(ours)),
            None => TcpListener::bind(listen).await,
        };
        let listener =
            listener.map_err(|error| in_use(error, listen, "the API; choose another with --listen"))?;
        let address = listener.local_addr().context("the API has no address")?;
        Ok(Self { listener, address })
    }

    /// Whether it may be opened there.
    pub(super) fn check(listen: SocketAddr, is_plain_allowed: bool) -> anyhow::Result<()> {
        if !listen.ip().is_loopback() && !is_plain_allowed {
            bail!(
                "{listen} is reachable from other machines and speaks plain HTTP, which anybody on the way can \
                 read; listen on 127.0.0.1, or insist with --plain-http"
            );
        }
        Ok(())
    }

    /// The port itself, for whoever takes it over.
    pub(super) fn socket(&self) -> anyhow::Result<OwnedFd> {
        self.listener.as_fd().try_clone_to_owned().context("the API's port cannot be kept")
    }

    /// Serves until `stop` is true; the path of a link that signs somebody in.
    pub(super) async fn serve(
        self,
        fleet: &Fleet,
        doors: AllDoors,
        folder: &Folder,
        tasks: &Tasks,
        mut stop: watch::Receiver<bool>,
    ) -> anyhow::Result<(JoinHandle<()>, String)> {
        let Api { listener, address } = self;
        let state = ApiState::new(ApiParts {
            fleet: fleet.clone(),
            chance: Chance::system(),
            scratch: folder.path().to_owned(),
            doors,
            limits: Limits::default(),
        });
        keep_admin_token(&state, folder).await?;
        let login = state.login_path(ADMIN, Role::Admin).await.context("cannot make a login link")?;
        let serving = tasks.spawn(http::serve(listener, state, async move {
            let _ = stop.wait_for(|stop| *stop).await;
        }));
        folder.write(ADDRESS, &format!("http://{address}\n"))?;
        Ok((serving, login))
    }

    /// Nobody answers there any more.
    pub(super) fn withdraw(folder: &Folder) {
        folder.remove(ADDRESS);
    }
}

/// The token of whoever can read the data folder: made at the first start, and again when it opens nothing any
/// more, because it was revoked or the database is another one.
async fn keep_admin_token(state: &ApiState, folder: &Folder) -> anyhow::Result<()> {
    let failed = "cannot make the admin token";
    if let Some(kept) = folder.read(TOKEN)
        && state.role_of(kept.trim()).await.context(failed)? == Some(Role::Admin)
    {
        return Ok(());
    }
    let new = CreateToken { name: ADMIN.to_owned(), role: Role::Admin, worker_id: None, expires_after: None };
    let secret = state.create_token(new, BY).await.context(failed)?;
    folder.write(TOKEN, &format!("{secret}\n"))
}
