//! Copies both ways to completion, each direction on its own.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

use crate::door::{Door, Pass};

const BUFFER: usize = 16 << 10;

/// Copies until both sides have ended or the pass is cut.
pub(crate) async fn both_ways(pass: &Pass, mut client: TcpStream, mut worker: TcpStream) -> io::Result<()> {
    // Small answers are not held back for more: the worker and the client decide that for themselves.
    let _ = client.set_nodelay(true);
    let _ = worker.set_nodelay(true);
    let (from_client, to_client) = client.split();
    let (from_worker, to_worker) = worker.split();
    let door = pass.door();
    let up = one_way(pass, from_client, to_worker, |moved| Door::moved(door, moved, 0));
    let down = one_way(pass, from_worker, to_client, |moved| Door::moved(door, 0, moved));
    tokio::select! {
        both = async { tokio::try_join!(up, down) } => both.map(|_| ()),
        () = pass.cut() => Ok(()),
    }
}

async fn one_way(
    pass: &Pass,
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    moved: impl Fn(u64),
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        pass.flows().await;
        to.write_all(&buffer[..read]).await?;
        moved(read as u64);
    }
}
