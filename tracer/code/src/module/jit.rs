//! Code that no file holds: what the just-in-time compiler of each process writes of it, read on while it grows.
//!
//! A process' tables are kept when it ends, so that it can still be named.

mod bounds;
mod files;

use std::{
    collections::HashMap,
    fs::File,
    os::unix::fs::FileExt as _,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use symbolizer::{JitDump, JitDumpError, JitFunction, PerfMap};

use crate::{
    access::{Pid, SpaceId},
    event::Mapping,
    space::AddressSpaces,
    sys,
};

/// How long tables are believed before the files are looked at again: a compiler may put new code at an old
/// address at any time, and a look costs some ten microseconds.
const REREAD: Duration = Duration::from_millis(100);
/// Read at once; both formats need less for their longest line or record.
const CHUNK: usize = 1 << 20;
/// Read in one look at most, so that a huge file does not hold up sampling; the next look reads on.
const MOST_A_LOOK: u64 = 8 << 20;

/// Looks in a row for a name that is to be printed, which may wait: half a gigabyte.
const MOST_LOOKS: u32 = 64;
/// A look that takes longer is not had as often as others: of all time, such looks take one part of so many.
const LONG: Duration = Duration::from_millis(5);
const LOOKS_OF_TIME: u32 = 8;
/// Dumps read of one process; it needs one.
const MOST_DUMPS: usize = 4;

/// The code at an address, as its compiler calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JitCode {
    /// Name of the function.
    pub symbol: String,
    /// Source file.
    pub file: Option<String>,
    /// Source line.
    pub line: Option<u32>,
}

/// Why code that no file holds has no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JitMissing {
    /// Neither format is there.
    #[error(
        "code that no file holds, and no JIT map of it: let the compiler write one (node --perf-basic-prof, \
         python -X perf, DOTNET_PerfMapEnabled=1, jcmd PID Compiler.perfmap)"
    )]
    NoMap,
    /// Anybody may write a file of that name into `/tmp`.
    #[error(
        "{path} belongs to user {owner}, who is neither root nor the user of the process: not read"
    )]
    Owner {
        /// The file.
        path: String,
        /// Its owner.
        owner: u32,
    },
    /// An earlier process had the same number.
    #[error("{0} is older than the process: not read")]
    Stale(String),
    /// The process that was recorded is gone, and another one has its number.
    #[error(
        "process {0} started after the recording: its number was given out again, so its JIT map is of another program"
    )]
    OtherProcess(u32),
    /// The process is gone, and the file was made when nobody looked any more.
    #[error("{0} was made after the recording, maybe by another process of that number: not read")]
    Later(String),
    /// It is there, but cannot be read.
    #[error("{0}: {1}")]
    Unreadable(String, String),
    /// Another format than its name says.
    #[error("{0}: {1}")]
    Dump(String, JitDumpError),
    /// The tables were let go, as those of all processes were too large together.
    #[error(
        "the JIT map was left out: it needs more memory than there is for names, raise the bound (--memory)"
    )]
    NoMemory,
    /// Somebody asked to stop.
    #[error(transparent)]
    NoTime(symbolizer::Missing),
    /// There are tables, but nothing in them is at the address.
    #[error("the JIT map has no entry for this address{}", incomplete(*.0))]
    NotCovered(u64),
}

fn incomplete(left_out: u64) -> String {
    match left_out {
        0 => String::new(),
        1 => " (1 entry of it could not be read)".to_owned(),
        many => format!(" ({many} entries of it could not be read)"),
    }
}

/// Whose code is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Compiled {
    /// Its process.
    pub pid: Pid,
    /// The address space of the process that the code is in.
    pub space: SpaceId,
    /// Whether that is the last one of all processes of that number: the files of the others were written over.
    pub is_last: bool,
}

impl Compiled {
    /// In one of the address spaces known so far.
    pub fn of(spaces: &AddressSpaces, pid: Pid, space: SpaceId) -> Compiled {
        Compiled {
            pid,
            space,
            is_last: spaces.current(pid) == Some(space),
        }
    }
}

/// A process, and the address space that its tables are of.
type Key = (Pid, SpaceId);

/// Tables of all processes asked for so far.
pub struct JitStore {
    /// `None` where process numbers mean nothing: recorded under another boot.
    root: Option<PathBuf>,
    /// When the recording ended, nanoseconds since 1970-01-01 UTC; `None` while it runs.
    recorded_until: Option<u64>,
    reread: Duration,
    /// [`LONG`].
    long: Duration,
    processes: Mutex<HashMap<Key, Process>>,
    bounds: bounds::Bounds,
}

