//! Rules against recorded or generated input, in one binary.

mod rules {
    mod scenarios;
    mod telemetry;
}
