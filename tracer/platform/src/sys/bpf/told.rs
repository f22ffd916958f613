//! What the debug object tells: why the kernel half did nothing with what it was run for.

use std::{
    fmt, mem,
    sync::{Arc, Mutex, PoisonError},
};

use aya::Ebpf;
use aya_log::EbpfLogger;
use log::{Log, Metadata, Record};
use tracer_ebpf::told::{LINE, PROGRAMS, Reason};

use super::BpfError;
use crate::access::{Pid, Tid};

/// Lines that are kept until they are taken.
const KEPT: usize = 1 << 14;

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub time_ns: u64,
    /// The running process.
    pub pid: Pid,
    /// The running thread.
    pub tid: Tid,
    /// The program that did nothing.
    pub program: &'static str,
    /// What kept it from doing anything.
    pub reason: Reason,
    /// What it is about: an instruction's address, the watched word's, that of freed memory.
    pub addr: Option<u64>,
}

impl Told {
    /// Reads a line of the debug object's; `None` for others.
    fn parse(line: &str) -> Option<Told> {
        let mut words = line.split_ascii_whitespace();
        let mut text = [""; LINE.len()];
        for (word, text) in LINE.into_iter().zip(&mut text) {
            words.next().filter(|found| *found == word)?;
            *text = words.next()?;
        }
        let [time, pid, tid, program, reason, addr] = text;
        let addr = u64::from_str_radix(addr, 16).ok()?;
        Some(Told {
            time_ns: time.parse().ok()?,
            pid: Pid(pid.parse().ok()?),
            tid: Tid(tid.parse().ok()?),
            program: PROGRAMS.get(program.parse::<usize>().ok()?)?.0,
            reason: *Reason::ALL.get(reason.parse::<usize>().ok()?)?,
            addr: (addr != 0).then_some(addr),
        })
    }
}

/// Reads the lines. It lives as long as the programs: those that are loaded later refer to its map.
pub(super) struct Telling {
    logger: EbpfLogger<Lines>,
    lines: Lines,
}

impl fmt::Debug for Telling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Telling")
    }
}

impl Telling {
    /// Of the debug object.
    pub(super) fn of(ebpf: &mut Ebpf) -> Result<Telling, BpfError> {
        let lines = Lines::default();
        let logger = EbpfLogger::init_with_logger(ebpf, lines.clone());
        let logger = logger.map_err(|source| BpfError::Lines(Box::new(source)))?;
        Ok(Telling { logger, lines })
    }

    /// What was told since the last time, at most so many lines as are kept.
    pub(super) fn take(&mut self) -> Vec<Told> {
        self.logger.flush();
        let mut lines = self.lines.0.lock().unwrap_or_else(PoisonError::into_inner);
        mem::take(&mut *lines)
    }
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<Told>>>);

impl Log for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() < KEPT {
            lines.extend(Told::parse(&record.args().to_string()));
        }
    }

    fn flush(&self) {}
}

/// How the debug object calls the entry that runs a program and tells of it.
pub(super) fn entry(program: &'static str) -> &'static str {
    let pair = PROGRAMS.iter().find(|(name, _)| *name == program);
    pair.map_or(program, |(_, entry)| entry)
}

#[cfg(test)]
mod tests {
    use tracer_ebpf::{programs, told::Program};

    use super::*;

    #[test]
    fn a_line_is_what_the_kernel_half_wrote_and_nothing_else_is_one() {
        let line = "time 12 pid 3 tid 4 program 3 reason 5 at 7f00";
        let told = Told {
            time_ns: 12,
            pid: Pid(3),
            tid: Tid(4),
            program: programs::WATCH,
            reason: Reason::Foreign,
            addr: Some(0x7f00),
        };
        assert_eq!(Told::parse(line), Some(told));
        let nowhere = Told { addr: None, ..told };
        assert_eq!(Told::parse(&line.replace("7f00", "0")), Some(nowhere));
        for other in [
            "",
            "hello",
            "time 12 pid 3",
            &line.replace("reason 5", "reason 99"),
        ] {
            assert_eq!(Told::parse(other), None, "{other}");
        }
    }

    #[test]
    fn every_program_and_every_reason_is_at_its_own_number() {
        for (number, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, number);
        }
        assert_eq!(PROGRAMS[Program::Watch as usize].0, programs::WATCH);
        assert_eq!(
            PROGRAMS[Program::HeapReturn as usize].0,
            programs::HEAP_RETURN
        );
        let entries = &PROGRAMS[Program::HeapSizeFirst as usize..=Program::HeapMunmap as usize];
        assert!(
            entries
                .iter()
                .map(|(name, _)| *name)
                .eq(programs::HEAP_ENTRIES)
        );
        assert_eq!(entry(programs::READ_KERNEL), programs::READ_KERNEL);
    }
}
