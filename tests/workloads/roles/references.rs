// A value behind an `Arc` that both threads clone and drop.
//
// ROLES: {"": "reference-count"}
// NEVER: lock ticket-lock counter

#[path = "../stage/stage.rs"]
mod stage;

use std::{process::ExitCode, sync::Arc, thread};

use stage::{run_for_argument, running, take_turn, verdict};

fn work(place: usize, value: Arc<u64>) -> u64 {
    take_turn(place);
    let mut n = 0;
    while running() {
        let own = std::hint::black_box(Arc::clone(&value));
        n += *own;
    }
    n
}

fn main() -> ExitCode {
    let value = Arc::new(1);
    let threads: Vec<_> = (0..2)
        .map(|place| {
            let value = Arc::clone(&value);
            thread::spawn(move || work(place, value))
        })
        .collect();
    run_for_argument();
    let counts: Vec<u64> = threads.into_iter().map(|thread| thread.join().unwrap_or(0)).collect();
    verdict(counts.iter().all(|n| *n > 0) && Arc::strong_count(&value) == 1, true)
}
