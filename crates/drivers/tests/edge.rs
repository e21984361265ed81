//! A threshold to the microsecond: from files as the kernel writes them to the reading that the rules make of them.

#[path = "../../sensors/tests/container/machine.rs"]
#[expect(dead_code, reason = "what the tests of the sensor do with a machine")]
mod machine;

use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::counter::{Meter, Total};
use drowse_core::policy::Policy;
use drowse_core::signal::Reading;
use drowse_sensors::container::Paths;

use machine::{Kind, Machine, Used};

/// Over which a megabyte of traffic is quiet.
const PERIOD: Duration = Duration::from_mins(5);

fn used(cpu_micros: u64, bytes: u64) -> Used {
    Used { cpu_micros, memory: 1 << 20, inactive_file: 0, tasks: 3, received: bytes, sent: 0 }
}

/// What five minutes in which it used this read as.
fn readings(kind: Kind, cpu_micros: u64, bytes: u64) -> [Reading; 2] {
    let machine = Machine::new(kind);
    machine.start(1_000, used(5_000_000, 7_000));
    let paths = Paths::on_machine(machine.root(), 1_000, None).expect("it lives");
    let (before, since) = (paths.read(), Timestamp::from_secs(100));
    machine.uses(1_000, used(5_000_000 + cpu_micros, 7_000 + bytes));
    let (after, at) = (paths.read(), since + PERIOD);
    let read = |meter: Meter, before: u64, after: u64| {
        let (before, after) = (Total { value: before, at: since }, Total { value: after, at });
        meter.read(Some(&before), &after, &Policy::default(), PERIOD).reading
    };
    [
        read(Meter::Cpu, before.cpu_micros.expect("it is read"), after.cpu_micros.expect("it is read")),
        read(
            Meter::Network,
            before.network_bytes.expect("it is read"),
            after.network_bytes.expect("it is read"),
        ),
    ]
}

#[test]
fn what_is_exactly_at_the_threshold_is_quiet_and_one_more_is_active() {
    let active = Reading::Active { at: Timestamp::from_secs(400) };
    // 2 % of five minutes of one core, and a mebibyte.
    let (cpu, bytes) = (6_000_000, 1 << 20);
    for kind in [Kind::V1, Kind::V2] {
        assert_eq!(readings(kind, cpu, bytes), [Reading::Quiet, Reading::Quiet]);
        assert_eq!(readings(kind, cpu + 1, bytes), [active, Reading::Quiet]);
        assert_eq!(readings(kind, cpu, bytes + 1), [Reading::Quiet, active]);
    }
}
