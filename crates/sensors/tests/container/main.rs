//! What containers use: on simulated machines, and from the kernel of this one.

#![forbid(unsafe_code)]

mod machine;
mod real;
mod simulated;
