//! The program that is asked to do `n` of something. It is built with the tool and carried in it.
//!
//! It is assembler without a C library (`asked/*.s`), so that nothing runs in it but its loops, at the addresses that its
//! file names.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    io::{Read as _, Write as _},
    ops::Range,
    os::{fd::AsFd as _, unix::fs::PermissionsExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use object::{Object as _, ObjectSegment as _, ObjectSymbol as _};
use tempfile::TempDir;

use crate::{NotCounted, access::Pid, sys::poll::wait_readable};

/// Its file; empty where this build has none.
static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/asked"));

/// The program as a file that can be run, for as long as this lives.
#[derive(Debug)]
pub struct Asked {
    path: PathBuf,
    symbols: BTreeMap<String, u64>,
    /// Address, and where it is in the file.
    segments: Vec<(Range<u64>, u64)>,
    _directory: TempDir,
}

impl Asked {
    /// Writes it into a directory of its own below the system's directory for temporary files.
    pub fn lay_down() -> Result<Asked, NotCounted> {
        if PROGRAM.is_empty() {
            return Err(NotCounted::NoProgram);
        }
        let unreadable = |_| NotCounted::NoSymbol("symbols".to_owned());
        let file = object::File::parse(PROGRAM).map_err(unreadable)?;
        let named = |symbol: object::Symbol<'_, '_>| {
            let name = symbol.name().ok()?;
            Some((name.to_owned(), symbol.address()))
        };
        let symbols = file.symbols().filter_map(named).collect();
        let segments = file.segments().map(|segment| {
            let (offset, len) = segment.file_range();
            (segment.address()..segment.address() + len, offset)
        });
        let segments = segments.collect();
        let making = "making a directory for the program";
        let directory = (tempfile::Builder::new().prefix("cohtrace-validate-"))
            .tempdir()
            .map_err(NotCounted::of(making))?;
        let path = directory.path().join("asked");
        let writing = "writing the program";
        fs::write(&path, PROGRAM).map_err(NotCounted::of(writing))?;
        let runs = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&path, runs).map_err(NotCounted::of(writing))?;
        Ok(Asked {
            path,
            symbols,
            segments,
            _directory: directory,
        })
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The address of a label.
    pub fn address(&self, name: &str) -> Result<u64, NotCounted> {
        let found = self.symbols.get(name).copied();
        found.ok_or_else(|| NotCounted::NoSymbol(name.to_owned()))
    }

    /// The code between a label and the one that ends it.
    pub fn code(&self, name: &str) -> Result<Range<u64>, NotCounted> {
        Ok(self.address(name)?..self.address(&format!("{name}_end"))?)
    }

    /// Where in the file the byte of an address is.
    pub fn offset(&self, address: u64) -> Option<u64> {
        let (addresses, offset) = (self.segments.iter()).find(|(all, _)| all.contains(&address))?;
        Some(offset + (address - addresses.start))
    }

    /// The bytes from an address on, up to the end of what is in the file there.
    pub fn bytes(&self, address: u64) -> Option<&'static [u8]> {
        let offset = self.offset(address)?;
        PROGRAM.get(usize::try_from(offset).ok()?..)
    }

    /// The words of a command that does `n` events of a letter.
    pub fn words(&self, letter: char, n: u64) -> [OsString; 3] {
        let (letter, n) = (letter.to_string(), n.to_string());
        [self.path.clone().into(), letter.into(), n.into()]
    }

    /// Starts it, up to where it says that its loop comes next.
    pub fn start(&self, letter: char, n: u64) -> Result<Waiting, NotCounted> {
        self.start_with(letter, n, &[])
    }

    /// The same with further numbers for the loop.
    pub(crate) fn start_with(
        &self,
        letter: char,
        n: u64,
        more: &[u64],
    ) -> Result<Waiting, NotCounted> {
        let [program, letter, number] = self.words(letter, n);
        let mut command = Command::new(program);
        command
            .args([letter, number, "m".into()])
            .args(more.iter().map(u64::to_string))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        crate::sys::limits::give_back(&mut command);
        let starting = "starting the program";
        let child = command.spawn().map_err(NotCounted::of(starting))?;
        let mut waiting = Waiting { child, n };
        waiting.hear(1)?;
        Ok(waiting)
    }
}

