//! Random workers, for the laws.

use core::time::Duration;

use drowse_core::Timestamp;
use drowse_core::evidence::Read;
use drowse_core::flap::Flap;
use drowse_core::hold::{Hold, HoldKind};
use drowse_core::policy::exemption::{Exemption, Expiry, From};
use drowse_core::policy::{Key, Level, Policy, PolicyLayer, Source, Value, resolve};
use drowse_core::reason::ResumeReason;
use drowse_core::signal::{DriverKind, Reading, Signal, UnknownCause};
use drowse_core::status::StatusKind;
use drowse_core::worker::Last;
use proptest::prelude::*;
use proptest::sample::select;

use super::world::{World, at, exemption, hold, schedule, value};

/// The day on which the laws are tried; what came before lies up to three days back.
const DAY: i64 = 10 * 86_400;

pub(super) fn instants() -> impl Strategy<Value = Timestamp> {
    (0..2 * 86_400_i64).prop_map(|secs| at(DAY + secs))
}

/// An instant before `DAY`, more often shortly before.
fn earlier() -> impl Strategy<Value = i64> {
    prop_oneof![0..120_i64, 0..7_200_i64, 0..259_200_i64]
}

const SCHEDULES: [&str; 8] = [
    r#"{ days = "mon-fri", hours = "08:00-18:00", keep_awake = true }"#,
    r#"{ days = "daily", hours = "22:00-06:00", idle_timeout = "2m" }"#,
    r#"{ days = "daily", hours = "00:00-24:00", keep_awake = true }"#,
    r#"{ days = "sat,sun", hours = "00:00-24:00", sleep = true }"#,
    r#"{ days = "daily", hours = "20:00-07:00", sleep = true, force = true }"#,
    r#"{ days = "daily", hours = "09:00-12:00", keep_awake = true }, { days = "daily", hours = "12:00-13:00", idle_timeout = "30s" }"#,
    r#"{ days = "daily", hours = "03:00-04:00", sleep = true }, { days = "mon", hours = "01:00-03:30", keep_awake = true }"#,
    r#"{ days = "daily", hours = "10:00-10:30", idle_timeout = "10m" }, { days = "daily", hours = "10:15-11:00", keep_awake = true, wake = true }"#,
];

fn duration(key: Key, secs: core::ops::Range<u64>) -> impl Strategy<Value = Option<(Key, Value)>> {
    prop::option::of(secs.prop_map(move |secs| (key, Value::Duration(Duration::from_secs(secs)))))
}

fn written(key: Key, texts: &'static [&'static str]) -> impl Strategy<Value = Option<(Key, Value)>> {
    prop::option::of(select(texts).prop_map(move |text| (key, value(key, text))))
}

/// Policies that would pass validation.
pub(super) fn policies() -> impl Strategy<Value = Policy> {
    let timing = (
        prop_oneof![1..90_u64, 60..7_200_u64, 3_600..90_000_u64],
        1..5_u32,
        prop::bool::ANY,
        duration(Key::StartupGrace, 0..3_600),
        duration(Key::MaxRuntime, 1..400_000),
        duration(Key::MinNotice, 0..900),
        written(Key::WarnAt, &["", "50%", "80%,95%", "10%,99%", "99%"]),
        written(Key::WarnRuntimeAt, &["", "75%,90%", "99%"]),
    );
    let rest = (
        written(Key::Sleep, &["freeze", "stop", "hibernate"]),
        prop::option::weighted(0.4, select(&SCHEDULES[..])),
        written(Key::IdlePolicy, &["leases_only"]),
        written(Key::FlapGuard, &["false"]),
        written(Key::ScaleDown, &["true"]),
        prop::bool::weighted(0.8),
        prop::bool::weighted(0.05),
        prop::bool::weighted(0.05),
    );
    (timing, rest).prop_map(|(timing, rest)| {
        let (timeout, window, is_explicit, grace, runtime, notice, warn_at, warn_runtime_at) = timing;
        let (sleep, windows, idle_policy, flap_guard, scale_down, auto_pause, protected, never) = rest;
        let timeout = Duration::from_secs(timeout);
        let interval = Duration::from_micros(timeout.as_secs() * 1_000_000 / u64::from(window));
        let can_be_explicit = is_explicit && interval >= Duration::from_secs(1);
        let explicit = |key| can_be_explicit.then_some((key, Value::Duration(interval)));
        let layer = PolicyLayer::new(Level::Global, None, Source::File)
            .with(Key::AutoPause, Value::Flag(auto_pause))
            .with(Key::Protected, Value::Flag(protected))
            .with(Key::IdleTimeout, if never { Value::Never } else { Value::Duration(timeout) })
            .with(Key::Window, Value::Count(window));
        let windows = windows.map(|text| (Key::Schedule, Value::Schedule(Box::new(schedule(text)))));
        let others = [
            explicit(Key::CheckInterval),
            explicit(Key::TelemetryInterval),
            grace,
            runtime,
            notice,
            warn_at,
            warn_runtime_at,
            sleep,
            windows,
            idle_policy,
            flap_guard,
            scale_down,
        ];
        let layer = others.into_iter().flatten().fold(layer, |layer, (key, value)| layer.with(key, value));
        resolve(&[layer]).0
    })
}

