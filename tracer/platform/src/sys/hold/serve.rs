//! The process that holds. It is a copy of ours in which only this thread runs on: it must not take memory, nor any lock,
//! since another thread may have had one when it was copied.

use std::{
    ffi::CStr,
    io::Write as _,
    num::NonZeroU64,
    sync::atomic::{
        AtomicU32,
        Ordering::{Acquire, Release},
    },
};

use rustix::{
    fs::{Mode, OFlags, open},
    process::{Signal, set_parent_process_death_signal, setsid},
    thread::{set_current_timer_slack, set_name},
};

use super::{
    job::{ASKED, DONE, Job, MOST_HELD, Mark},
    marks::{Word, run_time},
    tracees::Tracees,
};
use crate::{
    access::Cpu,
    event::HoldEnd,
    machine::Capabilities,
    sys::{affinity::OnCpu, capabilities::keep, clock, perf_event::PerfEvent, priority::RealTime},
};

/// Between two looks at the word while others are held: a thread that stands still shall not do so for longer.
const LOOK_NS: u64 = 250_000;
/// What threads that are on a CPU need to stand. One that waits for a CPU stands as soon as it gets one, before it does anything
/// of its own, so nobody waits for it.
const STAND_NS: u64 = 300_000;
/// What lines need to come to those who fight for them after they were let go.
const SETTLE_NS: u64 = 200_000;
/// A word that grows by less in the time of a hold is not read in one.
const LEAST_GROWTH: u64 = 50;
/// Descriptors that are closed one by one where the kernel cannot close all at once: more than a recorder has open.
const MOST_DESCRIPTORS: i32 = 1 << 16;

/// Serves until the parent ends.
pub(super) fn serve(job: *mut Job, parent: libc::pid_t, rights: Capabilities) -> ! {
    prepare(rights);
    // SAFETY: plain numbers.
    while unsafe { libc::getppid() } == parent {
        // SAFETY: the page is mapped here as there; only `state` is looked at before it says that the rest is ours.
        let state = unsafe { &(*job).state };
        if state.load(Acquire) != ASKED {
            wait(state);
            continue;
        }
        // SAFETY: it is ours until `state` says otherwise.
        let job = unsafe { &mut *job };
        job.end = u32::from(answer(job).index());
        job.ended_ns = clock::monotonic_ns();
        job.state.store(DONE, Release);
    }
    // SAFETY: ends this process without running anything of the parent's.
    unsafe { libc::_exit(0) }
}

/// Leaves all that is the parent's: its files, its terminal, its signals, other rights than these; and comes before ordinary threads, to let go in
/// time. Without a right it is as it was.
fn prepare(rights: Capabilities) {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let _ = set_name(c"cohtrace-hold");
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let _ = setsid();
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
        // SAFETY: no handler is left that could run here.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    // SAFETY: plain numbers; nothing here uses a descriptor that was there before.
    if unsafe { libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0) } != 0 {
        for fd in 0..MOST_DESCRIPTORS {
            // SAFETY: as above; kernels before 5.9 close one at a time.
            unsafe { libc::close(fd) };
        }
    }
    let _ = RealTime::raise().map(std::mem::forget);
    let _ = keep(rights);
}

/// Waits for the state to change; may return before.
fn wait(state: &AtomicU32) {
    let seen = state.load(Acquire);
    if seen == ASKED {
        return;
    }
    // SAFETY: the word is live and aligned; no time-out.
    unsafe {
        let none: *const libc::timespec = std::ptr::null();
        libc::syscall(
            libc::SYS_futex,
            state.as_ptr(),
            libc::FUTEX_WAIT,
            seen,
            none,
        );
    }
}

/// Wakes who waits for the state.
pub(super) fn wake(state: &AtomicU32) {
    // SAFETY: the word is live and aligned.
    unsafe { libc::syscall(libc::SYS_futex, state.as_ptr(), libc::FUTEX_WAKE, 1) };
}

/// For some time, nanoseconds.
fn sleep(ns: u64) {
    let time = libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: the time is live; what is left of it is not asked for.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            0,
            &raw const time,
            std::ptr::null_mut(),
        )
    };
}

fn answer(job: &mut Job) -> HoldEnd {
    job.marks = [Mark::default(); 6];
    (job.others_run_ns, job.held_ns) = (0, 0);
    (job.held, job.in_system_call) = (0, 0);
    read(job).unwrap_or(HoldEnd::Gone)
}

