//! Harness for the live tests.
