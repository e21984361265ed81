//! The server of Drowse. So far it holds the configuration that everything else will run on.

#![forbid(unsafe_code)]

pub mod config;
