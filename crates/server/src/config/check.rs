//! Values that are each right and do not go together, on the policies that workers really get.
//!
//! Two layers that never met on paper meet in a worker. So each listed worker's *resolved* policy is
//! checked; a layer that no listed worker uses, which is there for workers yet to be found, is checked on
//! top of the global one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use drowse_core::policy::{Conflict, Level, PolicyBook, Selectors, conflicts};

use super::policy::Layers;
use super::problem::{Fault, Report};
use super::worker::Worker;

/// Reports each conflict once, however many workers it hits.
pub(super) fn check(report: &mut Report<'_>, book: &PolicyBook, layers: &Layers, workers: &[Worker]) {
    let mut found: BTreeMap<String, Found> = BTreeMap::new();
    for worker in workers {
        for conflict in conflicts_of(book, &worker.selectors) {
            found
                .entry(conflict.to_string())
                .or_insert_with(|| Found { conflict, workers: Vec::new(), span: worker.span.clone() })
                .workers
                .push(worker.id.to_string());
        }
    }
    for selectors in unused(book, workers) {
        for conflict in conflicts_of(book, &selectors) {
            found.entry(conflict.to_string()).or_insert_with(|| Found {
                conflict,
                workers: Vec::new(),
                span: 0..0,
            });
        }
    }
    for found in found.into_values() {
        found.report(report, layers);
    }
}

fn conflicts_of(book: &PolicyBook, selectors: &Selectors) -> Vec<Conflict> {
    let (policy, provenance) = book.resolve_for(selectors);
    conflicts(&policy, &provenance, reads_telemetry(selectors))
}

/// What a worker is decides which interval it uses: only CML is read through its telemetry.
pub(crate) fn reads_telemetry(selectors: &Selectors) -> bool {
    selectors.kind.as_deref() == Some("cml")
}

/// Somebody whom each layer would be for that is no listed worker's.
fn unused(book: &PolicyBook, workers: &[Worker]) -> Vec<Selectors> {
    let mut used = BTreeSet::new();
    for selectors in workers.iter().map(|worker| &worker.selectors) {
        used.insert((Level::Global, None));
        used.insert((Level::Region, selectors.region.as_deref()));
        used.insert((Level::Type, selectors.kind.as_deref()));
        used.insert((Level::Group, selectors.group.as_deref()));
        used.insert((Level::Owner, selectors.owner.as_deref()));
        used.insert((Level::Worker, Some(selectors.worker.as_str())));
    }
    book.layers()
        .iter()
        .filter(|layer| !used.contains(&(layer.level, layer.name.as_deref())))
        .map(|layer| {
            let mut selectors = Selectors::default();
            let name = layer.name.clone();
            match layer.level {
                Level::BuiltIn | Level::Global => {}
                Level::Region => selectors.region = name,
                Level::Type => selectors.kind = name,
                Level::Group => selectors.group = name,
                Level::Owner => selectors.owner = name,
                Level::Worker => selectors.worker = name.unwrap_or_default(),
            }
            selectors
        })
        .collect()
}

struct Found {
    conflict: Conflict,
    workers: Vec<String>,
    /// Where the first of the workers stands.
    span: Range<usize>,
}

impl Found {
    fn report(self, report: &mut Report<'_>, layers: &Layers) {
        let conflict = &self.conflict;
        let place = layers.place(&conflict.origin, conflict.key);
        let with_place = layers.place(&conflict.with_origin, conflict.with);
        let key = conflict.key.name();
        let note = match (place, with_place) {
            (Some(_), Some(other)) => Some((other, format!("{} is set here", conflict.with))),
            _ => None,
        };
        let span = place.or(with_place).unwrap_or(&self.span).clone();
        let note = note.map(|(span, message)| (span.clone(), message));
        let fault = Fault::Conflict { conflict: Box::new(self.conflict), workers: self.workers };
        report.add_with(&span, key, fault, note.as_ref().map(|(span, message)| (span, message.clone())));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{errors, errors_in_full, parsed_with};

    const WORKER: &str = "[[worker]]\nid = \"w\"\ndriver = \"sim\"\ngroup = \"g\"\n";

    #[test]
    fn both_layers_and_both_places_are_named() {
        let text = format!(
            "[policy]\ncheck_interval = \"20m\"\nwindow = 3\n[policy.group.g]\nidle_timeout = \"30m\"\n{WORKER}"
        );
        assert_eq!(
            errors_in_full(&text),
            "f:2:18: check_interval 20m × window 3 is longer than idle_timeout 30m: the window could not fill in time (check_interval is set by: global; idle_timeout by: group g), for worker w\n  2 | check_interval = \"20m\"\n    |                  ^^^^^\nf:5:16: idle_timeout is set here\n  5 | idle_timeout = \"30m\"\n    |                ^^^^^\n"
        );
    }

    #[test]
    fn a_conflict_with_a_built_in_value_has_one_place() {
        let expected = "stale_after 40s must be more than two heartbeat intervals (30s each), or one late beat takes a healthy worker offline (stale_after is set by: worker w; heartbeat_interval by: built-in), for worker w";
        let text = format!("{WORKER}policy.stale_after = \"40s\"\n[policy.group.g]\n");
        assert_eq!(errors(&text), [format!("f:5:22: {expected}")]);
    }

    #[test]
    fn a_conflict_is_told_once_however_many_it_hits() {
        let text = "[policy]\nstale_after = \"40s\"\n[policy.group.g]\n".to_owned()
            + WORKER
            + &WORKER.replace("\"w\"", "\"x\"")
            + &WORKER.replace("\"w\"", "\"y\"");
        let errors = errors(&text);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].ends_with("for worker w and 2 more"), "{errors:?}");
    }

    #[test]
    fn a_layer_for_workers_yet_to_be_found_is_checked_too() {
        let errors = errors("[policy.owner.o]\nlease_ttl_max = \"2d\"");
        assert_eq!(
            errors,
            [
                "f:2:17: lease_ttl_max 2d is longer than lease_ceiling 1d (lease_ttl_max is set by: owner o; lease_ceiling by: built-in)"
            ]
        );
    }

    #[test]
    fn what_a_more_specific_layer_mends_is_no_conflict() {
        let text = format!(
            "[policy.group.g]\ncheck_interval = \"20m\"\nidle_timeout = \"10m\"\n{WORKER}policy.idle_timeout = \"1h\""
        );
        assert_eq!(errors(&text), [""; 0]);
    }

    #[test]
    fn a_conflict_with_the_environment_names_the_variable() {
        let variables = [("IDLE_DETECTION_INTERVAL".to_owned(), "7200".to_owned())];
        let problems = parsed_with("[policy]\nidle_timeout = \"1h\"", &[], &variables).problems;
        assert_eq!(problems.len(), 1);
        let shown = problems[0].to_string();
        assert!(
            shown.contains("check_interval is set by: global (environment, IDLE_DETECTION_INTERVAL); idle_timeout by: global"),
            "{shown}"
        );
    }
}
