//! Holds threads for some milliseconds, and reads meanwhile how fast another thread's word grows.
//!
//! A process of our own does it, which shares nothing with us but a page. Threads that it holds run on whatever happens:
//! it lets them go by its own clock, where we are stopped (Ctrl-Z) or busy; the kernel lets them go where it dies
//! (ptrace(2): a tracer that ends detaches from all), and it dies with us (`PR_SET_PDEATHSIG`).
//!
//! ```text
//!   beside            held             beside again
//!   ├────────────────┤├───────────────┤├────────────────┤
//!   mark 0      mark 1  2 (all stand)  3   4 (let go)    5     marks: the word, and its thread's time on a CPU
//! ```

mod job;
mod marks;
mod serve;
mod tracees;

use std::{
    io,
    sync::atomic::Ordering::{Acquire, Release},
    time::Duration,
};

use crate::{
    access::{Pid, Tid},
    event::{Growth, HoldEnd, Pace},
    machine::Capability,
    sys::capabilities::for_events,
};
use job::{ASKED, DONE, IDLE, Job, Mark};

pub use job::MOST_HELD;

/// What is to be read, and who is to be held meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The thread whose word it is.
    pub pid: Pid,
    /// Its number.
    pub tid: Tid,
    /// Address of the word.
    pub addr: u64,
    /// Its bytes, 4 or 8.
    pub len: u8,
    /// An address on the line that is judged.
    pub line_addr: u64,
    /// Threads to hold, [`MOST_HELD`] at most.
    pub others: Vec<(Pid, Tid)>,
    /// How long to read beside them, before and again after.
    pub beside: Duration,
    /// How long to hold them; zero: not at all.
    pub hold: Duration,
}

/// The process that holds.
#[derive(Debug)]
pub struct Holder {
    pid: libc::pid_t,
    job: *mut Job,
    asked: Option<Asked>,
}

// SAFETY: the mapping is this value's own, and what both sides write is ordered by `state`.
unsafe impl Send for Holder {}

impl Holder {
    /// Starts it, with those of the caller's rights that it takes to hold threads and to see how long they run.
    ///
    /// # Errors
    /// No memory, or no process.
    pub fn start() -> io::Result<Holder> {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let job = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<Job>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if job == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let job: *mut Job = job.cast();
        let parent = std::process::id() as libc::pid_t;
        let rights = for_events().with(&[Capability::SYS_PTRACE, Capability::DAC_READ_SEARCH]);
        // A fork whose end no signal tells: waiting for children, as for those of a started command, does not see it.
        // SAFETY: no stack, so that it is a copy as by fork; it calls nothing that takes a lock or memory (see `serve`).
        let pid = unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) } as libc::pid_t;
        match pid {
            -1 => {
                let error = io::Error::last_os_error();
                // SAFETY: mapped above, and nobody else's.
                unsafe { libc::munmap(job.cast(), size_of::<Job>()) };
                Err(error)
            }
            0 => serve::serve(job, parent, rights),
            pid => Ok(Holder {
                pid,
                job,
                asked: None,
            }),
        }
    }

    /// Whether an answer is outstanding.
    pub fn is_busy(&self) -> bool {
        self.asked.is_some()
    }

    /// Begins a reading. Nothing happens while another is outstanding, or where there are too many others.
    pub fn ask(&mut self, asked: Asked) {
        if self.is_busy() || asked.others.len() > MOST_HELD {
            return;
        }
        // SAFETY: mapped as long as this lives; the other side looks at it only once `state` says so.
        let job = unsafe { &mut *self.job };
        job.pid = asked.pid.0;
        job.tid = asked.tid.0;
        job.addr = asked.addr;
        job.len = u32::from(asked.len);
        for (place, (pid, tid)) in job.others.iter_mut().zip(&asked.others) {
            *place = [pid.0, tid.0];
        }
        job.other_count = asked.others.len() as u32;
        job.beside_ns = asked.beside.as_nanos() as u64;
        job.hold_ns = asked.hold.as_nanos() as u64;
        self.asked = Some(asked);
        job.state.store(ASKED, Release);
        serve::wake(&job.state);
    }

    /// The answer to what was asked last, once it is there, and when it was ready (CLOCK_MONOTONIC, nanoseconds).
    pub fn answer(&mut self) -> Option<(u64, Pace)> {
        // SAFETY: as above; only `state` is looked at before it says that the rest is ours again.
        let job = unsafe { &*self.job };
        if job.state.load(Acquire) != DONE {
            return None;
        }
        let asked = self.asked.take()?;
        let marks = &job.marks;
        let grown = |from: Mark, to: Mark| Growth {
            added: marks::grown(from.word, to.word, asked.len).unwrap_or(0),
            run_ns: to.run_ns.saturating_sub(from.run_ns),
        };
        let end = HoldEnd::ALL.get(job.end as usize).copied();
        let held = end == Some(HoldEnd::Held);
        let pace = Pace {
            pid: asked.pid,
            tid: asked.tid,
            addr: asked.addr,
            len: asked.len,
            line_addr: asked.line_addr,
            beside: grown(marks[0], marks[1]).and(grown(marks[4], marks[5])),
            others_run_ns: job.others_run_ns,
            beside_ns: (marks[1].time_ns - marks[0].time_ns)
                + marks[5].time_ns.saturating_sub(marks[4].time_ns),
            alone: if held {
                grown(marks[2], marks[3])
            } else {
                Growth::default()
            },
            held_ns: job.held_ns,
            held: job.held as u16,
            in_system_call: job.in_system_call as u16,
            others: asked.others.len() as u16,
            end: end.unwrap_or(HoldEnd::Gone),
        };
        let time_ns = job.ended_ns;
        job.state.store(IDLE, Release);
        Some((time_ns, pace))
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // SAFETY: our own child, not waited for yet, so that the number is still its own.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        // SAFETY: as above; its status is not asked for.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), libc::__WCLONE) };
        // SAFETY: mapped by `start`, and nobody's but ours.
        unsafe { libc::munmap(self.job.cast(), size_of::<Job>()) };
    }
}

#[cfg(test)]
mod tests;
