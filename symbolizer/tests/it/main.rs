//! One binary for all tests that need compiled files.

mod self_test;
