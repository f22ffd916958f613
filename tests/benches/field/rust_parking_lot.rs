// Two threads add to one number behind a parking_lot Mutex.
//
// Known by the source: the lock's byte and the number are one static of 16 bytes; both threads write both. True
// sharing, which no layout changes: measured on two CPUs, the number on a line of its own gives nothing (52 ms both).
//
// FIELD: {"language": "rust", "crates": {"parking_lot": "=0.12.5"}, "findings": [
//   {"kinds": ["true-sharing"], "names": ["TOTAL"], "functions": ["main"],
//    "advice_never": ["repr(align", "CachePadded"]}],
//   "others": ["parking_lot", "HASHTABLE"]}
use std::{thread, time::Duration};

use parking_lot::Mutex;

static TOTAL: Mutex<u64> = Mutex::new(0);

fn main() {
    for name in ["left", "right"] {
        thread::Builder::new().name(name.into()).spawn(|| loop {
            *TOTAL.lock() += 1;
        }).unwrap();
    }
    thread::sleep(Duration::from_millis(300));
    println!("ready {}", std::process::id());
    thread::sleep(Duration::from_secs(120));
}
