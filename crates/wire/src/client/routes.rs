//! One method for each route.

use std::io::Write;

use drowse_core::Timestamp;
use serde_json::json;

use super::{Client, ClientError, segment, with_query};
use crate::v1::{
    ActionAnswer, ActionRequest, Brake, ChangePolicy, CreateExemption, CreateToken, CreatedToken, EventPage,
    EventQuery, Exemption, ExemptionList, Explanation, Hold, HoldList, IdleDetection, IdleDetectionResult,
    Lease, LoginLink, PatchWorker, PolicyChange, PolicyList, Readings, RegisterWorker, ReleaseBrake,
    SnoozeRequest, TakeLease, Token, TokenList, Worker, WorkerActivity, WorkerIdleStatus, WorkerPage,
    WorkerQuery,
};

/// What a person can ask of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Pause,
    Resume,
    Stop,
    Drain,
    Terminate,
}

impl Action {
    /// The last part of the route.
    pub const fn code(self) -> &'static str {
        match self {
            Action::Pause => "pause",
            Action::Resume => "resume",
            Action::Stop => "stop",
            Action::Drain => "drain",
            Action::Terminate => "terminate",
        }
    }
}

fn worker(id: &str, rest: &str) -> String {
    format!("workers/{}{rest}", segment(id))
}

impl Client {
    /// One page of workers.
    pub fn workers(&self, query: &WorkerQuery) -> Result<WorkerPage, ClientError> {
        self.ask("GET", &with_query("workers", query))
    }

    /// All workers, page after page.
    pub fn all_workers(&self, query: &WorkerQuery) -> Result<WorkerPage, ClientError> {
        let mut query = query.clone();
        let mut all = self.workers(&query)?;
        while let Some(next) = all.next.take() {
            query.after = Some(next);
            let mut page = self.workers(&query)?;
            // A server that gives an empty page and a next one would keep us here for ever.
            all.next = page.next.take().filter(|_| !page.workers.is_empty());
            all.workers.append(&mut page.workers);
        }
        Ok(all)
    }

    pub fn register_worker(&self, new: &RegisterWorker) -> Result<Worker, ClientError> {
        self.post("POST", "workers", new)
    }

    pub fn worker(&self, id: &str) -> Result<Worker, ClientError> {
        self.ask("GET", &worker(id, ""))
    }

    pub fn patch_worker(&self, id: &str, patch: &PatchWorker) -> Result<Worker, ClientError> {
        self.post("PATCH", &worker(id, ""), patch)
    }

    pub fn delete_worker(&self, id: &str) -> Result<(), ClientError> {
        self.tell("DELETE", &worker(id, ""))
    }

    pub fn activity(&self, id: &str) -> Result<WorkerActivity, ClientError> {
        self.ask("GET", &worker(id, "/activity"))
    }

    pub fn idle_status(&self, id: &str) -> Result<WorkerIdleStatus, ClientError> {
        self.ask("GET", &worker(id, "/idle-status"))
    }

    /// Why it is awake or not, now or at a time in the past.
    pub fn explain(&self, id: &str, at: Option<Timestamp>) -> Result<Explanation, ClientError> {
        let path = worker(id, "/explain");
        match at {
            Some(at) => self.ask("GET", &with_query(&path, &json!({ "at": at }))),
            None => self.ask("GET", &path),
        }
    }

    pub fn readings(&self, id: &str) -> Result<Readings, ClientError> {
        self.ask("GET", &worker(id, "/readings"))
    }

    pub fn holds(&self, id: &str) -> Result<HoldList, ClientError> {
        self.ask("GET", &worker(id, "/holds"))
    }

    pub fn take_lease(&self, id: &str, holder: &str, lease: &TakeLease) -> Result<Lease, ClientError> {
        self.post("PUT", &worker(id, &format!("/leases/{}", segment(holder))), lease)
    }

    pub fn release_lease(&self, id: &str, holder: &str) -> Result<(), ClientError> {
        self.tell("DELETE", &worker(id, &format!("/leases/{}", segment(holder))))
    }

