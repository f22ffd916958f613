//! Programs that say of themselves where their variables are, for tests.
#![allow(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "what a test cannot set up ends it"
)]

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Lines, Write},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use super::proc_snapshot;
use crate::{access::Pid, space::AddressSpaces};

/// A program while it runs, and what it said of itself: lines `name 0xaddress`, then `end`.
pub struct Running {
    child: Child,
    output: Lines<BufReader<ChildStdout>>,
    /// Addresses by name.
    pub says: BTreeMap<String, u64>,
    /// Where it was compiled.
    pub directory: tempfile::TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Compiles C in a directory.
pub fn compile(directory: &Path, arguments: &[&str]) {
    let output = Command::new("cc")
        .args(arguments)
        .current_dir(directory)
        .output()
        .expect("the tests need a C compiler");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cc {arguments:?}: {said}");
}

impl Running {
    /// Runs `program` of a directory up to its last word.
    pub fn start(directory: tempfile::TempDir) -> Running {
        let mut child = Command::new(directory.path().join("program"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut running = Running {
            child,
            output: output.lines(),
            says: BTreeMap::new(),
            directory,
        };
        running.listen();
        running
    }

    fn listen(&mut self) {
        let lines = self.output.by_ref().map(|line| line.expect("text"));
        for line in lines.take_while(|line| line != "end") {
            let (name, address) = line.split_once(" 0x").expect("a name and an address");
            let address = u64::from_str_radix(address, 16).expect("an address");
            self.says.insert(name.to_owned(), address);
        }
    }

    /// Lets it go on, up to its next last word.
    pub fn go_on(&mut self) {
        let input = self.child.stdin.as_mut().expect("a pipe");
        input.write_all(b"\n").expect("it reads");
        self.listen();
    }

    /// Its number, as the kernel knows it.
    pub fn pid(&self) -> Pid {
        Pid(self.child.id())
    }

    /// What it has mapped now.
    pub fn spaces(&self) -> AddressSpaces {
        let mut spaces = AddressSpaces::default();
        for context in proc_snapshot::process(Path::new("/proc"), self.pid(), 0) {
            spaces.apply(&context);
        }
        spaces
    }
}
