// A total that two threads raise by compare-and-swap: read, then exchanged if it is still the same. The read brings the
// line for reading, the exchange asks for it again. With one instruction that adds there is nothing to read first.
//
// ANSWER: {"variant": "plain", "observer": "windows", "findings": [
//   {"kind": "true-sharing", "object": {"kind": "global", "name": "swapped_total::TOTALS"}, "fields": [
//     {"field": "TOTALS.first", "op": "load", "function": "swapped_total::raise", "line": "@read", "thread": "first"},
//     {"field": "TOTALS.first", "op": "rmw", "function": "swapped_total::raise", "line": "@swap", "thread": "first"},
//     {"field": "TOTALS.first", "op": "rmw", "function": "swapped_total::raise", "line": "@swap", "thread": "second"}]}],
//   "pairs": [{"load": {"function": "swapped_total::raise", "line": "@read", "field": "TOTALS.first"},
//     "store": {"function": "swapped_total::raise", "line": "@swap", "field": "TOTALS.first"}, "op": "rmw", "hint": true}]}
// ANSWER: {"variant": "unpaired", "observer": "windows", "flags": ["--cfg", "unpaired"], "findings": [
//   {"kind": "true-sharing", "object": {"kind": "global", "name": "swapped_total::TOTALS"}, "fields": [
//     {"field": "TOTALS.first", "op": "rmw", "function": "swapped_total::raise", "line": "@add", "thread": "first"},
//     {"field": "TOTALS.first", "op": "rmw", "function": "swapped_total::raise", "line": "@add", "thread": "second"}]}],
//   "pairs": [{"load": {"function": "swapped_total::raise", "line": "@add", "field": "TOTALS.first"}, "same_instruction": true,
//     "store": {"function": "swapped_total::raise", "line": "@add", "field": "TOTALS.first"}, "op": "rmw", "hint": false}]}
// ANSWER: {"variant": "padded", "observer": "windows", "flags": ["--cfg", "padded"], "findings": []}

use std::{
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
};

#[path = "stage/stage.rs"]
mod stage;

#[cfg_attr(padded, repr(align(64)))]
struct Total(AtomicU64);

/// Both threads raise the first one, unless they are kept apart.
#[repr(C, align(64))]
struct Totals {
    first: Total,
    second: Total,
}

static TOTALS: Totals = Totals {
    first: Total(AtomicU64::new(0)),
    second: Total(AtomicU64::new(0)),
};

/// Returns how often it raised the total.
#[inline(never)]
fn raise(total: &AtomicU64) -> u64 {
    let mut n = 0;
    while stage::running() {
        if cfg!(unpaired) {
            total.fetch_add(1, Relaxed); // @add
            n += 1;
        } else {
            let seen = total.load(Relaxed); // @read
            let swapped = total.compare_exchange(seen, seen + 1, Relaxed, Relaxed); // @swap
            n += u64::from(swapped.is_ok());
        }
    }
    n
}

fn first() -> u64 {
    stage::take_turn(0);
    raise(&TOTALS.first.0)
}

fn second() -> u64 {
    stage::take_turn(1);
    raise(if cfg!(padded) { &TOTALS.second.0 } else { &TOTALS.first.0 })
}

fn main() -> ExitCode {
    let start = |name: &str, role: fn() -> u64| thread::Builder::new().name(name.into()).spawn(role);
    let (Ok(first), Ok(second)) = (start("first", first), start("second", second)) else {
        return ExitCode::from(3);
    };
    stage::run_for_argument();
    let raised = [first.join(), second.join()].map(Result::unwrap_or_default);
    let totals = [&TOTALS.first, &TOTALS.second].map(|total| total.0.load(Relaxed));
    let right = raised.iter().all(|&n| n > 0) && raised.iter().sum::<u64>() == totals.iter().sum::<u64>();
    stage::verdict(right, stage::same_line(&TOTALS.first, &TOTALS.second) != cfg!(padded))
}
