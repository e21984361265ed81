//! Schemas for what has no type of its own here: instants, durations, and the words of closed sets.
//!
//! The types are never made; they stand in `value_type` where a field's own type knows nothing of `OpenAPI`. The
//! words are read from the core, so that the document cannot name one that the rules do not have.

use std::borrow::Cow;

use drowse_core::hold::HoldKind;
use drowse_core::policy::Level;
use drowse_core::reason::PauseReason;
use drowse_core::signal::{DriverKind, Need, Signal};
use drowse_core::status::StatusKind;
use utoipa::openapi::schema::{KnownFormat, SchemaFormat, Type};
use utoipa::openapi::{Object, ObjectBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// RFC 3339 with `Z`.
#[derive(Debug)]
pub enum Instant {}
/// As in the configuration: `30s`, `1h30m`.
#[derive(Debug)]
pub enum Span {}
/// `running`, `paused` and so on.
#[derive(Debug)]
pub enum Status {}
/// `process`, `docker` and so on.
#[derive(Debug)]
pub enum Driver {}
/// Why a worker was put to sleep.
#[derive(Debug)]
pub enum SleepReason {}
/// Why a worker runs again.
#[derive(Debug)]
pub enum WakeReason {}
/// `lease`, `connection` and so on.
#[derive(Debug)]
pub enum Hold {}
/// `cpu`, `connections` and so on.
#[derive(Debug)]
pub enum SignalName {}
/// `off`, `counted`, `required`.
#[derive(Debug)]
pub enum SignalUse {}
/// `active`, `quiet`, `unknown`.
#[derive(Debug)]
pub enum State {}
/// How specific a policy layer is.
#[derive(Debug)]
pub enum PolicyLevel {}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn words(describe: &str, words: impl IntoIterator<Item = &'static str>) -> RefOr<Schema> {
    let object: Object = text().description(Some(describe)).enum_values(Some(words)).build();
    object.into()
}

impl PartialSchema for Instant {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        text().description(Some("An instant, RFC 3339 with Z.")).format(Some(format)).build().into()
    }
}

impl PartialSchema for Span {
    fn schema() -> RefOr<Schema> {
        text()
            .description(Some("A duration as in the configuration; a bare number is an error."))
            .examples(["30s", "1h30m"])
            .pattern(Some(
                r"^([0-9]{1,6}w)?([0-9]{1,6}d)?([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?([0-9]{1,6}ms)?$",
            ))
            .min_length(Some(2))
            .build()
            .into()
    }
}

impl PartialSchema for Status {
    fn schema() -> RefOr<Schema> {
        words("What a worker is doing.", StatusKind::ALL.map(StatusKind::code))
    }
}

impl PartialSchema for Driver {
    fn schema() -> RefOr<Schema> {
        words("What observes and acts on a worker.", DriverKind::ALL.map(DriverKind::code))
    }
}

impl PartialSchema for SleepReason {
    fn schema() -> RefOr<Schema> {
        words("Why a worker was put to sleep.", PauseReason::ALL.map(PauseReason::code))
    }
}

impl PartialSchema for WakeReason {
    fn schema() -> RefOr<Schema> {
        // The core has no list of them; a test holds this one against it.
        words("Why a worker runs again.", ["manual", "wake", "external", "schedule", "undo", "restart"])
    }
}

impl PartialSchema for Hold {
    fn schema() -> RefOr<Schema> {
        words("What kind of reason to stay awake it is.", HoldKind::ALL.map(HoldKind::code))
    }
}

impl PartialSchema for SignalName {
    fn schema() -> RefOr<Schema> {
        words("One source of evidence.", Signal::ALL.map(Signal::code))
    }
}

impl PartialSchema for SignalUse {
    fn schema() -> RefOr<Schema> {
        words("How much a signal matters to a worker.", Need::ALL.map(Need::code))
    }
}

impl PartialSchema for State {
    fn schema() -> RefOr<Schema> {
        words("What a signal says; unknown is never quiet.", ["active", "quiet", "unknown"])
    }
}

impl PartialSchema for PolicyLevel {
    fn schema() -> RefOr<Schema> {
        let levels = [
            Level::BuiltIn,
            Level::Global,
            Level::Region,
            Level::Type,
            Level::Group,
            Level::Owner,
            Level::Worker,
        ];
        words("How specific a policy layer is, least first.", levels.map(Level::code))
    }
}

impl ToSchema for Instant {
    fn name() -> Cow<'static, str> {
        "Instant".into()
    }
}

impl ToSchema for Span {
    fn name() -> Cow<'static, str> {
        "Duration".into()
    }
}

impl ToSchema for Status {}
impl ToSchema for Driver {}
impl ToSchema for SleepReason {
    fn name() -> Cow<'static, str> {
        "PauseReason".into()
    }
}
impl ToSchema for WakeReason {
    fn name() -> Cow<'static, str> {
        "ResumeReason".into()
    }
}
impl ToSchema for Hold {
    fn name() -> Cow<'static, str> {
        "HoldKind".into()
    }
}
impl ToSchema for SignalName {
    fn name() -> Cow<'static, str> {
        "Signal".into()
    }
}
impl ToSchema for SignalUse {
    fn name() -> Cow<'static, str> {
        "Need".into()
    }
}
impl ToSchema for State {
    fn name() -> Cow<'static, str> {
        "ReadingState".into()
    }
}
impl ToSchema for PolicyLevel {
    fn name() -> Cow<'static, str> {
        "Level".into()
    }
}
