//! NVML, played by a stand-in that is built with the C compiler: fine, broken in every way, and hung.

#![forbid(unsafe_code)]

mod stand_in;
mod summed;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use drowse_sensors::gpu::{Call, Code, GpuError, Gpus, Reader};

use stand_in::{Kind, StandIn};
use summed::{Library as _, Thread as _};

/// Longer than any answer takes on a busy machine; only a defect waits for it.
const PATIENCE: Duration = Duration::from_mins(1);

const TWO_BUSY: &str = "\
process 0 100
process 0 101
process 1 100
sample 0 100 500 40 10 0 0
sample 1 100 500 30 35 0 0
sample 1 102 500 0 0 0 12
";

fn busy() -> BTreeMap<u32, f64> {
    BTreeMap::from([(100, 75.0), (101, 0.0), (102, 12.0)])
}

fn load(stand_in: &StandIn) -> Gpus {
    Gpus::load(Some(&stand_in.library())).expect("a library that works")
}

#[test]
fn what_a_process_uses_is_summed_over_devices() {
    for kind in [Kind::Usual, Kind::Old] {
        let stand_in = StandIn::build(kind, TWO_BUSY);
        assert_eq!(load(&stand_in).by_process(), Ok(busy()), "{kind:?}");
    }
}

#[test]
fn each_device_can_be_told_apart() {
    let stand_in = StandIn::build(Kind::Usual, TWO_BUSY);
    let first = BTreeMap::from([(100, 40.0), (101, 0.0)]);
    let second = BTreeMap::from([(100, 35.0), (102, 12.0)]);
    assert_eq!(load(&stand_in).by_device(), Ok(vec![Ok(first), Ok(second)]));
}

#[test]
fn devices_that_nobody_uses_are_read_and_empty() {
    let stand_in = StandIn::build(Kind::Usual, "devices 3\n");
    assert_eq!(load(&stand_in).by_process(), Ok(BTreeMap::new()));
}

#[test]
fn an_answer_covers_the_time_since_the_last_one() {
    let stand_in = StandIn::build(Kind::Usual, "devices 1\nprocess 0 7\nsample 0 7 60000 50 0 0 0\n");
    let mut gpus = load(&stand_in);
    assert_eq!(gpus.by_process(), Ok(BTreeMap::from([(7, 50.0)])), "a minute ago, and nobody was told yet");
    // Older than the newest that was seen.
    stand_in.follow("devices 1\nprocess 0 7\nsample 0 7 120000 50 0 0 0\n");
    assert_eq!(gpus.by_process(), Ok(BTreeMap::from([(7, 0.0)])));
}

#[test]
fn a_second_question_right_after_the_first_does_not_make_anybody_idle() {
    let stand_in = StandIn::build(Kind::Usual, TWO_BUSY);
    let mut gpus = load(&stand_in);
    assert_eq!(gpus.by_process(), Ok(busy()));
    let asked = stand_in.asked();
    assert_eq!(gpus.by_process(), Ok(busy()), "no new sample is no sign of idleness");
    assert!(stand_in.asked() > asked, "it was asked again");
}

#[test]
fn a_list_that_grows_while_it_is_asked_for_is_read_whole() {
    let stand_in = StandIn::build(Kind::Usual, &format!("{TWO_BUSY}grow 5\n"));
    assert_eq!(load(&stand_in).by_process(), Ok(busy()));
}

#[test]
fn a_list_that_never_fits_is_an_error_that_names_device_and_call() {
    let stand_in = StandIn::build(Kind::Usual, &format!("{TWO_BUSY}grow 2000000\n"));
    let error = load(&stand_in).by_process().unwrap_err();
    assert_eq!(error, GpuError::Failed { call: Call::Processes(0), code: Code::INSUFFICIENT_SIZE });
}

#[test]
fn no_library_is_no_nvml() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("libnvidia-ml.so.1");
    let error = Gpus::load(Some(&missing)).unwrap_err();
    assert!(matches!(&error, GpuError::NoLibrary { name, .. } if Path::new(name) == missing), "{error:?}");
    assert!(error.is_unsupported() && error.to_string().starts_with("no NVML: "), "{error}");

    std::fs::write(&missing, "no library at all").unwrap();
    assert!(matches!(Gpus::load(Some(&missing)), Err(GpuError::NoLibrary { .. })));
}

#[test]
fn a_library_that_lacks_a_function_is_named() {
    let stand_in = StandIn::build(Kind::WithoutSamples, "");
    let error = Gpus::load(Some(&stand_in.library())).unwrap_err();
    assert_eq!(error, GpuError::Incomplete { function: "nvmlDeviceGetProcessUtilization" });
    assert!(error.is_unsupported());
}

#[test]
fn an_initialisation_that_fails_is_named_and_tried_again() {
    let stand_in = StandIn::build(Kind::Usual, "answer nvmlInit_v2 -1 9\n");
    let error = Gpus::load(Some(&stand_in.library())).unwrap_err();
    assert_eq!(error.to_string(), "nvmlInit_v2: driver not loaded (9)");
    assert!(!error.is_unsupported());

    let mut reader = Reader::start(Some(stand_in.library())).unwrap();
    assert_eq!(reader.by_process(PATIENCE), Err(error));
    stand_in.follow(TWO_BUSY);
    assert_eq!(reader.by_process(PATIENCE), Ok(busy()));
}

#[test]
fn a_machine_without_devices_is_told_apart_from_idle_devices() {
    let stand_in = StandIn::build(Kind::Usual, "devices 0\n");
    assert_eq!(Gpus::load(Some(&stand_in.library())).unwrap_err(), GpuError::NoDevice);
}

