//! `workers`: list, get, patch, delete.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use drowse_core::id::WorkerId;
use drowse_core::signal::DriverKind;
use drowse_core::status::StatusKind;
use drowse_core::worker::Worker as CoreWorker;
use drowse_store::{Listing, View};
use drowse_wire::problem::Code;
use drowse_wire::v1::{LONGEST_PAGE, Patch as Field, PatchWorker, Worker, WorkerPage, WorkerQuery};

use super::ApiState;
use super::extract::{Body, Id, Query};
use super::failure::{Answered, Failure};
use super::show::{Shown, show};
use crate::auth::Principal;
use crate::fleet::{ControlError, Fleet, Patch};

/// Lists workers, by id.
#[utoipa::path(get, path = "/api/v1/workers", tag = "workers", params(WorkerQuery),
    responses((status = 200, description = "A page of them.", body = WorkerPage)))]
pub(super) async fn list(
    State(state): State<ApiState>,
    Query(query): Query<WorkerQuery>,
) -> Answered<Json<WorkerPage>> {
    let filter = Filter::of(&query)?;
    let limit = page_length(query.limit)?;
    Ok(Json(page(state.fleet(), filter, limit).await?))
}

/// How long a page may be.
pub(super) fn page_length(asked: Option<u32>) -> Answered<usize> {
    match asked {
        None => Ok(LONGEST_PAGE as usize),
        Some(limit @ 1..=LONGEST_PAGE) => Ok(limit as usize),
        Some(_) => Err(Failure::bad_request(format!("limit: expected 1 to {LONGEST_PAGE}"))),
    }
}

/// Which workers are wanted.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    after: Option<WorkerId>,
    status: Option<StatusKind>,
    driver: Option<DriverKind>,
    kind: Option<String>,
    region: Option<String>,
    group: Option<String>,
    owner: Option<String>,
}

impl Filter {
    pub(super) fn of(query: &WorkerQuery) -> Answered<Self> {
        let after = query.after.as_deref().map(WorkerId::new).transpose();
        let statuses = StatusKind::ALL.map(|kind| (kind.code(), kind));
        let status = word("status", query.status.as_deref(), &statuses)?;
        let drivers = DriverKind::ALL.map(|kind| (kind.code(), kind));
        Ok(Self {
            after: after.map_err(|error| Failure::bad_request(format!("after: {error}")))?,
            status,
            driver: word("driver", query.driver.as_deref(), &drivers)?,
            kind: query.kind.clone(),
            region: query.region.clone(),
            group: query.group.clone(),
            owner: query.owner.clone(),
        })
    }

    fn takes(&self, worker: &CoreWorker) -> bool {
        let is = |wanted: &Option<String>, found: &Option<String>| wanted.is_none() || wanted == found;
        let selectors = &worker.selectors;
        self.driver.is_none_or(|driver| driver == worker.driver)
            && is(&self.kind, &selectors.kind)
            && is(&self.region, &selectors.region)
            && is(&self.group, &selectors.group)
            && is(&self.owner, &selectors.owner)
    }
}

/// One of these words.
fn word<T: Copy>(field: &str, text: Option<&str>, all: &[(&str, T)]) -> Answered<Option<T>> {
    let Some(text) = text else { return Ok(None) };
    let found = all.iter().find(|(code, _)| *code == text).map(|(_, meant)| *meant);
    let unknown = || {
        let codes: Vec<&str> = all.iter().map(|(code, _)| *code).collect();
        Failure::bad_request(format!("{field}: expected one of {}, found {text:?}", codes.join(", ")))
    };
    found.ok_or_else(unknown).map(Some)
}

/// A page of workers. Those that the filter leaves out cost a row each and are not judged.
pub(super) async fn page(fleet: &Fleet, filter: Filter, limit: usize) -> Result<WorkerPage, ControlError> {
    let shared = Arc::clone(&fleet.0);
    let read = move |view: &View<'_>| {
        let at = shared.clock.now();
        let mut listing =
            Listing { after: filter.after.clone(), limit: LONGEST_PAGE as usize, status: filter.status };
        let (mut workers, mut next) = (Vec::new(), None);
        'pages: loop {
            let rows = view.workers(&listing)?;
            let is_last = rows.len() < listing.limit;
            listing.after = rows.last().map(|record| record.id().clone());
            for record in rows.into_iter().filter(|record| filter.takes(record.without_terms())) {
                if workers.len() == limit {
                    next = workers.last().map(|worker: &Worker| worker.id.clone());
                    break 'pages;
                }
                workers.push(Shown::of(view, &shared, record, at)?.worker());
            }
            if is_last {
                break;
            }
        }
        Ok::<_, ControlError>(WorkerPage { at, workers, next })
    };
    fleet.0.db.read(read).await
}

/// Shows a worker.
#[utoipa::path(get, path = "/api/v1/workers/{id}", tag = "workers",
    responses((status = 200, description = "The worker.", body = Worker)))]
pub(super) async fn get(State(state): State<ApiState>, id: Id) -> Answered<Json<Worker>> {
    Ok(Json(show(state.fleet(), &id).await?.worker()))
}

/// Changes a worker's attributes.
#[utoipa::path(patch, path = "/api/v1/workers/{id}", tag = "workers", request_body = PatchWorker,
    responses((status = 200, description = "The worker as it is now.", body = Worker)))]
pub(super) async fn patch(
    State(state): State<ApiState>,
    who: Principal,
    id: Id,
    Body(change): Body<PatchWorker>,
) -> Answered<Json<Worker>> {
    let field = |field: Field<String>| match field {
        Field::Keep => None,
        Field::Clear => Some(None),
        Field::Set(value) => Some(Some(value)),
    };
    let patch = Patch {
        kind: field(change.kind),
        group: field(change.group),
        owner: field(change.owner),
        in_service: change.in_service,
        ..Patch::default()
    };
    state.fleet().patch(&id, patch, &who.name).await?;
    Ok(Json(show(state.fleet(), &id).await?.worker()))
}

/// Takes a worker off the books. What it runs goes on running.
#[utoipa::path(delete, path = "/api/v1/workers/{id}", tag = "workers",
    responses((status = 204, description = "It is off the books.")))]
pub(super) async fn delete(State(state): State<ApiState>, who: Principal, id: Id) -> Answered<StatusCode> {
    let removed = state.fleet().remove(&id, &who.name).await;
    removed.map_err(|error| Failure::conflict_is(error, Code::WrongStatus))?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_none_names_those_that_are() {
        let all = [("running", 1), ("paused", 2)];
        assert!(matches!(word("status", Some("paused"), &all), Ok(Some(2))));
        assert!(matches!(word("status", None, &all), Ok(None)));
        let said = format!("{:?}", word("status", Some("sleeping"), &all).unwrap_err());
        assert!(said.contains("status: expected one of running, paused, found"), "{said}");
    }
}
