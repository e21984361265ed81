//! Rules against recorded or generated input, in one binary.

mod rules {
    mod and_logic;
    mod defects;
    mod eligibility;
    mod explain;
    mod laws;
    mod limits;
    mod matrix;
    mod random;
    mod schedules;
    mod telemetry;
    mod unknown;
    mod warnings;
    mod world;
}
