//! The emulated source gives the answers of workloads that have the same one when they run by themselves.

use std::time::Duration;

use cohtrace_tests::{
    answer::Variant::{self, Padded, Plain, Unpaired},
    live::{GRACE, Subject, has_emulator},
    tool::{cohtrace, run},
};

/// How long a workload runs in the emulator, milliseconds.
const RUN_MS: u64 = 1500;

fn check(name: &str, variant: Variant) {
    if !has_emulator() {
        return;
    }
    let subject = Subject::new(name, variant).unwrap_or_else(|error| panic!("{error:#}"));
    let mut command = cohtrace(["attach", "--json", "--source", "emulate"]);
    command.args(&subject.answer.tool_arguments).arg("--");
    command.arg(&subject.program.path).arg(RUN_MS.to_string());
    let ended = run(&mut command, Duration::from_millis(RUN_MS) + GRACE).expect_code(0);
    if let Err(error) = subject.judge(&ended) {
        panic!("{error:#}");
    }
}

#[test]
fn a_ring_whose_slots_take_little_each() {
    check("ring_of_slots", Plain);
}

#[test]
fn a_ring_of_which_each_thread_has_a_half() {
    check("ring_of_slots", Padded);
}

#[test]
fn nodes_of_a_type_that_cost_little_each() {
    check("heap_nodes", Plain);
}

#[test]
fn nodes_with_fields_apart() {
    check("heap_nodes", Padded);
}

#[test]
fn two_positions_of_a_queue_on_one_line() {
    check("queue_positions", Plain);
}

#[test]
fn two_positions_of_a_queue_apart() {
    check("queue_positions", Padded);
}

// Of its twin, whose counters cost nothing, any other line may be more than a hundredth: `line_sizes.rs` counts.
#[test]
fn two_counters_on_lines_that_make_one_of_128_bytes() {
    check("adjacent_lines", Plain);
}

#[test]
fn a_published_position_beside_two_counters_that_main_initialised() {
    check("published_position", Plain);
}

#[test]
fn two_counters_that_main_initialised() {
    check("published_position", Unpaired);
}

#[test]
fn a_published_position_apart_from_two_counters() {
    check("published_position", Padded);
}
