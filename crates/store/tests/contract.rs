//! The contract of the store: one suite, run on both engines.
//!
//! Each rule of "what must hold under any interleaving" that concerns the store has a module here. Where two
//! parties meet they are driven statement by statement (`support::Party`). The comment at such a test says
//! which protection was taken away to see it fail.

#![expect(clippy::unwrap_used, reason = "all of this is tests, its helpers too")]
#![expect(clippy::redundant_closure_for_method_calls, reason = "`|t| t.…` is how a transaction is written")]

mod contract {
    mod alone;
    mod books;
    mod claims;
    mod cluster;
    mod evidence;
    mod failure;
    mod fleet;
    mod holds;
    mod journal;
    mod migrations;
    mod races;
    mod restart;
    mod support;
    mod workers;
}
