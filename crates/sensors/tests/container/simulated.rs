//! Containers of a machine in a folder: what is there, what is missing, and what became of it.

use std::collections::BTreeSet;
use std::fs;

use drowse_sensors::container::{ReadError, Reading};
use rustix::io::Errno;

use crate::machine::{HOST_NETWORK, Kind, Machine, Used};

const PID: u32 = 4_242;
const USED: Used = Used {
    cpu_micros: 12_345_678,
    memory: 10_000_000,
    inactive_file: 4_000_000,
    tasks: 7,
    received: 1_000,
    sent: 234,
};

fn machine(kind: Kind) -> Machine {
    let machine = Machine::new(kind);
    machine.start(PID, USED);
    machine
}

fn all() -> Reading {
    Reading {
        cpu_micros: Ok(12_345_678),
        memory_bytes: Ok(6_000_000),
        processes: Ok(7),
        network_bytes: Ok(1_234),
    }
}

fn all_gone() -> Reading {
    Reading {
        cpu_micros: Err(ReadError::Gone),
        memory_bytes: Err(ReadError::Gone),
        processes: Err(ReadError::Gone),
        network_bytes: Err(ReadError::Gone),
    }
}

#[test]
fn everything_is_read_and_read_again() {
    for kind in [Kind::V1, Kind::V2] {
        let machine = machine(kind);
        let paths = machine.find(PID).unwrap();
        assert_eq!(paths.read(), all(), "{kind:?}");
        machine.uses(PID, Used { cpu_micros: 20_000_000, sent: 1_000, ..USED });
        let expected = Reading { cpu_micros: Ok(20_000_000), network_bytes: Ok(2_000), ..all() };
        assert_eq!(paths.read(), expected, "{kind:?}");
        assert_eq!(paths.pid(), PID);
    }
}

#[test]
fn more_inactive_than_used_is_no_huge_number() {
    let machine = machine(Kind::V2);
    machine.uses(PID, Used { inactive_file: 11_000_000, ..USED });
    assert_eq!(machine.find(PID).unwrap().read().memory_bytes, Ok(0));
}

#[test]
fn a_file_that_is_missing_spoils_no_other() {
    for (kind, hierarchy, file) in [
        (Kind::V1, "cpu,cpuacct", "cpuacct.usage"),
        (Kind::V1, "memory", "memory.usage_in_bytes"),
        (Kind::V1, "pids", "pids.current"),
        (Kind::V2, "", "cpu.stat"),
        (Kind::V2, "", "memory.current"),
        (Kind::V2, "", "pids.current"),
    ] {
        let machine = machine(kind);
        let path = machine.cgroup(PID, hierarchy, file);
        machine.remove(&path);
        let missing = Err(ReadError::Missing { path: machine.root().join(path) });
        let mut expected = all();
        match file.split('.').next().unwrap() {
            "cpu" | "cpuacct" => expected.cpu_micros = missing,
            "memory" => expected.memory_bytes = missing,
            _ => expected.processes = missing,
        }
        assert_eq!(machine.find(PID).unwrap().read(), expected, "{file}");
    }
}

#[test]
fn a_file_that_is_odd_spoils_no_other_and_is_no_zero() {
    for (hierarchy, file) in
        [("", "cpu.stat"), ("", "memory.current"), ("", "memory.stat"), ("", "pids.current")]
    {
        for text in ["", "max\n", "99999999999999999999999\n"] {
            let machine = machine(Kind::V2);
            let path = machine.cgroup(PID, hierarchy, file);
            machine.write(&path, text);
            let odd = Err(ReadError::Odd { path: machine.root().join(path) });
            let mut expected = all();
            match file.split('.').next().unwrap() {
                "cpu" => expected.cpu_micros = odd,
                "memory" => expected.memory_bytes = odd,
                _ => expected.processes = odd,
            }
            assert_eq!(machine.find(PID).unwrap().read(), expected, "{file} {text:?}");
        }
    }
    let machine = machine(Kind::V1);
    machine.write(&format!("proc/{PID}/net/dev"), "");
    let odd = ReadError::Odd { path: machine.root().join(format!("proc/{PID}/net/dev")) };
    assert_eq!(machine.find(PID).unwrap().read(), Reading { network_bytes: Err(odd), ..all() });
}

