//! Threads that are held: stopped by ptrace(2), each let go with the signal that came for it meanwhile.

use super::job::MOST_HELD;

/// `PTRACE_EVENT_STOP` of include/uapi/linux/ptrace.h: what a stop by PTRACE_INTERRUPT says, and one of job control.
const EVENT_STOP: libc::c_int = 128;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Ours, and asked to stop.
    Asked,
    /// It stands; the signal is delivered when it is let go, 0 for none.
    Stands(libc::c_int),
    /// It runs, or has ended.
    Gone,
}

/// The threads of one hold.
pub(super) struct Tracees {
    tids: [libc::pid_t; MOST_HELD],
    states: [State; MOST_HELD],
    count: usize,
    /// Threads that stood in a system call, which their stop may have interrupted.
    pub in_system_call: u32,
}

impl Tracees {
    pub(super) fn new() -> Tracees {
        Tracees {
            tids: [0; MOST_HELD],
            states: [State::Gone; MOST_HELD],
            count: 0,
            in_system_call: 0,
        }
    }

    /// Asks a thread to stop; false where it may not be held, or has ended.
    pub(super) fn ask(&mut self, tid: u32) -> bool {
        let tid = tid as libc::pid_t;
        let asks = |request| {
            // SAFETY: both requests take plain numbers and touch no memory of ours.
            let answer = unsafe { libc::ptrace(request, tid, 0, 0) };
            answer == 0
        };
        let asked = asks(libc::PTRACE_SEIZE) && asks(libc::PTRACE_INTERRUPT);
        // Where only the second failed, it has just ended, and says so when it is waited for.
        if asked && self.count < MOST_HELD {
            self.tids[self.count] = tid;
            self.states[self.count] = State::Asked;
            self.count += 1;
        }
        asked
    }

    /// Takes what the threads have to say; with `wait`, at least one word, however long that takes. False where there is
    /// nobody who could say something.
    pub(super) fn listen(&mut self, wait: bool) -> bool {
        let mut flags = libc::__WALL | if wait { 0 } else { libc::WNOHANG };
        loop {
            let mut status = 0;
            // SAFETY: the status is a live number.
            let tid = unsafe { libc::waitpid(-1, &raw mut status, flags) };
            match tid {
                0 => return true,
                -1 => return false,
                tid => self.heard(tid, status),
            }
            flags |= libc::WNOHANG;
        }
    }

    fn heard(&mut self, tid: libc::pid_t, status: libc::c_int) {
        let Some(at) = self.tids[..self.count]
            .iter()
            .position(|known| *known == tid)
        else {
            return;
        };
        self.states[at] = if libc::WIFSTOPPED(status) {
            let stopped_by_us = status >> 16 == EVENT_STOP;
            let signal = if stopped_by_us {
                0
            } else {
                libc::WSTOPSIG(status)
            };
            self.in_system_call += u32::from(stopped_by_us && was_in_system_call(tid));
            State::Stands(signal)
        } else {
            State::Gone
        };
    }

    /// Threads that stand.
    pub(super) fn standing(&self) -> u32 {
        let states = self.states[..self.count].iter();
        states
            .filter(|state| matches!(state, State::Stands(_)))
            .count() as u32
    }

    /// Whether one was asked and has not stopped yet.
    pub(super) fn is_waited_for(&self) -> bool {
        self.states[..self.count].contains(&State::Asked)
    }

    /// Lets all go that stand.
    fn let_standing_go(&mut self) {
        for (tid, state) in self.tids.iter().zip(&mut self.states).take(self.count) {
            if let State::Stands(signal) = *state {
                // SAFETY: plain numbers; a thread that was killed meanwhile is an error that says so, and is gone.
                unsafe { libc::ptrace(libc::PTRACE_DETACH, *tid, 0, libc::c_long::from(signal)) };
                *state = State::Gone;
            }
        }
    }

    /// Lets all go, also those that stop only now: a thread in the kernel stops when it comes back from there.
    pub(super) fn let_go(&mut self) {
        self.let_standing_go();
        while self.is_waited_for() && self.listen(true) {
            self.let_standing_go();
        }
    }
}

/// Whether a thread that stands had been in a system call: its number is kept beside the registers, and -1 where there
/// was none (arch/x86/entry).
#[cfg(target_arch = "x86_64")]
fn was_in_system_call(tid: libc::pid_t) -> bool {
    // SAFETY: all zero is a valid set of registers.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    // SAFETY: the set is live and as long as the kernel's.
    let status = unsafe { libc::ptrace(libc::PTRACE_GETREGS, tid, 0, &raw mut registers) };
    status == 0 && registers.orig_rax as i64 >= 0
}

#[cfg(not(target_arch = "x86_64"))]
fn was_in_system_call(_: libc::pid_t) -> bool {
    false
}
