//! The emulated processes: the program that was started, what it forks, and what they become (`execve`).
//!
//! Each has a place in the shared memory of its own, which its plugin claims, and which is free again when the process
//! has ended and all that it wrote has been passed on.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt as _,
    path::Path,
    sync::atomic::Ordering::{Acquire, Relaxed, SeqCst},
    time::{Duration, Instant},
};

use super::{
    Emulator, file_name, instructions::Instructions, lanes::Lanes, merge::Merge,
    side_band::SideBand,
};
use crate::{
    access::Pid,
    sys::{
        emulator_layout::{Header, PROCESSES, Shared},
        pidfd::PidFd,
    },
};

/// Between two looks at whether processes have ended.
const LOOK: Duration = Duration::from_millis(20);

/// A process, or one of the programs that it was.
pub(super) struct Process {
    pub pid: Pid,
    /// Where it writes; `None` when it is through.
    pub place: Option<usize>,
    pub instructions: Instructions,
    pub side_band: SideBand,
    /// It writes no more, and all that it wrote is in the merge.
    over: bool,
}

/// All of them, in the order in which they were found: numbers of the places stay.
pub(super) struct Processes {
    pub found: Vec<Process>,
    looked: Instant,
    /// What those that are through could not write, and what they started that was not observed.
    past: Counts,
}

/// What was not seen.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub unseen: u64,
    pub children: u32,
    pub execs: u32,
}

impl Process {
    /// Where it writes, while it does.
    pub(super) fn writes_at(&self) -> Option<usize> {
        self.place.filter(|_| !self.over)
    }
}

impl Counts {
    fn add(&mut self, header: &Header) {
        self.unseen += header.unseen.load(Relaxed);
        self.children += header.children.load(Relaxed);
        self.execs += header.execs.load(Relaxed);
    }
}

impl Processes {
    /// The program that is started as `pid`, by the file names of the emulator and of itself.
    pub(super) fn new(pid: Pid, emulator: &str, program: &str) -> Processes {
        Processes {
            found: vec![Process {
                pid,
                place: Some(0),
                instructions: Instructions::default(),
                side_band: SideBand::new(pid, emulator, program),
                over: false,
            }],
            looked: Instant::now(),
            past: Counts::default(),
        }
    }

    /// Takes in those that run since the last look: parents before their children, wherever they write.
    pub(super) fn find(&mut self, all: &[Shared; PROCESSES]) {
        let mut known = 0;
        while known < self.found.len() {
            known = self.found.len();
            self.find_more(all);
        }
    }

    fn find_more(&mut self, all: &[Shared; PROCESSES]) {
        for (place, shared) in all.iter().enumerate().skip(1) {
            let header = &shared.header;
            let known = |process: &Process| process.place == Some(place);
            if header.running.load(SeqCst) == 0 || self.found.iter().any(known) {
                continue;
            }
            let pid = Pid(header.pid.load(Acquire));
            let parent = header.parent.load(Relaxed);
            let from = if parent == 0 { pid } else { Pid(parent) };
            // The latest, where a process was several programs.
            let from = self
                .found
                .iter_mut()
                .rev()
                .find(|process| process.pid == from);
            let Some(from) = from else { continue };
            if let Some(place) = from.place {
                from.side_band.read(&all[place]);
            }
            let side_band = if parent == 0 {
                from.side_band.became(&program_of(pid))
            } else {
                from.side_band.forked(pid)
            };
            self.found.push(Process {
                pid,
                place: Some(place),
                instructions: Instructions::default(),
                side_band,
                over: false,
            });
        }
    }

    /// Takes the rest of those that have ended, and gives their places back once all of it was passed on. `now` is the
    /// time of their end, as far as it is known.
    pub(super) fn settle(&mut self, emulator: &Emulator, merge: &mut Merge, now: u64) {
        if self.looked.elapsed() < LOOK {
            return;
        }
        self.looked = Instant::now();
        let all = &*emulator.memory;
        for n in 0..self.found.len() {
            let process = &self.found[n];
            let Some(place) = process.place else { continue };
            if !process.over {
                let (pid, later) = (process.pid, &self.found[n + 1..]);
                let became = later.iter().any(|process| process.pid == pid);
                if became || has_ended(pid) {
                    Lanes::collect_rest(all, &self.found, n..n + 1, merge);
                    let process = &mut self.found[n];
                    process.side_band.read(&all[place]);
                    if place > 0 && !became {
                        process.side_band.ended(now);
                    }
                    process.over = true;
                }
            } else if place > 0 && process.side_band.is_through() && !merge.holds(n) {
                let mut past = self.past;
                past.add(&all[place].header);
                // Where pages cannot be given back, the place stays taken.
                if emulator.memory.clear(place).is_ok() {
                    self.past = past;
                    let process = &mut self.found[n];
                    process.place = None;
                    process.instructions = Instructions::default();
                }
            }
        }
    }

    /// What was not seen so far.
    pub(super) fn counts(&self, all: &[Shared; PROCESSES]) -> Counts {
        let mut counts = self.past;
        for place in self.found.iter().filter_map(|process| process.place) {
            counts.add(&all[place].header);
        }
        counts
    }
}

/// Whether all threads of a process have ended; its first one may long before the others.
fn has_ended(pid: Pid) -> bool {
    PidFd::open(pid)
        .and_then(|process| process.has_ended())
        .unwrap_or(true)
}

/// File name of the program that a process became, of the emulator's arguments: behind `-plugin`, and `-0` unless it
/// is a script's interpreter.
fn program_of(pid: Pid) -> String {
    let words = std::fs::read(format!("/proc/{}/cmdline", pid.0)).unwrap_or_default();
    let words: Vec<&[u8]> = words.split(|byte| *byte == 0).collect();
    let named = match words.get(3) {
        Some(&b"-0") => words.get(5),
        other => other,
    };
    file_name(Path::new(OsStr::from_bytes(
        named.copied().unwrap_or_default(),
    )))
}