fn readings() -> impl Strategy<Value = Reading> {
    prop_oneof![
        4 => Just(Reading::Quiet),
        2 => earlier().prop_map(|secs| Reading::Active { at: at(DAY - secs) }),
        1 => select(&[
            UnknownCause::ProbeFailed,
            UnknownCause::FirstSample,
            UnknownCause::WentBackwards,
            UnknownCause::Vanished,
            UnknownCause::NoAnswer,
            UnknownCause::RouterLost,
    UnknownCause::DoorShut,
        ][..]).prop_map(Reading::unknown),
    ]
}

/// One read that arrives some time before `DAY`: how long before, of what, saying what.
pub(super) type Arrival = (i64, Signal, Reading, bool);

pub(super) fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let arrival = (earlier(), select(&Signal::ALL[..]), readings(), any::<bool>());
    prop::collection::vec(arrival, 0..24)
}

/// Records reads in the order in which they arrive.
pub(super) fn arrive(
    world: &mut World,
    mut arrivals: Vec<Arrival>,
    mut after: impl FnMut(&World, Timestamp),
) {
    arrivals.sort_by_key(|(secs, ..)| -secs);
    for (secs, signal, reading, tells_gap) in arrivals {
        let now = at(DAY - secs);
        world.record(signal, Read { reading, read_at: now, measured: None, tells_gap }, now);
        after(world, now);
    }
}

fn holds() -> impl Strategy<Value = Vec<Hold>> {
    let one = (select(&HoldKind::ALL[..]), earlier(), prop::option::weighted(0.8, -7_200..90_000_i64))
        .prop_map(|(kind, since, until)| hold(kind, at(DAY - since), until.map(|secs| at(DAY + secs))));
    prop::collection::vec(one, 0..4)
}

fn exemptions() -> impl Strategy<Value = Vec<Exemption>> {
    let expiry = prop_oneof![
        4 => (-7_200..200_000_i64).prop_map(|secs| Expiry::At(at(DAY + secs))),
        1 => Just(Expiry::Never),
    ];
    let from = prop_oneof![
        Just(vec![From::IdleTimeout]),
        Just(vec![From::MaxRuntime]),
        Just(vec![From::IdleTimeout, From::MaxRuntime]),
    ];
    let some = (from, expiry).prop_map(|(from, expiry)| exemption(&from, expiry));
    prop::collection::vec(some, 0..2)
}

/// Any worker at all.
pub(super) fn worlds() -> impl Strategy<Value = World> {
    let nature = (
        select(&DriverKind::ALL[..]),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        prop_oneof![6 => Just(StatusKind::Running), 1 => select(&StatusKind::ALL[..])],
    );
    let past = (earlier(), earlier(), prop::option::of(earlier()), 0..9_u32, 0..90_000_u64);
    let fleet = (prop::bool::weighted(0.1), prop::bool::weighted(0.2));
    (nature, past, policies(), arrivals(), holds(), exemptions(), fleet).prop_map(
        |(nature, past, policy, arrivals, holds, exemptions, fleet)| {
            let (driver, is_cml, is_routed, gpu_was_read, status) = nature;
            let (created, since, resumed, undone, frozen_secs) = past;
            let mut world = World::new(driver, policy);
            world.worker.created_at = at(DAY - created.max(since));
            world.worker.boot_started_at = Some(at(DAY - since));
            world.worker.frozen_for = Duration::from_secs(frozen_secs.min(since.unsigned_abs()));
            world.worker.selectors.kind = is_cml.then(|| "cml".into());
            world.worker.is_routed = is_routed;
            world.worker.gpu_was_read = gpu_was_read;
            world.worker.flap = Flap { undone_in_a_row: undone };
            world.worker.last_resume = resumed.map(|secs| Last {
                at: at(DAY - secs.min(since)),
                by: "ada".into(),
                reason: ResumeReason::Manual,
            });
            world.status(status, at(DAY - resumed.unwrap_or(since).min(since)));
            world.holds = holds;
            world.exemptions = exemptions;
            (world.is_braked, world.can_scale_down) = fleet;
            arrive(&mut world, arrivals, |_, _| {});
            world
        },
    )
}