#[derive(Default)]
struct Process {
    looked: Option<Instant>,
    /// What the last look took.
    took: Duration,
    /// There was more to read than is read at once.
    is_behind: bool,
    held: bounds::Held,
    map: Option<Growing<PerfMap>>,
    /// By device and inode: a process may map several, one after an `exec`, say.
    dumps: HashMap<(u64, u64), Growing<JitDump>>,
    /// What was wrong with a file that is there.
    refused: Option<JitMissing>,
}

/// A file with what was read of it.
struct Growing<T> {
    /// `None` once its process has ended.
    file: Option<File>,
    identity: (u64, u64),
    read: T,
}

/// A reader that is given a file piece by piece.
trait Reader {
    fn position(&self) -> u64;
    /// Bytes it took; 0 when it needs more.
    fn take(&mut self, bytes: &[u8]) -> Result<u64, JitDumpError>;
}

impl Reader for PerfMap {
    fn position(&self) -> u64 {
        PerfMap::position(self)
    }

    fn take(&mut self, bytes: &[u8]) -> Result<u64, JitDumpError> {
        Ok(self.read(bytes))
    }
}

impl Reader for JitDump {
    fn position(&self) -> u64 {
        JitDump::position(self)
    }

    fn take(&mut self, bytes: &[u8]) -> Result<u64, JitDumpError> {
        self.read(bytes)
    }
}

impl<T: Reader> Growing<T> {
    /// Reads what was written since; true when there is more than is read at once.
    fn read_on(&mut self) -> Result<bool, JitDumpError> {
        let Some(file) = &self.file else {
            return Ok(false);
        };
        let end = file.metadata().map_or(0, |file| file.len());
        let stop = self.read.position().saturating_add(MOST_A_LOOK);
        let mut chunk = Vec::new();
        while self.read.position() < end.min(stop) {
            let left = end - self.read.position();
            chunk.resize(left.min(CHUNK as u64) as usize, 0);
            let got = file.read_at(&mut chunk, self.read.position());
            let Ok(got @ 1..) = got else { break };
            if self.read.take(&chunk[..got])? == 0 {
                return Ok(false);
            }
        }
        Ok(self.read.position() >= stop && stop < end)
    }
}

impl Process {
    fn look(
        &mut self,
        root: &std::path::Path,
        recorded_until: Option<u64>,
        pid: Pid,
        mappings: &[&Arc<Mapping>],
    ) {
        self.refused = None;
        self.is_behind = false;
        let own = files::own_pid(root, pid);
        if let Some(until) = recorded_until
            && files::started(root, pid).is_some_and(|started| started > until)
        {
            self.refused = Some(JitMissing::OtherProcess(pid.0));
            return;
        }
        // Of a process that ended only its number here is left, under which another file may be.
        let ended = own.is_none() && self.map.is_some();
        let found = if ended {
            Err(JitMissing::NoMap)
        } else {
            files::perf_map(root, pid, recorded_until)
        };
        match found {
            Ok((file, identity)) => {
                let shortened = |known: &Growing<PerfMap>| {
                    file.metadata()
                        .is_ok_and(|now| now.len() < known.read.position())
                };
                let same = self
                    .map
                    .as_ref()
                    .is_some_and(|known| known.identity == identity && !shortened(known));
                if !same {
                    self.map = Some(Growing {
                        file: Some(file),
                        identity,
                        read: PerfMap::default(),
                    });
                }
            }
            // Deleted since, or its process ended: what was read stays.
            Err(JitMissing::NoMap) => {}
            Err(reason) => self.refused = Some(reason),
        }
        if let Some(map) = &mut self.map {
            // Text has no errors.
            self.is_behind |= map.read_on().unwrap_or_default();
        }
        for mapping in mappings {
            if !files::is_dump(mapping, own) {
                continue;
            }
            let identity = (mapping.dev, mapping.inode);
            if self.dumps.len() < MOST_DUMPS
                && !self.dumps.contains_key(&identity)
                && let Some(file) = files::mapped(root, pid, mapping)
            {
                let read = JitDump::default();
                self.dumps.insert(
                    identity,
                    Growing {
                        file: Some(file),
                        identity,
                        read,
                    },
                );
            }
            match self.dumps.get_mut(&identity).map(Growing::read_on) {
                Some(Ok(is_behind)) => self.is_behind |= is_behind,
                Some(Err(error)) => {
                    self.refused = Some(JitMissing::Dump(mapping.name.clone(), error));
                }
                None => {}
            }
        }
    }

    /// A dump says more than a map, so it is asked first.
    fn function(&self, addr: u64) -> Option<(JitFunction<'_>, Option<&Growing<JitDump>>)> {
        let dumped = self
            .dumps
            .values()
            .find_map(|dump| Some((dump.read.function(addr)?, Some(dump))));
        dumped.or_else(|| Some((self.map.as_ref()?.read.function(addr)?, None)))
    }

