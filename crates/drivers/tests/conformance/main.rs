//! One suite that every driver passes.
//!
//! [`laws`] hold for all of them: the simulated driver, and the process driver on each freezer of the machine.
//! [`containers`] are about a Docker engine, a real one that each test starts for itself. [`processes`] are about real processes: restarts, reused pids, children that run away. Each is run once for
//! each freezer. A freezer that the machine does not have at all is reported and not exercised; one that is there
//! and cannot be used is a failure that says what to do.

mod containers;
mod engine;
mod graphics;
mod identity;
mod laws;
mod processes;
mod rig;
#[path = "../../../sensors/tests/gpu/stand_in.rs"]
#[expect(dead_code, reason = "what the tests of the sensor do with it")]
mod stand_in;
mod strange;
mod ways;
mod workload;

use rig::{Kind, Rig, run};

/// One test for each law. A macro, because only then each law is a test of its own, with its own name and
/// process.
macro_rules! conforms {
    ($name:ident, $kind:expr, $module:ident: $($law:ident)*) => {
        mod $name {
            use super::*;
            $(
                #[test]
                fn $law() {
                    run($kind, async |rig: &mut Rig| $module::$law(rig).await);
                }
            )*
        }
    };
}

macro_rules! all_laws {
    ($name:ident, $kind:expr) => {
        conforms!($name, $kind, laws:
            freeze_stops_progress_and_thaw_resumes_it
            repeating_an_action_is_already_true
            a_stop_with_grace_lets_it_put_things_in_order
            what_ignores_sigterm_is_killed
            a_stop_from_frozen_is_heard
            an_exit_is_told_once_with_its_code
            an_end_that_was_asked_for_is_told_in_the_answer_alone
            what_cannot_run_is_refused_and_can_be_tried_again
            what_does_not_run_cannot_be_frozen
            cpu_grows_while_busy_and_not_while_frozen
            a_deadline_is_honoured
            a_new_run_has_a_new_boot_and_a_thaw_does_not
            a_hook_ends_with_its_code
            a_frozen_worker_is_not_forgotten
            nothing_is_left_after_terminate
            a_stranger_is_refused
            start_wakes_what_is_frozen
        );
    };
}

macro_rules! all_process_laws {
    ($name:ident, $kind:expr) => {
        conforms!($name, $kind, processes:
            a_new_driver_adopts_what_runs
            a_new_driver_adopts_what_is_frozen
            one_word_lets_it_go_on_and_only_when_all_is_ready
            a_reused_pid_is_never_signalled
            killing_drowse_does_not_hurt_the_worker
            killing_drowse_does_not_hurt_a_frozen_worker
            children_that_left_the_group_are_frozen_too
            a_child_that_outlives_its_parent_is_killed
            what_left_the_session_and_lost_its_parent
            a_retried_stop_signals_once_and_another_intent_again
            an_end_that_a_stop_missed_is_told
            output_is_bounded
            ice_ends_with_its_run
            cgroups_of_the_workers_own_are_part_of_it
            what_a_run_left_behind_is_gone_before_the_next
            thaw_all_needs_no_driver
            a_freeze_whose_caller_leaves_is_taken_back
            a_hook_that_does_not_end_is_killed
            the_helper_runs_nothing_until_told
            secrets_of_drowse_are_not_the_workers
            processes_and_sockets_are_counted
        );
    };
}

conforms!(docker_containers, Kind::Docker, containers:
    an_engine_that_is_away_says_nothing
    an_engine_that_hangs_is_not_waited_for
    a_freeze_whose_caller_left_is_taken_back
    what_is_removed_under_us_is_gone
    what_others_do_is_hinted
    made_anew_it_is_another_run
    a_label_means_one_container
    a_retried_stop_signals_once_and_another_intent_again
    a_stop_is_not_undone_by_a_restart_policy
    what_was_frozen_is_known_after_a_restart
    a_hook_that_does_not_end_is_killed
    a_hook_is_run_in_the_container_and_needs_it_to_run
    a_hook_that_leaves_a_child_behind_ends_with_its_own_code
    what_it_uses_is_measured
    bytes_are_counted_both_ways_and_not_on_loopback
    files_in_it_are_seen_and_people_in_it_are_told
    fifty_are_read_while_the_engine_hangs
    the_edge_is_where_the_policy_puts_it
);

conforms!(docker_graphics, Kind::Docker, graphics:
    nobodys_look_takes_anothers_use_away
    it_is_looked_between_checks
    who_has_ended_used_it_all_the_same
    mig_concerns_those_who_are_on_it
    a_library_that_fails_half_way_is_unknown_and_named
    what_nobody_looked_at_is_not_quiet
    who_was_on_a_device_has_one
);

conforms!(docker_ways, Kind::Docker, ways:
    an_address_is_a_runs_and_stands_as_long_as_that
    the_way_leads_to_the_present_run_whatever_was_last_seen
    a_container_that_is_moved_to_another_network_is_asked_for_again
    a_port_is_where_the_engine_has_really_bound_it
    asking_the_way_keeps_no_end_from_anybody
);

conforms!(docker_identity, Kind::Docker, identity:
    a_name_is_never_the_beginning_of_an_id
    of_two_with_a_label_both_are_named_and_the_frozen_one_is_woken
    a_name_is_whoever_bears_it_now
    a_label_that_comes_to_mean_two_freezes_neither
    nothing_is_kept_of_a_container_that_is_gone
    files_that_do_not_answer_concern_their_container_only
);

all_laws!(sim, Kind::Sim);
all_laws!(cgroup_v2, Kind::V2);
all_laws!(cgroup_v1, Kind::V1);
all_laws!(signals, Kind::Signals);
all_laws!(docker, Kind::Docker);

all_process_laws!(processes_in_cgroup_v2, Kind::V2);
all_process_laws!(processes_in_cgroup_v1, Kind::V1);
all_process_laws!(processes_with_signals, Kind::Signals);

/// The best that can be used is taken, and what was passed over is told.
#[test]
fn the_best_freezer_is_taken() {
    use drowse_drivers::process::cgroup::{Choice, Freezer, find};
    let name = format!("drowse-test-{}", std::process::id());
    let found = find(Choice::Auto, &name).expect("there is always SIGSTOP");
    eprintln!("{}; passed over: {:?}", found.freezer, found.passed_over);
    let passed_over = match found.freezer {
        Freezer::V2 { .. } => 0,
        Freezer::V1 { .. } => 1,
        Freezer::Signals => 2,
    };
    assert_eq!(found.passed_over.len(), passed_over);
    assert_eq!(find(Choice::V2, &name).is_ok(), passed_over == 0);
}

/// Not a law: what [`processes::killing_drowse_does_not_hurt_the_worker`] kills.
#[test]
#[ignore = "started by other tests, in a process of its own"]
fn host() {
    processes::host();
}
