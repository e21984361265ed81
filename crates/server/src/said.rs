//! What an entry of the journal says in a sentence: what happened, to whom, by whom, until when and why.
//!
//! What the rules note has its sentence there; here is one for each kind that the shell writes. A name alone tells
//! nobody anything.

use drowse_core::Timestamp;
use drowse_core::brake::{Cause, Change, Release};
use drowse_core::journal::Entry;
use drowse_core::policy::exemption::{Exemption, Expiry, From, Subject};
use drowse_core::verdict::{Warning, WarningKind};
use serde_json::Value;

/// What happened, for people.
pub fn sentence(kind: &str, doc: &Value) -> String {
    if let Ok(entry) = serde_json::from_value::<Entry>(doc.clone()) {
        return entry.to_string();
    }
    let said = SENTENCES.iter().find(|(known, _)| *known == kind).and_then(|(_, say)| say(&Doc(doc)));
    // Of another version, or half of it: as much as can be told.
    said.unwrap_or_else(|| {
        let what = kind.rsplit('.').next().unwrap_or(kind).replace('_', " ");
        format!("{what}{}{}", Doc(doc).by(), Doc(doc).why())
    })
}

/// How each kind is said; `None` if what is needed for it is not there.
type Say = fn(&Doc<'_>) -> Option<String>;

const SENTENCES: &[(&str, Say)] = &[
    ("brake.engaged", |doc| Some(format!("automatic actions are held back: {}", cause(doc.0)?))),
    ("brake.released", |doc| Some(format!("automatic actions go ahead again: {}", release(doc.0)?))),
    ("discovery.problem", |doc| {
        Some(format!("container {}: {}", doc.text("container")?, doc.list("problems")?))
    }),
    ("drowse.ended", |doc| {
        let count = |name: &str| doc.0.get(name).and_then(Value::as_array).map_or(0, Vec::len);
        let [thawed, kept, late] = ["thawed", "kept_frozen", "late"].map(count);
        Some(format!("Drowse ended: {thawed} thawed, {kept} left frozen, {late} not back in time"))
    }),
    ("exemption.expiring", |doc| Some(format!("ends soon: {}", exemption(doc.0)?))),
    ("exemption.granted", |doc| {
        Some(format!("number {}{}: {}", doc.0.get("id")?, doc.by(), exemption(doc.0)?))
    }),
    ("exemption.removed", |doc| Some(format!("number {} was ended{}", doc.0.get("id")?, doc.by()))),
    ("policy.changed", policy),
    ("policy.reloaded", |doc| Some(format!("the configuration was read again, asked for{}", doc.by()))),
    ("session.opened", |doc| Some(format!("{} signed in to the page", doc.text("by")?))),
    ("token.created", |doc| {
        let (id, name, role) = (doc.text("id")?, doc.text("name")?, doc.text("role")?);
        Some(format!("{id} for {name} with the role {role}, made{}", doc.by()))
    }),
    ("token.revoked", |doc| Some(format!("{} counts no more, revoked{}", doc.text("id")?, doc.by()))),
    ("worker.changed", |doc| Some(format!("what it is was changed{}", doc.by()))),
    ("worker.exempt", |doc| match doc.text("from")? {
        "idle_timeout" => {
            Some(format!("spared by an exemption from idle_timeout: idle since {}", doc.time("idle_since")?))
        }
        from => {
            Some(format!("spared by an exemption from {from}, which was over at {}", doc.time("over_at")?))
        }
    }),
    ("worker.hook_failed", |doc| {
        Some(format!("{} failed, and it runs all the same: {}", doc.text("hook")?, doc.text("error")?))
    }),
    ("worker.judged", |doc| Some(format!("judged: {}", doc.text("summary")?))),
    ("worker.keep_alive_ended", |doc| Some(format!("{} keeps it awake no longer", doc.text("file")?))),
    ("worker.kept_alive", |doc| Some(format!("kept awake by the file {}{}", doc.text("file")?, doc.until()))),
    ("worker.lease_ceiling_near", |doc| {
        Some(format!(
            "{} will soon have held it for as long as lease_ceiling allows",
            doc.text("credential")?
        ))
    }),
    ("worker.lease_ended", |doc| {
        let how = match doc.text("by")? {
            "expiry" => "nobody renewed it",
            "holder" => "its holder let it go",
            "stop" => "the worker was stopped",
            other => other,
        };
        Some(format!("the lease of {} ended: {how}", doc.text("holder")?))
    }),
    ("worker.lease_taken", |doc| {
        Some(format!("kept awake by a lease of {}{}{}", doc.text("holder")?, doc.until(), doc.why()))
    }),
    ("worker.readable", |_| Some("everything that it is judged by can be read again".to_owned())),
    ("worker.registered", |doc| {
        let driver = doc.text("driver").map_or_else(String::new, |driver| format!(", driver {driver}"));
        Some(format!("on the books{}{driver}", doc.by()))
    }),
    ("worker.removed", |doc| Some(format!("off the books{}", doc.by()))),
    ("worker.resume_asked", |doc| Some(format!("a resume was asked for{}{}", doc.by(), doc.why()))),
    ("worker.snooze_ended", |doc| Some(format!("the snooze of {} was ended", doc.text("by")?))),
    ("worker.snoozed", |doc| Some(format!("kept awake{}{}{}", doc.by(), doc.until(), doc.why()))),
    ("worker.unknown_alert", |doc| {
        let why = doc.list("why").filter(|why| !why.is_empty());
        let why = why.unwrap_or_else(|| "what its policy requires cannot be read".to_owned());
        Some(format!("nobody can say for a long time whether it is in use: {why}"))
    }),
    ("worker.unreadable", |doc| Some(doc.text("message")?.replace('\n', "; "))),
    ("worker.warned", warned),
    ("worker.warning_delivered", |doc| {
        Some(format!("the warning is in its file and on {}", terminals(doc)?))
    }),
    ("worker.warning_undelivered", |doc| {
        Some(format!("the warning is not in its file: {}; it is on {}", doc.text("error")?, terminals(doc)?))
    }),
    ("worker.would_pause", |doc| {
        Some(format!("would have been put to sleep ({}), but auto_pause is false", doc.text("reason")?))
    }),
];

/// What an entry tells.
struct Doc<'a>(&'a Value);

