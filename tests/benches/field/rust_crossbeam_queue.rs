// One producer and one consumer with a crossbeam ArrayQueue of 1024 places.
//
// Known by array_queue.rs: `head` and `tail` are CachePadded, so none of them suffers from the other. `tail` is swapped
// by the producer and read by the consumer where the queue seems empty, `head` the other way round. Each place has a
// stamp that both threads store and read: true sharing of the places, four to a line, over many lines.
//
// FIELD: {"language": "rust", "crates": {"crossbeam-queue": "=0.3.12"}, "findings": [
//   {"kinds": ["true-sharing", "mixed-sharing"], "names": ["stamp", "Slot", "head", "tail", "ArrayQueue"], "functions": ["main", "push", "pop"],
//    "advice_never": ["Mutex"]}],
//   "others": ["heap", "mapping"]}
use std::{sync::Arc, thread, time::Duration};

use crossbeam_queue::ArrayQueue;

fn main() {
    let queue = Arc::new(ArrayQueue::<u64>::new(1024));
    let other = queue.clone();
    thread::Builder::new().name("producer".into()).spawn(move || {
        let mut value = 0;
        loop {
            if queue.push(value).is_ok() {
                value += 1;
            }
        }
    }).unwrap();
    thread::Builder::new().name("consumer".into()).spawn(move || {
        let mut sum = 0_u64;
        loop {
            if let Some(value) = other.pop() {
                sum = std::hint::black_box(sum.wrapping_add(value));
            }
        }
    }).unwrap();
    thread::sleep(Duration::from_millis(300));
    println!("ready {}", std::process::id());
    thread::sleep(Duration::from_secs(120));
}
