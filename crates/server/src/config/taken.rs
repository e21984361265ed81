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
        // Who listens on all addresses listens on each.
        let clash = holders.iter().find(|holder| {
            holder.address == listen.ip() || holder.address.is_unspecified() || listen.ip().is_unspecified()
        });
        if let Some(holder) = clash {
            let fault = Fault::Taken { what: listen.to_string(), by: holder.by.clone() };
            let first = holder.span.as_ref().filter(|first| *first != span);
            let first = first.map(|first| (first, "first used here".to_owned()));
            report.add_with(span, field, fault, first);
        } else {
            holders.push(Holder { address: listen.ip(), by: by.to_owned(), span: Some(span.clone()) });
        }
    }
}