    /// Pause, resume, stop, drain or terminate.
    pub fn act(
        &self,
        id: &str,
        action: Action,
        request: &ActionRequest,
    ) -> Result<ActionAnswer, ClientError> {
        self.post("POST", &worker(id, &format!("/{}", action.code())), request)
    }

    pub fn cancel_drain(&self, id: &str) -> Result<ActionAnswer, ClientError> {
        self.ask("DELETE", &worker(id, "/drain"))
    }

    pub fn snooze(&self, id: &str, request: &SnoozeRequest) -> Result<Hold, ClientError> {
        self.post("POST", &worker(id, "/snooze"), request)
    }

    /// Ends one's own keep-awake.
    pub fn end_snooze(&self, id: &str) -> Result<(), ClientError> {
        self.tell("DELETE", &worker(id, "/snooze"))
    }

    pub fn detect_idle(&self, id: &str) -> Result<IdleDetectionResult, ClientError> {
        self.post("POST", &worker(id, "/detect-idle"), &json!({}))
    }

    pub fn set_idle_detection(&self, id: &str, enabled: bool) -> Result<IdleDetection, ClientError> {
        let rest = if enabled { "/idle-detection/enable" } else { "/idle-detection/disable" };
        self.post("POST", &worker(id, rest), &json!({}))
    }

    pub fn policies(&self) -> Result<PolicyList, ClientError> {
        self.ask("GET", "policies")
    }

    /// Changes a layer at run time; `name` is none for the global one.
    pub fn change_policy(
        &self,
        level: &str,
        name: Option<&str>,
        change: &ChangePolicy,
    ) -> Result<PolicyChange, ClientError> {
        let path = match name {
            Some(name) => format!("policies/{}/{}", segment(level), segment(name)),
            None => format!("policies/{}", segment(level)),
        };
        self.post("PATCH", &path, change)
    }

    pub fn exemptions(&self) -> Result<ExemptionList, ClientError> {
        self.ask("GET", "exemptions")
    }

    pub fn create_exemption(&self, new: &CreateExemption) -> Result<Exemption, ClientError> {
        self.post("POST", "exemptions", new)
    }

    pub fn delete_exemption(&self, id: &str) -> Result<(), ClientError> {
        self.tell("DELETE", &format!("exemptions/{}", segment(id)))
    }

    pub fn events(&self, query: &EventQuery) -> Result<EventPage, ClientError> {
        self.ask("GET", &with_query("events", query))
    }

    pub fn tokens(&self) -> Result<TokenList, ClientError> {
        self.ask("GET", "tokens")
    }

    pub fn create_token(&self, new: &CreateToken) -> Result<CreatedToken, ClientError> {
        self.post("POST", "tokens", new)
    }

    /// A link that signs a browser in, once; its whole address.
    pub fn login_link(&self) -> Result<String, ClientError> {
        let link: LoginLink = self.ask("POST", "login-links")?;
        Ok(format!("{}{}", self.url(), link.path))
    }

    pub fn revoke_token(&self, id: &str) -> Result<Token, ClientError> {
        self.ask("DELETE", &format!("tokens/{}", segment(id)))
    }

    pub fn brake(&self) -> Result<Brake, ClientError> {
        self.ask("GET", "brake")
    }

    pub fn release_brake(&self, release: &ReleaseBrake) -> Result<Brake, ClientError> {
        self.post("POST", "brake/release", release)
    }

    /// Copies the database into `into`; how many bytes.
    pub fn backup(&self, into: &mut impl Write) -> Result<u64, ClientError> {
        let broken = |source| ClientError::Broken { url: self.url().to_owned(), source };
        let request = self.request("POST", "backup").body(()).map_err(|error| self.unsendable(&error))?;
        // Without the limit on the whole time: a large database takes as long as it takes.
        let response = self.check(self.streams.run(request))?;
        let told = response.body().content_length();
        let copied = std::io::copy(&mut response.into_body().into_reader(), into).map_err(broken)?;
        match told {
            Some(told) if told != copied => Err(broken(std::io::ErrorKind::UnexpectedEof.into())),
            _ => Ok(copied),
        }
    }
}