impl Doc<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// An instant, to the second: nobody reads more.
    fn time(&self, name: &str) -> Option<Timestamp> {
        self.text(name)?.parse().ok().map(Timestamp::to_the_second)
    }

    /// Several sentences as one.
    fn list(&self, name: &str) -> Option<String> {
        let all = self.0.get(name)?.as_array()?;
        Some(all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; "))
    }

    fn by(&self) -> String {
        self.text("by").map_or_else(String::new, |by| format!(" by {by}"))
    }

    fn until(&self) -> String {
        self.time("until").map_or_else(String::new, |until| format!(" until {until}"))
    }

    fn why(&self) -> String {
        let why = ["message", "reason", "summary"].into_iter().find_map(|name| self.text(name));
        why.map_or_else(String::new, |why| format!(": {why}"))
    }
}

fn cause(doc: &Value) -> Option<String> {
    let Ok(Change::Engaged(cause)) = serde_json::from_value(doc.clone()) else { return None };
    Some(match cause {
        Cause::FleetGone { gone, total } => format!("{gone} of {total} workers went silent at once"),
        Cause::LoopStalled => "Drowse itself stalled".to_owned(),
        Cause::ClockJumped => "the clock jumped".to_owned(),
    })
}

fn release(doc: &Value) -> Option<String> {
    let Ok(Change::Released(release)) = serde_json::from_value(doc.clone()) else { return None };
    Some(match release {
        Release::Calm => "it has been calm for long enough".to_owned(),
        Release::Person { by, why } if why.is_empty() => format!("{by} said so"),
        Release::Person { by, why } => format!("{by} said so: {why}"),
        Release::Overdue => "brake_max is over, although it is not calm; at a bounded rate".to_owned(),
    })
}

fn exemption(doc: &Value) -> Option<String> {
    let exemption: Exemption = serde_json::from_value(doc.get("exemption")?.clone()).ok()?;
    let whom = match &exemption.subject {
        Subject::Owner(name) => format!("owner {name}"),
        Subject::Group(name) => format!("group {name}"),
        Subject::Worker(name) => format!("worker {name}"),
    };
    let from: Vec<&str> = exemption.from.iter().copied().map(said_from).collect();
    let until = match exemption.expires_on {
        Expiry::At(at) => format!("until {}", at.to_the_second()),
        Expiry::Never => "for ever".to_owned(),
    };
    let Exemption { reason, approved_by, .. } = &exemption;
    Some(format!("{whom} from {} {until}, approved by {approved_by}: {reason}", from.join(" and ")))
}

fn said_from(from: From) -> &'static str {
    match from {
        From::IdleTimeout => "idle_timeout",
        From::MaxRuntime => "max_runtime",
    }
}

fn policy(doc: &Doc<'_>) -> Option<String> {
    let (level, key) = (doc.text("level")?, doc.text("key")?);
    let name = doc.text("name").map_or_else(String::new, |name| format!(" {name}"));
    let value = doc.0.get("value").filter(|value| !value.is_null());
    let what = match value {
        Some(value) => format!("{key} set to {}", value.to_string().replace('"', "")),
        None => format!("{key} no longer set"),
    };
    Some(format!("{level}{name}: {what}{}{}", doc.by(), doc.why()))
}

fn warned(doc: &Doc<'_>) -> Option<String> {
    let warning: Warning = serde_json::from_value(doc.0.clone()).ok()?;
    let (what, why) = match warning.kind {
        WarningKind::Idle => ("put to sleep", "it is idle"),
        WarningKind::ScaleDown => ("deleted", "it is idle and not needed"),
        WarningKind::MaxRuntime => ("stopped", "it has run for as long as max_runtime allows"),
        WarningKind::Schedule => ("put to sleep", "its schedule says so"),
        WarningKind::StopAfter => ("stopped", "it has been paused for stop_after"),
        WarningKind::TerminateAfter => ("deleted", "it has slept for terminate_after"),
    };
    let at = warning.happens_at.to_the_second();
    Some(if warning.is_fyi {
        format!("for information only, because it is exempt: it would be {what} at {at}, because {why}")
    } else {
        format!("it will be {what} at {at}, because {why}")
    })
}

fn terminals(doc: &Doc<'_>) -> Option<String> {
    Some(match doc.0.get("terminals")?.as_u64()? {
        0 => "no terminal".to_owned(),
        1 => "1 terminal".to_owned(),
        more => format!("{more} terminals"),
    })
}

#[cfg(test)]
mod tests;