#[test]
fn a_count_of_devices_that_makes_no_sense_is_an_error() {
    let stand_in = StandIn::build(Kind::Usual, "devices 1000000000\n");
    let error = Gpus::load(Some(&stand_in.library())).unwrap_err();
    assert_eq!(error, GpuError::Failed { call: Call::Count, code: Code::INVALID_ARGUMENT });
}

#[test]
fn a_lost_device_makes_the_whole_unknown_and_the_others_can_still_be_asked() {
    for (function, call) in [
        ("nvmlDeviceGetHandleByIndex_v2", Call::Handle(1)),
        ("nvmlDeviceGetComputeRunningProcesses", Call::Processes(1)),
        ("nvmlDeviceGetProcessUtilization", Call::Utilization(1)),
    ] {
        let stand_in = StandIn::build(Kind::Usual, TWO_BUSY);
        let mut gpus = load(&stand_in);
        assert_eq!(gpus.by_process(), Ok(busy()));

        stand_in.follow(&format!("{TWO_BUSY}answer {function} 1 15\n"));
        let lost = GpuError::Failed { call, code: Code::GPU_IS_LOST };
        assert_eq!(gpus.by_process(), Err(lost.clone()));
        assert!(!lost.is_unsupported());
        assert_eq!(lost.to_string(), format!("{function} for GPU 1: GPU is lost (15)"));
        let devices = gpus.by_device().unwrap();
        assert_eq!(devices, [Ok(BTreeMap::from([(100, 40.0), (101, 0.0)])), Err(lost)]);

        stand_in.follow(TWO_BUSY);
        assert_eq!(gpus.by_process(), Ok(busy()), "it came back");
    }
}

#[test]
fn a_device_that_is_not_listed_any_more_is_no_idle_device() {
    let stand_in = StandIn::build(Kind::Usual, TWO_BUSY);
    let mut gpus = load(&stand_in);
    for (devices, now) in [(1, 1), (0, 0)] {
        stand_in.follow(&format!("devices {devices}\n"));
        assert_eq!(gpus.by_process(), Err(GpuError::Vanished { before: 2, now }));
    }
}

#[test]
fn mig_is_not_supported_which_is_no_failure() {
    let mig = format!("{TWO_BUSY}answer nvmlDeviceGetProcessUtilization 0 3\n");
    let stand_in = StandIn::build(Kind::Usual, &mig);
    let mut gpus = load(&stand_in);
    let error = gpus.by_process().unwrap_err();
    assert_eq!(error, GpuError::NotSupported { call: Call::Utilization(0) });
    assert!(error.is_unsupported());
    assert!(gpus.by_device().unwrap()[1].is_ok());

    stand_in.follow(&format!("{mig}answer nvmlDeviceGetProcessUtilization 1 15\n"));
    let error = gpus.by_process().unwrap_err();
    assert!(!error.is_unsupported(), "a failure goes first: {error}");
}

#[test]
fn a_library_that_forgot_us_is_initialised_again() {
    let stand_in = StandIn::build(Kind::Usual, TWO_BUSY);
    let mut gpus = load(&stand_in);
    stand_in.follow(&format!("{TWO_BUSY}forget\n"));
    let forgotten = GpuError::Failed { call: Call::Count, code: Code::UNINITIALIZED };
    assert_eq!(gpus.by_process(), Err(forgotten));
    // The driver was replaced under us, and is not there yet.
    stand_in.follow(&format!("{TWO_BUSY}answer nvmlInit_v2 -1 18\n"));
    let error = gpus.by_process().unwrap_err();
    assert_eq!(error.to_string(), "nvmlInit_v2: driver and library versions differ (18)");
    stand_in.follow(TWO_BUSY);
    assert_eq!(gpus.by_process(), Ok(busy()));
}

#[test]
fn a_hang_is_named_costs_one_wait_and_ends_when_the_library_answers() {
    for (function, call) in
        [("nvmlInit_v2", Call::Init), ("nvmlDeviceGetProcessUtilization", Call::Utilization(0))]
    {
        let stand_in = StandIn::build(Kind::Usual, &format!("{TWO_BUSY}hang {function}\n"));
        let mut reader = Reader::start(Some(stand_in.library())).unwrap();
        let hung = Err(GpuError::Hung { call });
        // However short a time is enough to see a hang, once the thread has come that far.
        let until_hung = |reader: &mut Reader| {
            let mut answer = reader.by_process(Duration::from_millis(1));
            while answer != hung {
                assert!(matches!(answer, Err(GpuError::Hung { .. })), "{answer:?}");
                answer = reader.by_process(Duration::from_millis(1));
            }
        };
        until_hung(&mut reader);
        // With all the time of the world it is refused at once, or this test would never end.
        assert_eq!(reader.by_process(Duration::MAX), hung);

        stand_in.follow("process 0 1\n");
        let mut answer = reader.by_process(PATIENCE);
        while matches!(answer, Err(GpuError::Hung { .. })) {
            answer = reader.by_process(PATIENCE);
        }
        assert_eq!(answer, Ok(BTreeMap::from([(1, 0.0)])), "asked afresh: {function}");
    }
}

#[test]
fn a_hung_library_does_not_hold_whoever_gives_up() {
    let stand_in = StandIn::build(Kind::Usual, "hang nvmlDeviceGetCount_v2\n");
    let mut reader = Reader::start(Some(stand_in.library())).unwrap();
    assert!(matches!(reader.by_process(Duration::from_millis(1)), Err(GpuError::Hung { .. })));
    drop(reader);
    // The thread still looks into its script; let it go before that is gone.
    stand_in.follow("");
}
