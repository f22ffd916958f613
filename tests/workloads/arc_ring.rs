// The two ends of a ring behind an `Arc`, each moved by a thread of its own through atomics that are inlined.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "heap", "type": "arc_ring::Ring<u64>"}, "fields": [
//     {"field": ".tail", "offset": 0, "op": "rmw", "function": "arc_ring::fill", "line": "@tail", "thread": "fill"},
//     {"field": ".head", "offset": 8, "op": "rmw", "function": "arc_ring::drain", "line": "@head", "thread": "drain"}]}]}
// ANSWER: {"variant": "padded", "flags": ["--cfg", "padded"], "findings": []}

use std::{
    cell::UnsafeCell,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::{AcqRel, Acquire}},
    },
    thread,
};

#[path = "stage/stage.rs"]
mod stage;

#[cfg_attr(padded, repr(align(64)))]
struct Index(AtomicUsize);

#[repr(C, align(64))]
struct Ring<T> {
    slots: UnsafeCell<[Option<T>; 2]>,
    tail: Index,
    head: Index,
}

// SAFETY: nobody looks into the slots while threads run.
unsafe impl<T: Send> Sync for Ring<T> {}

struct Producer<T> {
    ring: Arc<Ring<T>>,
}

struct Consumer<T> {
    ring: Arc<Ring<T>>,
}

impl<T> Producer<T> {
    fn advance(&self) -> usize {
        self.ring.tail.0.fetch_add(1, AcqRel) // @tail
    }
}

impl<T> Consumer<T> {
    fn advance(&self) -> usize {
        self.ring.head.0.fetch_add(1, AcqRel) // @head
    }
}

#[inline(never)]
fn fill(own: Producer<u64>) -> usize {
    stage::take_turn(0);
    let mut n = 0;
    while stage::running() {
        n = own.advance() + 1;
    }
    n
}

#[inline(never)]
fn drain(own: Consumer<u64>) -> usize {
    stage::take_turn(1);
    let mut n = 0;
    while stage::running() {
        n = own.advance() + 1;
    }
    n
}

fn main() -> ExitCode {
    let index = || Index(AtomicUsize::new(0));
    let (slots, tail, head) = (UnsafeCell::new([Some(1), None]), index(), index());
    let ring = Arc::new(Ring { slots, tail, head });
    let (producer, consumer) = (Producer { ring: ring.clone() }, Consumer { ring: ring.clone() });
    let filler = thread::Builder::new().name("fill".into()).spawn(|| fill(producer));
    let drainer = thread::Builder::new().name("drain".into()).spawn(|| drain(consumer));
    let (Ok(filler), Ok(drainer)) = (filler, drainer) else {
        return ExitCode::from(3);
    };
    stage::run_for_argument();
    let right = filler.join().ok() == Some(ring.tail.0.load(Acquire)) && drainer.join().ok() == Some(ring.head.0.load(Acquire));
    stage::verdict(right, stage::same_line(&ring.tail, &ring.head) != cfg!(padded))
}
