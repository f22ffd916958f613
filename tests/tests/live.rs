//! Every variant of every workload, live: what its key says is found, and nothing else. A file that is put into
//! `tests/workloads/` with an `ANSWER:` is a test, by `tests/build.rs`.

use cohtrace_tests::{answer::Variant, live, workload};

fn check(name: &str, variant: Variant) {
    let workload = workload::named(name).unwrap_or_else(|error| panic!("{error:#}"));
    let answer = workload.answer(variant);
    live::check(name, answer.unwrap_or_else(|error| panic!("{error:#}")));
}

include!(concat!(env!("OUT_DIR"), "/workloads.rs"));
