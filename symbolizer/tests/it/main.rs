//! One binary for all tests that need compiled files.

#![expect(
    clippy::unwrap_used,
    clippy::needless_raw_string_hashes,
    reason = "every function here is part of a test, and blessed texts have hashes"
)]

mod access;
mod access_truth;
mod account;
mod code;
mod crafted;
mod data;
mod describe;
mod digests;
mod discriminators;
mod dwz;
mod hostile;
mod hostile_files;
mod lookup;
mod memory;
mod minidebug;
mod pointers;
mod prototyped;
mod self_test;
mod separate;
mod shelf;
mod split;
mod thread_local;
mod toolchain;
mod tree;
mod units;
