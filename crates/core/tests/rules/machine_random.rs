//! Long random histories of `step`, held against the table, the laws and the second model.

use drowse_core::machine::step;
use drowse_core::status::StatusKind;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::machine_acts::{Act, history, worker};
use super::machine_bench::Bench;
use super::machine_laws::{obey, rows};
use super::machine_model::Model;
use super::machine_table::TABLE;

/// Lives through `acts`, and says which rows of the table were used.
fn live(mut bench: Bench, acts: &[Act]) -> Result<Vec<usize>, TestCaseError> {
    let mut model = Model::of(&bench.worker);
    let mut used = Vec::new();
    for (index, act) in acts.iter().enumerate() {
        if let Act::Wait(duration) = act {
            bench.wait(*duration);
        }
        if let Act::InService(yes) = act {
            bench.worker.in_service = *yes;
        }
        let before = bench.worker.clone();
        model.apply(act, &before, bench.now);
        let Some(event) = act.event(&before, bench.now) else { continue };
        if let Ok(done) = step(&before, &event, bench.now) {
            obey(&before, &event, &done, bench.now).map_err(|broken| {
                TestCaseError::fail(format!("act {index}: {broken}\n{event:?}\n{before:?}\n{done:?}"))
            })?;
            used.extend(rows(&before, &event, &done, bench.now).into_iter().flatten());
            bench.worker = done.worker;
        }
        let now_waits = matches!(
            bench.worker.status,
            drowse_core::status::Status::Pausing { wake: Some(_), .. }
                | drowse_core::status::Status::Stopping { wake: Some(_), .. }
        );
        prop_assert_eq!(
            (bench.worker.status.kind(), now_waits),
            (model.kind, model.waits),
            "act {}: {:?}\nbefore: {:?}\nmodel: {:?}",
            index,
            act,
            before,
            model
        );
        if bench.worker.status.kind() == StatusKind::Terminated {
            break;
        }
    }
    Ok(used)
}

#[test]
fn random_histories_keep_the_laws_and_agree_with_the_simpler_model() {
    // The same histories each time, so that the coverage asserted below cannot come and go.
    let config = Config { cases: 1_500, failure_persistence: None, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let reached = core::cell::RefCell::new(vec![0u32; TABLE.len()]);
    let histories = (worker(), history(120));
    let outcome = runner.run(&histories, |(bench, acts)| {
        for row in live(bench, &acts)? {
            reached.borrow_mut()[row] += 1;
        }
        Ok(())
    });
    if let Err(broken) = outcome {
        panic!("{broken}");
    }
    let reached = reached.into_inner();
    let never: Vec<&str> =
        TABLE.iter().zip(&reached).filter(|(_, count)| **count == 0).map(|(row, _)| row.says).collect();
    // `terminate_after` is off by default; a last look and the end of Drowse are no acts of a history. All of them
    // have their own tests.
    let elsewhere = [
        "terminate_after",
        "found in another run",
        "found awake, or in another run, before it is deleted",
        "found asleep otherwise before it is deleted",
        "found stopped otherwise before it is deleted",
        "drowse ends or lets go of it, and nothing would wake it",
    ];
    assert_eq!(never, elsewhere, "rows that no history reached: {reached:?}");
}

proptest! {
    #[test]
    fn new_random_histories_keep_the_laws_too(
        bench in worker(),
        acts in history(80),
    ) {
        live(bench, &acts)?;
    }
}
