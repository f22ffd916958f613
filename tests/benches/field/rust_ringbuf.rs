// One producer and one consumer with the crate ringbuf 0.2.2.
//
// Known by ring_buffer.rs: in that version `head` and `tail` are plain AtomicUsize members side by side in the
// RingBuffer that both halves hold by an Arc; 0.2.8 wraps each in CachePadded. Each is stored by one thread and read by
// the other: truly shared, and in each other's way. Measured on two CPUs, 20 million values take 0.75 s (0.51 to 0.99)
// here and 0.48 s (0.24 to 1.8) with 0.2.8: what lies together costs something.
//
// FIELD: {"language": "rust", "crates": {"ringbuf": "=0.2.2"}, "findings": [
//   {"kinds": ["mixed-sharing"], "names": ["head", "tail", "RingBuffer"], "functions": ["push", "pop", "main"],
//    "advice_says": ["repr(align", "CachePadded"], "advice_never": ["Mutex"]}],
//   "others": ["heap", "mapping"]}
use std::{thread, time::Duration};

fn main() {
    let (mut producer, mut consumer) = ringbuf::RingBuffer::<u64>::new(1024).split();
    thread::Builder::new().name("producer".into()).spawn(move || {
        let mut value = 0;
        loop {
            if producer.push(value).is_ok() {
                value += 1;
            }
        }
    }).unwrap();
    thread::Builder::new().name("consumer".into()).spawn(move || {
        let mut sum = 0_u64;
        loop {
            if let Some(value) = consumer.pop() {
                sum = std::hint::black_box(sum.wrapping_add(value));
            }
        }
    }).unwrap();
    thread::sleep(Duration::from_millis(300));
    println!("ready {}", std::process::id());
    thread::sleep(Duration::from_secs(120));
}
