//! How to end a connection so that the last words are heard.
//!
//! A socket that is closed with unread bytes in it is reset, and a reset throws away what the other side has not read yet:
//! so what it still says is read first, within limits.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long the last words may take, and the other side to hang up.
const WITHIN: Duration = Duration::from_secs(2);

/// How much the other side may still be saying. Whoever has more to send than this does not listen anyway.
const AT_MOST: usize = 256 << 10;

/// How long somebody with a large body to send may take to hear that nobody wants it.
const UPLOADS_FOR: Duration = Duration::from_secs(5);

/// And how much of it is read for that. Some programs say all of it before they listen.
const UPLOADS_AT_MOST: usize = 64 << 20;

/// Says something and hangs up.
pub(crate) async fn farewell(mut stream: TcpStream, words: &[u8]) {
    let _ = tokio::time::timeout(WITHIN, async {
        stream.write_all(words).await?;
        hang_up(&mut stream, AT_MOST).await
    })
    .await;
}

/// Hangs up on somebody who may be in the middle of an upload.
pub(crate) async fn hang_up_on_upload(mut stream: TcpStream) {
    let _ = tokio::time::timeout(UPLOADS_FOR, hang_up(&mut stream, UPLOADS_AT_MOST)).await;
}

async fn hang_up(stream: &mut TcpStream, at_most: usize) -> std::io::Result<()> {
    stream.shutdown().await?;
    let mut buffer = vec![0; 16 << 10];
    let mut left = at_most;
    while left > 0 {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            break;
        }
        left = left.saturating_sub(read);
    }
    Ok(())
}