/// All of it; `None` where something cannot be read any more.
fn read(job: &mut Job) -> Option<HoldEnd> {
    let count = (job.other_count as usize).min(MOST_HELD);
    let others = job.others;
    let others = &others[..count];
    let word = Word {
        pid: job.pid,
        tid: job.tid,
        addr: job.addr,
        len: job.len as u8,
        run_time: run_time(job.tid)?,
    };
    let run_times: [Option<PerfEvent>; MOST_HELD] =
        std::array::from_fn(|n| others.get(n).and_then(|[_, tid]| run_time(*tid)));
    let all_ran = || -> u64 {
        let counts = run_times.iter().flatten();
        counts.map(|time| time.count().unwrap_or(0)).sum()
    };
    let (beside_ns, hold_ns) = (job.beside_ns, job.hold_ns);
    let beside = || -> Option<([Mark; 2], u64)> {
        let (ran, first) = (all_ran(), word.mark()?);
        sleep(beside_ns);
        Some(([first, word.mark()?], all_ran().saturating_sub(ran)))
    };
    let (marks, ran_ns) = beside()?;
    job.marks[..2].copy_from_slice(&marks);
    job.others_run_ns = ran_ns;
    let grown = word.grown(marks[0].word, marks[1].word);
    let Some(grown) = grown.filter(|grown| *grown > 0) else {
        return Some(HoldEnd::Slow);
    };
    if hold_ns == 0 || others.is_empty() {
        return Some(HoldEnd::Beside);
    }
    if grown.saturating_mul(hold_ns) / beside_ns.max(1) < LEAST_GROWTH {
        return Some(HoldEnd::Slow);
    }
    let mut tracees = Tracees::new();
    let start_ns = clock::monotonic_ns();
    let held = hold(others, &mut tracees, start_ns + hold_ns, &all_ran, &word);
    tracees.listen(false);
    job.held = tracees.standing();
    tracees.let_go();
    job.held_ns = clock::monotonic_ns() - start_ns;
    job.in_system_call = tracees.in_system_call;
    let end = match held? {
        Ok(marks) => {
            job.marks[2..4].copy_from_slice(&marks);
            HoldEnd::Held
        }
        Err(end) => end,
    };
    sleep(SETTLE_NS);
    let (marks, ran_ns) = beside()?;
    job.marks[4..].copy_from_slice(&marks);
    job.others_run_ns += ran_ns;
    Some(end)
}

/// Stops the others, and reads while they stand. They are let go by whoever called, whatever comes of it.
fn hold(
    others: &[[u32; 2]],
    tracees: &mut Tracees,
    end_ns: u64,
    all_ran: &impl Fn() -> u64,
    word: &Word,
) -> Option<Result<[Mark; 2], HoldEnd>> {
    for [pid, tid] in others {
        // One that waits in a system call is not touched: a stop may interrupt the call, and it has no line to give back.
        if runs(*pid, *tid) && !tracees.ask(*tid) {
            return Some(Err(HoldEnd::Refused));
        }
    }
    let stand_ns = clock::monotonic_ns() + STAND_NS;
    while tracees.listen(false) && tracees.is_waited_for() && clock::monotonic_ns() < stand_ns {
        sleep(20_000);
    }
    // Each look would take the thread off its CPU.
    let _elsewhere = cpu(word.pid, word.tid).map(OnCpu::move_from);
    let (ran, first) = (all_ran(), word.mark()?);
    let ran_half = |mark: Mark| 2 * (mark.run_ns - first.run_ns) >= mark.time_ns - first.time_ns;
    let mut last = first.word;
    loop {
        let now_ns = clock::monotonic_ns();
        if now_ns + LOOK_NS / 2 >= end_ns {
            break;
        }
        sleep(LOOK_NS.min(end_ns - now_ns));
        let next = word.value()?;
        if word.grown(last, next).is_none_or(|grown| grown == 0) {
            let is_stuck = ran_half(word.mark()?);
            let end = if is_stuck {
                HoldEnd::Stuck
            } else {
                HoldEnd::OffCpu
            };
            return Some(Err(end));
        }
        last = next;
    }
    let last = word.mark()?;
    let held_ns = last.time_ns - first.time_ns;
    Some(if all_ran().saturating_sub(ran) > held_ns / 10 {
        // One that waited in a system call has come back, or one is in the kernel for long.
        Err(HoldEnd::NotStopped)
    } else if last.word == first.word || !ran_half(last) {
        Err(HoldEnd::OffCpu)
    } else {
        Ok([first, last])
    })
}

/// Whether a thread is on a CPU or waits for one: then the kernel does not tell in which system call it is (`proc_pid_syscall`
/// in fs/proc/base.c). One that is not to be seen does not run.
fn runs(pid: u32, tid: u32) -> bool {
    const RUNS: &[u8] = b"running";
    let mut text = [0_u8; RUNS.len()];
    file_of(pid, tid, "syscall", &mut text) == Some(RUNS)
}

/// The CPU that a thread runs on, or ran on last: the 39th field of its `stat` (proc_pid_stat(5)), where the second, its name in
/// brackets, may have anything in it.
fn cpu(pid: u32, tid: u32) -> Option<Cpu> {
    let mut text = [0_u8; 1024];
    let text = str::from_utf8(file_of(pid, tid, "stat", &mut text)?).ok()?;
    let behind_name = &text[text.rfind(')')? + 1..];
    behind_name
        .split_whitespace()
        .nth(39 - 3)?
        .parse()
        .ok()
        .map(Cpu)
}

/// The first bytes of a file that the kernel has of a thread, without taking memory.
fn file_of<'a>(pid: u32, tid: u32, name: &str, text: &'a mut [u8]) -> Option<&'a [u8]> {
    let mut path = [0_u8; 64];
    // It is long enough, and the last byte stays zero.
    write!(&mut path[..63], "/proc/{pid}/task/{tid}/{name}").ok()?;
    let path = CStr::from_bytes_until_nul(&path).ok()?;
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let got = rustix::io::read(&file, &mut *text).ok()?;
    text.get(..got)
}
