//! How long a decision takes, on one core: a million workers with six signals each.

use core::hint::black_box;
use core::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use drowse_core::evidence::{Evidence, Read};
use drowse_core::hold::{Hold, HoldKind};
use drowse_core::id::WorkerId;
use drowse_core::policy::exemption::Exempt;
use drowse_core::policy::{Key, Level, Policy, PolicyLayer, Source, Value, resolve};
use drowse_core::signal::{DriverKind, Measured, Need, Reading, Signal, UnknownCause};
use drowse_core::status::Status;
use drowse_core::verdict::Snapshot;
use drowse_core::worker::Worker;
use drowse_core::{Timestamp, judge};

const WORKERS: u32 = 1_000_000;

/// Six signals: what a routed container with a GPU and an agent has, and its sockets.
const SIGNALS: [Signal; 6] =
    [Signal::Connections, Signal::Activity, Signal::Tcp, Signal::Cpu, Signal::Gpu, Signal::Network];

fn at(secs: u32) -> Timestamp {
    Timestamp::from_secs(1_772_409_600 + i64::from(secs))
}

const NOW: u32 = 90_000;

struct Judged {
    worker: Worker,
    evidence: Evidence,
    holds: Vec<Hold>,
}

/// What a worker is up to.
#[derive(Clone, Copy)]
enum State {
    Quiet,
    Active,
    Unknown,
    Held,
}

fn judged(index: u32, state: State, policy: &Policy) -> Judged {
    let id = WorkerId::new(&format!("w-{index}")).expect("a lawful id");
    let mut worker = Worker::registered(id, DriverKind::Docker, policy, at(0));
    worker.is_routed = true;
    worker.gpu_was_read = true;
    worker.status = Status::Running { since: at(0) };
    worker.boot_started_at = Some(at(0));
    let mut evidence = Evidence::default();
    let interval = policy.check_interval;
    // Their last activity is spread over the last two hours, so that all parts of a timeout are met.
    let active_at = at(NOW - index % 7_200);
    evidence.record(Signal::Cpu, Read::active(active_at, active_at), true, interval, at(NOW - 7_200));
    for signal in SIGNALS {
        let measured = Some(Measured { value: 1.0, active_above: 2.0 });
        let quiet = Read { reading: Reading::Quiet, read_at: at(NOW), measured, tells_gap: true };
        evidence.record(signal, quiet, true, interval, at(NOW));
    }
    match state {
        State::Quiet | State::Held => {}
        State::Active => {
            evidence.record(Signal::Cpu, Read::active(at(NOW), at(NOW)), true, interval, at(NOW));
        }
        State::Unknown => {
            let failed = Read::unknown(UnknownCause::ProbeFailed, at(NOW));
            evidence.record(Signal::Cpu, failed, true, interval, at(NOW));
        }
    }
    let lease = Hold {
        kind: HoldKind::Lease,
        owner: "build".into(),
        reason: "a build".into(),
        since: at(0),
        until: Some(at(NOW + 600)),
    };
    let holds = if matches!(state, State::Held) { vec![lease] } else { Vec::new() };
    Judged { worker, evidence, holds }
}

fn policy() -> Policy {
    let layer = PolicyLayer::new(Level::Global, None, Source::File)
        .with(Key::SignalUse(Signal::Tcp), Value::Need(Need::Counted))
        .with(Key::MaxRuntime, Value::Duration(Duration::from_hours(72)))
        .with(Key::Window, Value::Count(3));
    resolve(&[layer]).0
}

fn judge_all(fleet: &[Judged], policy: &Policy) -> usize {
    let now = at(NOW);
    let eligible = fleet.iter().filter(|judged| {
        let snapshot = Snapshot {
            worker: &judged.worker,
            evidence: &judged.evidence,
            holds: &judged.holds,
            hold_ended_at: None,
            exempt: Exempt::default(),
            is_braked: false,
            check_began_at: Some(now),
            is_seen: true,
            idle_warned: None,
            runtime_warned: None,
            schedule_warned: None,
            stop_warned: None,
            deletion_warned: None,
            can_scale_down: false,
        };
        let verdict = judge(black_box(&snapshot), policy, now);
        black_box(&verdict).eligible
    });
    eligible.count()
}

fn decisions(c: &mut Criterion) {
    let policy = policy();
    let mut group = c.benchmark_group("judge");
    group.throughput(Throughput::Elements(u64::from(WORKERS)));
    group.sample_size(10);
    group.measurement_time(Duration::from_secs(10));
    {
        let fleet: Vec<Judged> = (0..WORKERS).map(|index| judged(index, State::Quiet, &policy)).collect();
        group.bench_function("a million quiet workers", |b| b.iter(|| judge_all(black_box(&fleet), &policy)));
    }
    let states = [State::Active, State::Quiet, State::Unknown, State::Held];
    let state = |index: u32| states[usize::try_from(index % 4).expect("below four")];
    let fleet: Vec<Judged> = (0..WORKERS).map(|index| judged(index, state(index), &policy)).collect();
    group.bench_function("a million, active, quiet, unknown and held", |b| {
        b.iter(|| judge_all(black_box(&fleet), &policy));
    });
    group.finish();
}

criterion_group!(benches, decisions);
criterion_main!(benches);
