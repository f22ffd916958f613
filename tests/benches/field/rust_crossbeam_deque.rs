// The owner of a crossbeam deque pushes and pops while a thief steals.
//
// Known by deque.rs: `Inner` has `front`, `back` and the buffer's pointer side by side in one CachePadded: the very
// layout that taskflow/work-stealing-queue pull request 4 ("Avoids false sharing between _top and _bottom") took
// apart. The owner stores `back` and reads `front`, the thief swaps `front` and reads `back`: both truly shared, and in
// each other's way.
//
// FIELD: {"language": "rust", "crates": {"crossbeam-deque": "=0.8.6"}, "findings": [
//   {"kinds": ["mixed-sharing", "true-sharing"], "names": ["front", "back", "Inner"], "functions": ["main", "push", "pop", "steal"],
//    "advice_never": ["Mutex"]}],
//   "others": ["heap", "mapping", "epoch", "LOCAL", "Local", "Global"]}
use std::{thread, time::Duration};

use crossbeam_deque::{Steal, Worker};

fn main() {
    let worker = Worker::<u64>::new_lifo();
    let stealer = worker.stealer();
    thread::Builder::new().name("owner".into()).spawn(move || {
        let mut sum = 0_u64;
        for value in 0.. {
            worker.push(value);
            if worker.len() > 32 {
                if let Some(value) = worker.pop() {
                    sum = std::hint::black_box(sum.wrapping_add(value));
                }
            }
        }
    }).unwrap();
    thread::Builder::new().name("thief".into()).spawn(move || {
        let mut sum = 0_u64;
        loop {
            if let Steal::Success(value) = stealer.steal() {
                sum = std::hint::black_box(sum.wrapping_add(value));
            }
        }
    }).unwrap();
    thread::sleep(Duration::from_millis(300));
    println!("ready {}", std::process::id());
    thread::sleep(Duration::from_secs(120));
}