/// A process of it that waits before or behind its loop. Dropping it ends it.
#[derive(Debug)]
pub struct Waiting {
    child: Child,
    n: u64,
}

impl Waiting {
    /// Its process.
    pub fn pid(&self) -> Pid {
        Pid(self.child.id())
    }

    /// Lets it run its loop, without waiting for that.
    pub fn go(&mut self) -> Result<(), NotCounted> {
        let told = (self.child.stdin.as_mut()).map(|input| input.write_all(&[0]));
        match told {
            Some(Ok(())) => Ok(()),
            _ => Err(self.ended()),
        }
    }

    /// What it says next: a byte where its loop is over.
    pub fn hear(&mut self, bytes: usize) -> Result<Vec<u8>, NotCounted> {
        let mut heard = vec![0; bytes];
        let read = (self.child.stdout.as_mut()).map(|output| output.read_exact(&mut heard));
        match read {
            Some(Ok(())) => Ok(heard),
            _ => Err(self.ended()),
        }
    }

    /// Whether its loop is over within a time; an error if it has ended otherwise than it should.
    pub fn is_over_within(&mut self, time: Duration) -> Result<bool, NotCounted> {
        let speaks = self.speaks_within(time)?;
        if speaks {
            self.hear(1)?;
        }
        Ok(speaks)
    }

    /// Whether it says something within a time, or has ended.
    fn speaks_within(&self, time: Duration) -> Result<bool, NotCounted> {
        let Some(output) = &self.child.stdout else {
            return Ok(true);
        };
        let said = wait_readable(&[output.as_fd()], time);
        let said = said.map_err(NotCounted::of("waiting for the program"))?;
        Ok(said.contains(&true))
    }

    /// Lets it end, and waits for that.
    pub fn end(mut self) -> Result<(), NotCounted> {
        drop(self.child.stdin.take());
        match self.child.wait() {
            Ok(status) if status.success() => Ok(()),
            _ => Err(self.ended()),
        }
    }

    fn ended(&mut self) -> NotCounted {
        drop(self.child.stdin.take());
        let how = match self.child.wait() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        NotCounted::Ended { n: self.n, how }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // Where it has ended, there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::EVENTS;

    #[test]
    fn the_program_has_every_event_and_its_loop_is_in_the_file() {
        let asked = Asked::lay_down().unwrap();
        for event in EVENTS {
            let code = asked.code(&format!("event_{}", event.letter)).unwrap();
            assert!(code.end > code.start, "{}", event.name);
            assert!(asked.offset(code.start).is_some(), "{}", event.name);
        }
        // A no-op of five bytes.
        let point = asked.address("point").unwrap();
        assert_eq!(asked.bytes(point).unwrap()[..5], [0x0f, 0x1f, 0x44, 0, 0]);
        assert!(asked.address("nowhere").is_err());
    }

    #[test]
    fn a_program_waits_before_its_loop_and_behind_it_and_ends_well() {
        let asked = Asked::lay_down().unwrap();
        for event in EVENTS.iter().filter(|event| event.letter != 'm') {
            let mut waiting = asked.start(event.letter, 3).unwrap();
            waiting.go().unwrap();
            waiting.hear(1).unwrap();
            waiting.end().unwrap();
        }
    }

    #[test]
    fn what_the_program_does_not_know_is_an_error_and_no_wait() {
        let asked = Asked::lay_down().unwrap();
        assert!(matches!(asked.start('w', 1), Err(NotCounted::Ended { .. })));
        let no_cost = asked.start_with('z', 1, &[99]);
        assert!(matches!(no_cost, Err(NotCounted::Ended { .. })));
    }
}
