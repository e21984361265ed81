//! A port that leads by TLS server name, without ending the TLS: the certificate and the key stay with the
//! worker, and what is said is between it and the client.

mod hello;

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::close::farewell;
use crate::names::Names;
use crate::port::Port;
use crate::router::{Comer, Router};
use crate::turned::Turned;
use hello::{Hello, Wanted};

/// How long a client may take to say whom it wants. It speaks first and has nothing to think about.
const SAYS_WITHIN: Duration = Duration::from_secs(10);

const BUFFER: usize = 4 << 10;

/// Why a client is sent away, in the words of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alert {
    /// Nobody here has that name.
    UnrecognizedName = 112,
    /// There is a worker, and it does not get up for this.
    AccessDenied = 49,
    /// There is a worker, and it did not come.
    InternalError = 80,
}

impl Alert {
    /// A fatal alert in a record that every version understands.
    const fn bytes(self) -> [u8; 7] {
        [21, 3, 1, 0, 2, 2, self as u8]
    }
}

/// There is no room for another.
pub(crate) const FULL: [u8; 7] = Alert::InternalError.bytes();

impl From<&Turned> for Alert {
    fn from(why: &Turned) -> Self {
        match why {
            Turned::NotAllowed { .. } | Turned::MayNotWake(_) | Turned::PutToSleep | Turned::Dormant => {
                Self::AccessDenied
            }
            Turned::NoSuchWorker => Self::UnrecognizedName,
            Turned::DidNotComeUp { .. }
            | Turned::Late { .. }
            | Turned::QueueFull
            | Turned::HostFull
            | Turned::Ending => Self::InternalError,
        }
    }
}

/// Leads a client to the worker that it names.
pub(crate) async fn serve(router: &Router, names: &Names, mut comer: Comer, port: &Port) {
    let listened = tokio::select! {
        listened = tokio::time::timeout(SAYS_WITHIN, listen(&mut comer.client)) => listened,
        () = port.until_cut() => return,
    };
    // Whoever is not done by then, and whoever speaks something else, is told nothing: nobody listens.
    let Ok(Some((wanted, bytes))) = listened else { return };
    let name = match &wanted {
        Wanted::Host(name) => Some(name),
        Wanted::Nobody => None,
    };
    let Some(route) = names.find(name) else {
        farewell(comer.client, &Alert::UnrecognizedName.bytes()).await;
        return;
    };
    if let Err((client, why)) = router.pass_on(comer, bytes, route).await {
        farewell(client, &Alert::from(&why).bytes()).await;
    }
}

/// Whom the client wants, and what it said so with.
async fn listen(client: &mut TcpStream) -> Option<(Wanted, Vec<u8>)> {
    let mut hello = Hello::default();
    let mut buffer = [0; BUFFER];
    loop {
        let read = client.read(&mut buffer).await.ok().filter(|read| *read > 0)?;
        if let Some(wanted) = hello.feed(&buffer[..read]).ok()? {
            return Some((wanted, hello.into_bytes()));
        }
    }
}
