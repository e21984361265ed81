//! Ports of the file, each of which has one owner.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use super::problem::{Fault, Report};

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

/// Ports that have been taken, with the place where that is said.
#[derive(Debug)]
pub(super) struct Ports(BTreeMap<u16, Vec<Holder>>);

impl Ports {
    /// At first: only the server's own.
    pub(super) fn of_server(listen: SocketAddr) -> Self {
        let holder = Holder { address: listen.ip(), by: "the server itself".to_owned(), span: None };
        Self(BTreeMap::from([(listen.port(), vec![holder])]))
    }

    pub(super) fn take(
        &mut self,
        report: &mut Report<'_>,
        span: &Range<usize>,
        field: &'static str,
        listen: SocketAddr,
        by: &str,
    ) {
        // Port 0 is a new one each time.
        if listen.port() == 0 {
            return;
        }
        let holders = self.0.entry(listen.port()).or_default();
        let clash = holders
            .iter()
            .find(|holder| listens_twice(SocketAddr::new(holder.address, listen.port()), listen));
        if let Some(holder) = clash {
            let fault = Fault::Taken { what: listen.to_string(), by: holder.by.clone() };
            let first = holder.span.as_ref().filter(|first| *first != span);
            let first = first.map(|first| (first, "first used here".to_owned()));
            report.add_with(span, field, fault, first);
        } else {
            holders.push(Holder { address: listen.ip(), by: by.to_owned(), span: Some(span.clone()) });
        }
    }

    /// When all doors are known: nobody may answer behind one of them.
    pub(super) fn check_target(
        &self,
        report: &mut Report<'_>,
        span: &Range<usize>,
        field: &'static str,
        target: SocketAddr,
    ) {
        let holders = self.0.get(&target.port()).into_iter().flatten();
        let mut doors = holders.map(|holder| (holder, SocketAddr::new(holder.address, target.port())));
        if let Some((holder, door)) = doors.find(|(_, door)| leads_to(target, *door)) {
            let rule = format!("{target} leads to {door}, where {} listens", holder.by);
            let first = holder.span.as_ref().map(|first| (first, "listens here".to_owned()));
            report.add_with(span, field, Fault::rule(rule), first);
        }
    }
}
