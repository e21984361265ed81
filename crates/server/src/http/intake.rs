//! The body of a request, read before anybody looks at it.
//!
//! All of it, also where nobody wants it and where the request is refused: a server that closes a connection with
//! bytes unread makes the system throw away the answer too, and the caller hears of a broken connection instead
//! of the problem.

use std::time::Duration;

use axum::body::{Body, Bytes};
use drowse_wire::problem::Code;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use super::Limits;
use super::failure::{Answered, Failure};

/// A body that is too large is thrown away up to this many times the limit, for the sake of the answer.
const PATIENCE: usize = 16;

/// Reads a body: not too much, and not too slowly.
pub(super) async fn read(body: Body, limits: &Limits) -> Answered<Bytes> {
    let mut body = body;
    let collected = async {
        let read = Limited::new(&mut body, limits.body_bytes).collect().await;
        let read = read.map(http_body_util::Collected::to_bytes);
        if read.as_ref().is_err_and(|error| error.is::<LengthLimitError>()) {
            drain(&mut body, limits.body_bytes * PATIENCE).await;
        }
        read
    };
    let read = within(limits.body_for, collected).await;
    let read = read.ok_or_else(|| Failure::bad_request("the body did not arrive in time").and_hang_up())?;
    read.map_err(|error| {
        let failure = if error.is::<LengthLimitError>() {
            Failure::new(Code::TooLarge, format!("expected at most {} bytes", limits.body_bytes))
        } else {
            Failure::bad_request("the body broke off")
        };
        failure.and_hang_up()
    })
}

/// Throws the body of a refused request away; false if there is still more of it.
pub(super) async fn discard(body: Body, limits: &Limits) -> bool {
    let mut body = body;
    within(limits.body_for, drain(&mut body, limits.body_bytes)).await.unwrap_or(false)
}

/// Reads to the end without keeping anything; false if that is further away than `most`.
async fn drain(body: &mut Body, most: usize) -> bool {
    let mut left = most;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return false };
        let length = frame.data_ref().map_or(0, Bytes::len);
        match left.checked_sub(length) {
            Some(less) => left = less,
            None => return false,
        }
    }
    true
}

async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(limit, work).await.ok()
}
