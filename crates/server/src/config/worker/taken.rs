//! What only one worker can be or have: an id, a container, an instance, a port.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
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

/// Who listens on a port already.
#[derive(Debug)]
struct Holder {
    address: IpAddr,
    by: String,
    /// Where that is written; the server's own address need not be.
    span: Option<Range<usize>>,
}

/// Whether two doors cannot both be open: who listens on all addresses listens on each.
pub(crate) fn listens_twice(one: SocketAddr, other: SocketAddr) -> bool {
    // Port 0 is a new one each time.
    one.port() == other.port()
        && one.port() != 0
        && (one.ip() == other.ip() || one.ip().is_unspecified() || other.ip().is_unspecified())
}

/// Whether who connects to `target` arrives at `listen`, which is a door of ours: it would lead to itself, or to
/// another that leads back.
pub(crate) fn leads_to(target: SocketAddr, listen: SocketAddr) -> bool {
    let (to, door) = (target.ip().to_canonical(), listen.ip().to_canonical());
    // To connect to all addresses is to connect to this machine. Which others are this machine's is not known here.
    let is_here = to.is_loopback() || to.is_unspecified();
    target.port() == listen.port()
        && (to == door || (is_here && door.is_unspecified()) || (to.is_unspecified() && door.is_loopback()))
}

/// What earlier workers have taken, with the place where they say so.
#[derive(Debug, Default)]
pub(super) struct Taken {
    things: BTreeMap<Thing, (WorkerId, Range<usize>)>,
    ports: BTreeMap<u16, Vec<Holder>>,
    /// Where workers answer, to be held against all doors once they are known.
    targets: Vec<(SocketAddr, Range<usize>)>,
}

impl Taken {
    /// Before the first worker: only the server's own port.
    pub(super) fn by_server(listen: SocketAddr) -> Self {
        let holder = Holder { address: listen.ip(), by: "the server itself".to_owned(), span: None };
        Self { ports: BTreeMap::from([(listen.port(), vec![holder])]), ..Self::default() }
    }

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

    pub(super) fn take_port(
        &mut self,
        report: &mut Report<'_>,
        section: &Section<'_>,
        listen: SocketAddr,
        id: &WorkerId,
    ) {
        // Port 0 is a new one each time.
        if listen.port() == 0 {
            return;
        }
        let span = section.span_of("listen");
        let holders = self.ports.entry(listen.port()).or_default();
        let clash = holders
            .iter()
            .find(|holder| listens_twice(SocketAddr::new(holder.address, listen.port()), listen));
        if let Some(holder) = clash {
            let fault = Fault::Taken { what: listen.to_string(), by: holder.by.clone() };
            let first = holder.span.as_ref().map(|first| (first, "first used here".to_owned()));
            report.add_with(&span, "listen", fault, first);
        } else {
            holders.push(Holder { address: listen.ip(), by: format!("worker {id}"), span: Some(span) });
        }
    }

    pub(super) fn note_target(&mut self, section: &Section<'_>, target: SocketAddr) {
        self.targets.push((target, section.span_of("target")));
    }

    /// When all doors are known: no worker may answer behind one of them.
    pub(super) fn check_targets(&self, report: &mut Report<'_>) {
        for (target, span) in &self.targets {
            let holders = self.ports.get(&target.port()).into_iter().flatten();
            let mut doors = holders.map(|holder| (holder, SocketAddr::new(holder.address, target.port())));
            if let Some((holder, door)) = doors.find(|(_, door)| leads_to(*target, *door)) {
                let rule = format!("{target} leads to {door}, where {} listens", holder.by);
                let first = holder.span.as_ref().map(|first| (first, "listens here".to_owned()));
                report.add_with(span, "target", Fault::rule(rule), first);
            }
        }
    }
}