#[test]
fn a_folder_in_place_of_a_file_is_named_with_what_the_system_said() {
    let machine = machine(Kind::V2);
    let path = machine.root().join(format!("proc/{PID}/net/dev"));
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let failed = ReadError::Failed { path, errno: Errno::ISDIR };
    assert_eq!(machine.find(PID).unwrap().read(), Reading { network_bytes: Err(failed), ..all() });
}

#[test]
fn the_machines_network_is_not_the_containers() {
    for shared in [HOST_NETWORK, 7] {
        let machine = machine(Kind::V2);
        // Drowse itself may live in a network of its own, and then both are not the container's.
        machine.network_namespace("self", 7);
        machine.network_namespace(&PID.to_string(), shared);
        let reading = machine.find(PID).unwrap().read();
        let not_own = ReadError::NotOwn { what: "network" };
        assert_eq!(reading, Reading { network_bytes: Err(not_own), ..all() });
    }
}

#[test]
fn a_container_in_the_root_cgroup_has_no_figures_of_its_own() {
    let machine = machine(Kind::V2);
    machine.write(&format!("proc/{PID}/cgroup"), "0::/\n");
    machine.write("sys/fs/cgroup/cpu.stat", "usage_usec 99\n");
    machine.write("sys/fs/cgroup/cgroup.procs", "1\n2\n");
    let paths = machine.find(PID).unwrap();
    let not_own = || Err(ReadError::NotOwn { what: "cgroup" });
    let expected = Reading { cpu_micros: not_own(), memory_bytes: not_own(), processes: not_own(), ..all() };
    assert_eq!(paths.read(), expected);
    assert_eq!(
        paths.pids(),
        Err(ReadError::NotOwn { what: "cgroup" }),
        "the machine's processes are not its own"
    );
}

#[test]
fn another_process_with_the_same_number_is_not_the_container() {
    for kind in [Kind::V1, Kind::V2] {
        let machine = machine(kind);
        let paths = machine.find(PID).unwrap();
        machine.lives_since(PID, 999_999);
        assert_eq!(paths.read(), all_gone(), "{kind:?}");
        assert_eq!(paths.pids(), Err(ReadError::Gone));
    }
}

#[test]
fn a_process_that_only_waits_to_be_buried_is_gone() {
    let machine = machine(Kind::V2);
    let paths = machine.find(PID).unwrap();
    machine.stat(PID, 'Z', 1_000 + u64::from(PID));
    assert_eq!(paths.read(), all_gone());
    assert_eq!(machine.find(PID).unwrap_err().kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn a_process_that_is_not_there_is_not_found() {
    let machine = machine(Kind::V2);
    let error = machine.find(PID + 1).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    assert_eq!(error.to_string(), "the container is gone");
}

#[test]
fn processes_are_those_of_the_whole_tree() {
    let machine = machine(Kind::V2);
    machine.write(&machine.cgroup(PID, "", "init.scope/cgroup.procs"), "4243\n4244\n");
    machine.write(&machine.cgroup(PID, "", "system.slice/a b:c/cgroup.procs"), "4245\n4243\n");
    machine.write(&machine.cgroup(PID, "", "system.slice/cgroup.procs"), "");
    // A folder that vanishes between the listing and the look has no such file either.
    fs::create_dir_all(machine.root().join(machine.cgroup(PID, "", "vanishing"))).unwrap();
    let paths = machine.find(PID).unwrap();
    assert_eq!(paths.pids(), Ok(BTreeSet::from([PID, 4_243, 4_244, 4_245])));
}

#[test]
fn a_process_without_a_number_here_is_not_left_out_in_silence() {
    let machine = machine(Kind::V1);
    let path = machine.cgroup(PID, "pids", "cgroup.procs");
    let paths = machine.find(PID).unwrap();
    for text in ["0\n", "4242\nmany\n", "4294967296\n"] {
        machine.write(&path, text);
        assert_eq!(paths.pids(), Err(ReadError::Odd { path: machine.root().join(&path) }), "{text:?}");
    }
}

#[test]
fn a_removed_tree_has_no_processes_to_name() {
    let machine = machine(Kind::V1);
    let paths = machine.find(PID).unwrap();
    machine.remove(&machine.cgroup(PID, "pids", "cgroup.procs"));
    assert_eq!(paths.pids(), Err(ReadError::Gone));
}
