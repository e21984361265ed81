//! Connections to the engine that stay open between two questions.
//!
//! The client that asks everything else opens one for each question, which costs more than the question that every check
//! asks. Nobody looks after a connection while nobody asks: that it has ended is found with the next question, which goes
//! through a new one then. So only what may be asked twice is asked here.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

use bollard::errors::Error as Failure;
use futures_util::future::{Either, select};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1::{Connection, SendRequest, handshake};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

/// More than ask at once most of the time; others come and go.
const MOST: usize = 8;

/// Those that nobody uses just now.
#[derive(Default)]
pub(super) struct Kept(Mutex<Vec<Open>>);

struct Open {
    sender: SendRequest<Empty<Bytes>>,
    connection: Pin<Box<Connection<TokioIo<UnixStream>, Empty<Bytes>>>>,
}

impl Kept {
    /// Asks for what is at a path. Who leaves before it is answered closes the connection.
    pub(super) async fn get(&self, socket: &Path, path: &str) -> Result<Bytes, Failure> {
        let known = self.lock().pop();
        let answered = match known {
            Some(open) => open.get(path).await.ok(),
            None => None,
        };
        let (open, status, body) = match answered {
            Some(answered) => answered,
            // It may have ended long ago, with an engine that is no more.
            None => Open::new(socket).await?.get(path).await?,
        };
        if let Some(open) = open {
            let mut kept = self.lock();
            if kept.len() < MOST {
                kept.push(open);
            }
        }
        if status.is_success() { Ok(body) } else { Err(refusal(status, &body)) }
    }

    /// The engine may be another one now.
    pub(super) fn close(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    async fn new(socket: &Path) -> Result<Self, Failure> {
        let stream = UnixStream::connect(socket).await?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        Ok(Self { sender, connection: Box::pin(connection) })
    }

    /// The connection, if it can be used again, and the answer.
    async fn get(self, path: &str) -> Result<(Option<Self>, StatusCode, Bytes), Failure> {
        let Self { mut sender, connection } = self;
        // An engine goes by the path; a host has to be there.
        let request = Request::get(path).header("host", "docker").body(Empty::new());
        let request = request.map_err(io::Error::other)?;
        let answer = Box::pin(async {
            sender.ready().await?;
            let response = sender.send_request(request).await?;
            let status = response.status();
            Ok::<_, hyper::Error>((status, response.into_body().collect().await?.to_bytes()))
        });
        let (connection, (status, body)) = match select(answer, connection).await {
            Either::Left((answer, connection)) => (Some(connection), answer?),
            // What came before its end may be all of the answer.
            Either::Right((_, answer)) => (None, answer.await?),
        };
        Ok((connection.map(|connection| Self { sender, connection }), status, body))
    }
}

/// What the engine says in the place of an answer.
fn refusal(status: StatusCode, body: &[u8]) -> Failure {
    #[derive(serde::Deserialize)]
    struct Said {
        message: String,
    }
    let said = serde_json::from_slice::<Said>(body).map(|said| said.message);
    let message = said.unwrap_or_else(|_| String::from_utf8_lossy(body).into_owned());
    Failure::DockerResponseServerError { status_code: status.as_u16(), message }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::UnixListener;

    use super::*;

    /// Takes one question, and answers it with these words.
    async fn answer(stream: &mut UnixStream, words: &str) {
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            asked.push(stream.read_u8().await.expect("a question"));
        }
        stream.write_all(words.as_bytes()).await.expect("it listens");
    }

    fn with(body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    }

    #[tokio::test]
    async fn questions_share_a_connection_until_the_engine_ends_it() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let engine = async {
            let (mut first, _) = listener.accept().await.unwrap();
            answer(&mut first, &with("one")).await;
            answer(&mut first, &with("two")).await;
            drop(first);
            let (mut second, _) = listener.accept().await.unwrap();
            answer(&mut second, &with("three")).await;
            let gone = "HTTP/1.1 404 Not Found\r\ncontent-length: 18\r\n\r\n{\"message\":\"none\"}";
            answer(&mut second, gone).await;
            // An answer that ends with its connection is whole.
            answer(&mut second, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nfour").await;
            drop(second);
            let (mut third, _) = listener.accept().await.unwrap();
            answer(&mut third, &with("five")).await;
        };
        let kept = Kept::default();
        let asking = async {
            let mut said = Vec::new();
            for path in ["/1", "/2", "/3", "/none", "/4", "/5"] {
                said.push(match kept.get(&socket, path).await {
                    Ok(body) => String::from_utf8(body.to_vec()).unwrap(),
                    Err(failure) => failure.to_string(),
                });
            }
            said
        };
        let ((), said) = tokio::join!(engine, asking);
        let none = "Docker responded with status code 404: none";
        assert_eq!(said, ["one", "two", "three", none, "four", "five"]);
    }

    #[tokio::test]
    async fn who_leaves_takes_the_connection_along() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let kept = Kept::default();
        let mut asking = Box::pin(kept.get(&socket, "/slow"));
        let mut stream = tokio::select! {
            accepted = listener.accept() => accepted.unwrap().0,
            _ = &mut asking => panic!("nobody has answered"),
        };
        let mut asked = Vec::new();
        tokio::select! {
            () = async { while !asked.ends_with(b"\r\n\r\n") { asked.push(stream.read_u8().await.unwrap()); } } => {}
            _ = &mut asking => panic!("nobody has answered"),
        }
        drop(asking);
        assert_eq!(stream.read(&mut [0]).await.unwrap(), 0, "it has hung up");
        assert!(kept.lock().is_empty());
    }
}
