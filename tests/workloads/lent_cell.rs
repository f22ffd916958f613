// A thread-local struct of two atomics: its thread lends it to another, and each counts in a field of its own.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "tls", "name": "lent_cell::PER_THREAD"}, "fields": [
//     {"field": "PER_THREAD.own", "op": "rmw", "function": "lent_cell::count_own", "line": "@own", "thread": "own"},
//     {"field": "PER_THREAD.lent", "op": "rmw", "function": "lent_cell::count_lent", "line": "@lent", "thread": "lent"}]}]}
// ANSWER: {"variant": "padded", "flags": ["--cfg", "padded"], "findings": []}

use std::{
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
};

#[path = "stage/stage.rs"]
mod stage;

#[cfg_attr(padded, repr(align(64)))]
struct Field(AtomicU64);

#[repr(C, align(64))]
struct PerThread {
    own: Field,
    lent: Field,
}

thread_local! {
    static PER_THREAD: PerThread = const {
        PerThread {
            own: Field(AtomicU64::new(0)),
            lent: Field(AtomicU64::new(0)),
        }
    };
}

#[inline(never)]
fn count_own(counts: &PerThread) -> u64 {
    stage::take_turn(0);
    let mut n = 0;
    while stage::running() {
        counts.own.0.fetch_add(1, Relaxed); // @own
        n += 1;
    }
    n
}

#[inline(never)]
fn count_lent(counts: &PerThread) -> u64 {
    stage::take_turn(1);
    let mut n = 0;
    while stage::running() {
        counts.lent.0.fetch_add(1, Relaxed); // @lent
        n += 1;
    }
    n
}

/// The struct's own thread counts, and waits for the one that borrowed it.
fn own() -> bool {
    PER_THREAD.with(|counts| {
        thread::scope(|scope| {
            let borrower = thread::Builder::new().name("lent".into());
            let Ok(borrower) = borrower.spawn_scoped(scope, || count_lent(counts)) else {
                return false;
            };
            let own = count_own(counts);
            let lent = borrower.join().ok();
            let right = own == counts.own.0.load(Relaxed) && lent == Some(counts.lent.0.load(Relaxed));
            right && stage::same_line(&counts.own, &counts.lent) != cfg!(padded)
        })
    })
}

fn main() -> ExitCode {
    let Ok(owner) = thread::Builder::new().name("own".into()).spawn(own) else {
        return ExitCode::from(3);
    };
    stage::run_for_argument();
    let right = owner.join().is_ok_and(|right| right);
    stage::verdict(right, true)
}
