//! A program of four instructions, and sessions of an emulator that nobody recorded.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use cohtrace::{
    access::{Access, Basis, Cpu, Op, Pid, Tid},
    event::{Batch, Context, ContextKind, Mapping, Tally},
    session::{Meta, SessionWriter, WriterOptions},
};
use cohtrace_tests::{
    live::GRACE,
    tool::{Ended, cohtrace, run},
};
use serde_json::Value;
use tempfile::TempDir;

/// Four instructions with names and source lines; `before` moves them, so that another program is another build.
fn source(before: &str) -> String {
    format!(
        ".text\n.globl _start\n_start:\n{before}\n\
         int_load: mov (%rdi),%rax\n\
         int_store: mov %rax,(%rdi)\n\
         fp_load: movsd (%rdi),%xmm0\n\
         fp_store: movsd %xmm0,(%rdi)\n\
         ret\n"
    )
}

/// A program that stands at the same addresses in its file and in memory.
pub(super) struct Program {
    /// The file.
    pub path: PathBuf,
    symbols: Vec<(String, u64)>,
}

impl Program {
    /// Builds it in a directory.
    pub(super) fn build(directory: &Path, name: &str, before: &str) -> Program {
        let text = directory.join(name).with_extension("s");
        fs::write(&text, source(before)).expect("room for the source");
        let path = directory.join(name);
        let built = Command::new("cc")
            .args([
                "-nostdlib",
                "-static",
                "-no-pie",
                "-g",
                "-Wl,--build-id",
                "-o",
            ])
            .arg(&path)
            .arg("-Wl,-z,noseparate-code")
            .arg(&text)
            .output()
            .expect("a C compiler");
        assert!(
            built.status.success(),
            "{}",
            String::from_utf8_lossy(&built.stderr)
        );
        let listed = Command::new("nm").arg(&path).output().expect("nm");
        let listed = String::from_utf8(listed.stdout).expect("text");
        let symbol = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [address, _, name] = words.try_into().ok()?;
            Some((name.to_owned(), u64::from_str_radix(address, 16).ok()?))
        };
        let symbols = listed.lines().filter_map(symbol).collect();
        Program { path, symbols }
    }

    /// Address of a symbol.
    pub(super) fn at(&self, name: &str) -> u64 {
        let found = self.symbols.iter().find(|(symbol, _)| symbol == name);
        found.unwrap_or_else(|| panic!("no symbol {name}")).1
    }

    /// Takes the source lines away.
    pub(super) fn strip_debug(&self) {
        let stripped = Command::new("strip").arg("-g").arg(&self.path).status();
        assert!(stripped.expect("strip").success());
    }

    fn mapping(&self) -> Context {
        let file = fs::metadata(&self.path).expect("the program is there");
        let device = file.dev();
        let mapping = Mapping {
            start: 0x40_0000,
            len: file.len().next_multiple_of(4096),
            file_offset: 0,
            dev: u64::from(libc::major(device)) << 32 | u64::from(libc::minor(device)),
            inode: file.ino(),
            shared: false,
            executable: true,
            writable: false,
            name: self.path.display().to_string(),
            build_id: None,
            stamp: None,
        };
        Context {
            time_ns: 1,
            kind: ContextKind::Mapping {
                pid: Pid(10),
                mapping: Arc::new(mapping),
            },
        }
    }
}

/// An integer that threads add to.
pub(super) const COUNTER: u64 = 0x5000_0000;
/// A floating-point number that threads add to.
pub(super) const SUM: u64 = 0x5000_1000;

/// An access of a thread.
pub(super) fn access(tid: u32, ip: u64, addr: u64, op: Op, basis: Basis) -> Access {
    Access {
        time_ns: 2,
        addr,
        ip,
        pid: Pid(10),
        tid: Tid(tid),
        cpu: Cpu(tid % 4),
        size: 8,
        op,
        basis,
        locked: false,
        kernel: false,
        ..Access::BLANK
    }
}

/// Forty turns of four threads: each adds to an integer and to a floating-point sum, on lines of their own.
pub(super) fn turns(program: &Program, basis: Basis) -> Vec<Access> {
    let turn = |n: u32| {
        let tid = 10 + n % 4;
        [
            access(tid, program.at("int_load"), COUNTER, Op::Load, basis),
            access(tid, program.at("int_store"), COUNTER, Op::Store, basis),
            access(tid, program.at("fp_load"), SUM, Op::Load, basis),
            access(tid, program.at("fp_store"), SUM, Op::Store, basis),
        ]
    };
    (0..40).flat_map(turn).collect()
}

/// A session of these accesses.
pub(super) fn session(
    directory: &Path,
    name: &str,
    program: &Program,
    accesses: Vec<Access>,
) -> PathBuf {
    let path = directory.join(name);
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("a boot");
    let meta = || Meta {
        boot_id: Some(boot.trim().to_owned()),
        ..Meta::new()
    };
    let mut writer = SessionWriter::create(&path, meta(), &WriterOptions::default()).expect("new");
    let batch = Batch {
        context: vec![program.mapping()],
        tally: Tally::default(),
        accesses,
        ..Batch::default()
    };
    writer.append(&batch).expect("room for a batch");
    writer.finish(meta()).expect("room for the rest");
    path
}

/// A session of the program's turns, as an emulator sees them.
pub(super) fn recorded_turns(directory: &Path, name: &str, program: &Program) -> PathBuf {
    let accesses = turns(program, Basis::Emulated);
    session(directory, name, program, accesses)
}

/// The program `adds` and its turns in `adds.coh`, in a directory of their own.
pub(super) fn adds() -> (TempDir, Program, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = Program::build(directory.path(), "adds", "nop");
    let session = recorded_turns(directory.path(), "adds.coh", &program);
    (directory, program, session)
}

/// Runs `simulate` with arguments on sessions.
pub(super) fn simulate(arguments: &[&str], sessions: &[&Path]) -> Ended {
    run(cohtrace(["simulate"]).args(sessions).args(arguments), GRACE)
}

/// What `simulate --json` says of sessions.
pub(super) fn json(arguments: &[&str], sessions: &[&Path]) -> Value {
    let mut arguments = arguments.to_vec();
    arguments.push("--json");
    let ended = simulate(&arguments, sessions).expect_code(0);
    serde_json::from_str(&ended.stdout).expect("JSON")
}

/// Transactions, those for loads, and misses, in each of the three scenarios.
pub(super) fn table(session: &Value) -> [[u64; 3]; 3] {
    ["transactions", "load_transactions", "l3_misses"].map(|figure| {
        ["unmodified", "integer_hinted", "all_hinted"]
            .map(|scenario| session[scenario][figure].as_u64().expect("a number"))
    })
}
