// A static struct of two atomics, each counted by a thread of its own.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "two_atomics::MAILBOX"}, "fields": [
//     {"field": "MAILBOX.sent", "op": "rmw", "function": "two_atomics::send", "line": "@sent", "thread": "send"},
//     {"field": "MAILBOX.received", "op": "rmw", "function": "two_atomics::receive", "line": "@received", "thread": "receive"}]}]}
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
struct Mailbox {
    sent: Field,
    received: Field,
}

static MAILBOX: Mailbox = Mailbox {
    sent: Field(AtomicU64::new(0)),
    received: Field(AtomicU64::new(0)),
};

#[inline(never)]
fn send() -> u64 {
    stage::take_turn(0);
    let mut n = 0;
    while stage::running() {
        MAILBOX.sent.0.fetch_add(1, Relaxed); // @sent
        n += 1;
    }
    n
}

#[inline(never)]
fn receive() -> u64 {
    stage::take_turn(1);
    let mut n = 0;
    while stage::running() {
        MAILBOX.received.0.fetch_add(1, Relaxed); // @received
        n += 1;
    }
    n
}

fn main() -> ExitCode {
    let start = |name: &str, role: fn() -> u64| thread::Builder::new().name(name.into()).spawn(role);
    let (Ok(sender), Ok(receiver)) = (start("send", send), start("receive", receive)) else {
        return ExitCode::from(3);
    };
    stage::run_for_argument();
    let sent = sender.join().ok();
    let received = receiver.join().ok();
    let right = sent == Some(MAILBOX.sent.0.load(Relaxed)) && received == Some(MAILBOX.received.0.load(Relaxed));
    stage::verdict(right, stage::same_line(&MAILBOX.sent, &MAILBOX.received) != cfg!(padded))
}
