//! Random life.
