//! Every variant of every workload, live: what its key says is found, and nothing else. A file that is put into
//! `tests/workloads/` with an `ANSWER:` is a test.

use std::process::ExitCode;

use cohtrace_tests::{answer::Observer, live::check, workload};
use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let workloads = workload::all().unwrap_or_else(|error| panic!("{error:#}"));
    let mut trials = Vec::new();
    for workload in workloads {
        for answer in workload.answers {
            if answer.observer == Observer::Allocations {
                continue;
            }
            let name = workload.name.clone();
            let title = format!("{name}::{}", answer.variant.name());
            trials.push(Trial::test(title, move || {
                check(&name, &answer);
                Ok(())
            }));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