    fn missing(&self) -> JitMissing {
        if let Some(reason) = &self.refused {
            return reason.clone();
        }
        if self.held.is_barred() {
            return JitMissing::NoMemory;
        }
        if self.map.is_none() && self.dumps.is_empty() {
            return JitMissing::NoMap;
        }
        let of_map = |map: &Growing<PerfMap>| map.read.refused() + map.read.dropped();
        let of_dumps: u64 = self.dumps.values().map(|dump| dump.read.dropped()).sum();
        JitMissing::NotCovered(self.map.as_ref().map_or(0, of_map) + of_dumps)
    }
}

impl JitStore {
    /// Looks below `root`; without one, finds nothing.
    pub fn new(root: Option<PathBuf>) -> JitStore {
        JitStore {
            root,
            recorded_until: None,
            reread: REREAD,
            long: LONG,
            processes: Mutex::default(),
            bounds: bounds::Bounds::default(),
        }
    }

    /// For a recording that ended, nanoseconds since 1970-01-01 UTC.
    #[must_use]
    pub fn recorded_until(self, unix_ns: u64) -> JitStore {
        JitStore {
            recorded_until: Some(unix_ns),
            ..self
        }
    }

    /// The code at an address of a process. `mappings` are those of its address space, among which the jitdump
    /// file is found: its writer maps it as executable for that (`jit_detect` in tools/perf/util/jitdump.c).
    pub fn find<'m>(
        &self,
        of: Compiled,
        addr: u64,
        mappings: impl Iterator<Item = &'m Arc<Mapping>>,
    ) -> Result<JitCode, JitMissing> {
        self.ask(of, mappings, MOST_LOOKS, |process| {
            let (function, dump) = process.function(addr).ok_or_else(|| process.missing())?;
            let line = dump.and_then(|dump| dump.read.line(addr));
            Ok(JitCode {
                symbol: symbolizer::demangle(function.name),
                file: line.as_ref().map(|line| line.file.to_owned()),
                line: line.as_ref().map(|line| line.line),
            })
        })
    }

    /// First address and text of the function at an address, at most `longest` bytes, if the function's
    /// beginning is known: from the process, which runs it, or from the dump when that is gone.
    pub fn text<'m>(
        &self,
        of: Compiled,
        addr: u64,
        longest: u64,
        mappings: impl Iterator<Item = &'m Arc<Mapping>>,
    ) -> Option<(u64, Vec<u8>)> {
        let found = self.ask(of, mappings, 1, |process| {
            let (function, dump) = process.function(addr).ok_or(JitMissing::NoMap)?;
            let dumped = dump.and_then(|dump| {
                let (at, len) = dump.read.code(addr)?;
                Some((dump.file.as_ref()?.try_clone().ok()?, at, len))
            });
            Ok((function.entered, function.start, function.end, dumped))
        });
        let (entered, start, end, dumped) = found.ok()?;
        let length = (end - start).min(longest);
        if !entered || addr - start >= length {
            return None;
        }
        let mut text = vec![0; length as usize];
        let got = sys::process_memory::read(of.pid, start, &mut text).unwrap_or(0);
        if got == text.len() {
            return Some((start, text));
        }
        let (file, at, len) = dumped?;
        text.truncate(len.min(length) as usize);
        file.read_exact_at(&mut text, at).ok()?;
        Some((start, text))
    }

    /// Asks the tables of a process, after a look at its files when the last one is some time ago; `looks` where there is
    /// so much to read.
    fn ask<'m, T>(
        &self,
        of: Compiled,
        mappings: impl Iterator<Item = &'m Arc<Mapping>>,
        looks: u32,
        question: impl FnOnce(&Process) -> Result<T, JitMissing>,
    ) -> Result<T, JitMissing> {
        let root = self.root.as_ref().ok_or(JitMissing::NoMap)?;
        let mut processes = self
            .processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let key = (of.pid, of.space);
        let process = processes.entry(key).or_default();
        // What takes long is done seldom: it may be a file that somebody writes to keep us busy.
        let pause = if process.took < self.long {
            self.reread
        } else {
            self.reread.max(process.took * LOOKS_OF_TIME)
        };
        let is_due = process
            .looked
            .is_none_or(|looked| looked.elapsed() >= pause);
        if of.is_last && is_due && !process.held.is_barred() {
            let mappings: Vec<&Arc<Mapping>> = mappings.collect();
            for _ in 0..looks {
                let process = processes.entry(key).or_default();
                let start = Instant::now();
                process.look(root, self.recorded_until, of.pid, &mappings);
                process.looked = Some(Instant::now());
                process.took = start.elapsed();
                let is_behind = process.is_behind;
                self.bounds.looked(key, &mut processes);
                let is_barred = processes.get(&key).is_some_and(|of| of.held.is_barred());
                if !is_behind || is_barred {
                    break;
                }
            }
        }
        let process = processes.entry(key).or_default();
        self.bounds.using(process);
        question(process)
    }
}

#[cfg(test)]
mod tests;
