//! `backup`: a copy of the database as the answer.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use drowse_store::{Store, StoreError};
use drowse_wire::problem::Code;
use drowse_wire::v1::BACKUP_TYPE;
use futures_util::stream;

use super::ApiState;
use super::failure::{Answered, Failure};

/// How much of the copy is read at once.
const CHUNK: usize = 64 * 1_024;

/// Copies the database while everything goes on (`SQLite`).
#[utoipa::path(post, path = "/api/v1/backup", tag = "fleet",
    responses((status = 200, description = "The copy itself.", body = Vec<u8>, content_type = "application/vnd.sqlite3")))]
pub(super) async fn backup(State(state): State<ApiState>) -> Answered<Response> {
    let name = format!("backup-{}.db", state.0.chance.name::<8>());
    let path = state.0.scratch.join(name);
    let shared = &state.fleet().0;
    let copied = shared.db.run("backup", move |store| copy(store, &path)).await;
    let (file, length) = copied.map_err(|error| {
        if let StoreError::Unsupported(how) = error {
            Failure::new(Code::BackupElsewhere, how)
        } else {
            error.into()
        }
    })?;
    let tasks = shared.tasks.clone();
    let chunks = stream::try_unfold((file, tasks), |(file, tasks)| async move {
        let (read, file) = tasks.block(move || chunk(file)).await?;
        Ok::<_, io::Error>((!read.is_empty()).then_some((read, (file, tasks))))
    });
    let headers = [
        (CONTENT_TYPE, BACKUP_TYPE.to_owned()),
        (CONTENT_LENGTH, length.to_string()),
        (CONTENT_DISPOSITION, "attachment; filename=\"drowse.db\"".to_owned()),
    ];
    Ok((headers, Body::from_stream(chunks)).into_response())
}

/// Makes the copy and takes its name away at once: whoever stops reading leaves nothing behind.
fn copy(store: &Store, path: &Path) -> Result<(File, u64), StoreError> {
    store.backup(path)?;
    let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
    let _ = std::fs::remove_file(path);
    opened.map(|(length, file)| (file, length)).map_err(|error| StoreError::Unavailable(error.into()))
}

fn chunk(mut file: File) -> io::Result<(Vec<u8>, File)> {
    let mut buffer = vec![0; CHUNK];
    let read = file.read(&mut buffer)?;
    buffer.truncate(read);
    Ok((buffer, file))
}
