//! The loop, the facade and the store together, on a simulated driver and a clock that stands still.

#![expect(clippy::unwrap_used, reason = "all of this is tests, its helpers too")]

mod reconcile {
    mod bench;
    mod brake;
    mod driver;
    mod guests;
    mod head_start;
    mod holds;
    mod idle;
    mod journal;
    mod last_look;
    mod law;
    mod life;
    mod never_fought;
    mod outside;
    mod policy;
    mod restart;
    mod subject;
}
