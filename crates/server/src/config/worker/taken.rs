//! What only one worker can be: an id, a container, an instance.

use std::collections::BTreeMap;
use std::ops::Range;

use drowse_core::id::WorkerId;
use drowse_core::policy::Selectors;

use super::super::problem::{Fault, Report};
use super::super::section::Section;
use super::{Container, Driver};

/// What only one worker can be or have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Thing {
    Id(String),
    Container(String),
    Instance(Option<String>, String),
}

impl Thing {
    pub(super) const fn field(&self) -> &'static str {
        match self {
            Thing::Id(_) => "id",
            Thing::Container(_) => "container",
            Thing::Instance(..) => "instance_id",
        }
    }

    fn name(&self) -> &str {
        match self {
            Thing::Id(name) | Thing::Container(name) | Thing::Instance(_, name) => name,
        }
    }
}

pub(super) fn thing(driver: &Driver, selectors: &Selectors) -> Option<Thing> {
    match driver {
        Driver::Docker { container: Container::Named(name) } => Some(Thing::Container(name.clone())),
        Driver::Ec2 { instance_id, .. } => {
            Some(Thing::Instance(selectors.region.clone(), instance_id.clone()))
        }
        Driver::Docker { container: Container::Labelled(_) }
        | Driver::Process { .. }
        | Driver::Qemu { .. }
        | Driver::Sim => None,
    }
}

/// What earlier workers have taken, with the place where they say so.
#[derive(Debug, Default)]
pub(super) struct Taken {
    things: BTreeMap<Thing, (WorkerId, Range<usize>)>,
}

impl Taken {
    pub(super) fn take(
        &mut self,
        report: &mut Report<'_>,
        section: &Section<'_>,
        field: &'static str,
        thing: Thing,
        id: &WorkerId,
    ) {
        let span = section.span_of(field);
        match self.things.get(&thing) {
            Some((other, first)) => {
                let by = format!("worker {other}");
                let fault = Fault::Taken { what: format!("{:?}", thing.name()), by };
                report.add_with(&span, field, fault, Some((first, "first used here".to_owned())));
            }
            None => {
                self.things.insert(thing, (id.clone(), span));
            }
        }
    }
}
