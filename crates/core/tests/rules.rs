//! Rules against recorded or generated input, in one binary.

mod rules {
    mod and_logic;
    mod defects;
    mod eligibility;
    mod explain;
    mod laws;
    mod limits;
    mod machine;
    mod machine_acts;
    mod machine_bench;
    mod machine_fence;
    mod machine_given_up;
    mod machine_last_look;
    mod machine_late;
    mod machine_laws;
    mod machine_model;
    mod machine_model_looks;
    mod machine_random;
    mod machine_rules;
    mod machine_table;
    mod matrix;
    mod random;
    mod scenarios;
    mod schedules;
    mod sinking;
    mod spared;
    mod telemetry;
    mod unknown;
    mod warnings;
    mod world;
}
