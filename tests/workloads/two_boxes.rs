// Two boxes made in functions of their own, neighbours in memory.
//
// ANSWER: {"variant": "plain", "observer": "allocations", "tool_arguments": ["--heap"], "findings": [
//   {"kind": "false-sharing", "object": {"kind": "heap"}, "fields": [
//     {"offset": 0, "op": "rmw", "function": "two_boxes::send", "line": "@sent", "thread": "send"},
//     {"offset": 32, "op": "rmw", "function": "two_boxes::receive", "line": "@received", "thread": "receive"}]}]}
// ANSWER: {"variant": "padded", "tool_arguments": ["--heap"], "flags": ["--cfg", "padded"], "findings": []}

use std::{
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
};

#[path = "stage/stage.rs"]
mod stage;

#[cfg_attr(padded, repr(align(64)))]
struct Sent(AtomicU64);

#[cfg_attr(padded, repr(align(64)))]
struct Received(AtomicU64, u64);

#[inline(never)]
fn make_sent() -> Box<Sent> {
    Box::new(Sent(AtomicU64::new(0))) // @make_sent
}

#[inline(never)]
fn make_received() -> Box<Received> {
    Box::new(Received(AtomicU64::new(0), 7)) // @make_received
}

#[inline(never)]
fn send(own: &Sent) -> u64 {
    stage::take_turn(0);
    let mut n = 0;
    while stage::running() {
        own.0.fetch_add(1, Relaxed); // @sent
        n += 1;
    }
    n
}

#[inline(never)]
fn receive(own: &Received) -> u64 {
    stage::take_turn(1);
    let mut n = 0;
    while stage::running() {
        own.0.fetch_add(1, Relaxed); // @received
        n += 1;
    }
    n
}

fn main() -> ExitCode {
    // The next block starts in the first half of a line, so that the one after it starts on the same.
    let mut before = Vec::new();
    while before.last().is_none_or(|last: &Box<[u64; 3]>| std::ptr::from_ref(&**last).addr() % 64 < 32) {
        if before.capacity() == 0 {
            before.reserve(64);
        }
        before.push(Box::new([1; 3]));
    }
    let sent: &'static Sent = Box::leak(make_sent());
    let received: &'static Received = Box::leak(make_received());
    let sender = thread::Builder::new().name("send".into()).spawn(|| send(sent));
    let receiver = thread::Builder::new().name("receive".into()).spawn(|| receive(received));
    let (Ok(sender), Ok(receiver)) = (sender, receiver) else {
        return ExitCode::from(3);
    };
    stage::run_for_argument();
    let right = sender.join().ok() == Some(sent.0.load(Relaxed)) && receiver.join().ok() == Some(received.0.load(Relaxed));
    stage::verdict(right && received.1 == 7, stage::same_line(sent, received) != cfg!(padded))
}
