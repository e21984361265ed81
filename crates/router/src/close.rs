//! How to end a connection so that the last words are heard.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long the last words may take, and the other side to hang up.
const WITHIN: Duration = Duration::from_secs(2);

/// How much the other side may still be saying. Whoever has more to send than this does not listen anyway.
const AT_MOST: usize = 256 << 10;

/// Says something and hangs up.
///
/// A socket that is closed with unread bytes in it is reset, and a reset throws away what the other side has not
/// read yet: so what it still says is read first, within limits.
pub(crate) async fn farewell(mut stream: TcpStream, words: &[u8]) {
    let _ = tokio::time::timeout(WITHIN, async {
        stream.write_all(words).await?;
        stream.shutdown().await?;
        let mut buffer = [0; 4 << 10];
        let mut left = AT_MOST;
        while left > 0 {
            let read = stream.read(&mut buffer).await?;
            if read == 0 {
                break;
            }
            left = left.saturating_sub(read);
        }
        std::io::Result::Ok(())
    })
    .await;
}
