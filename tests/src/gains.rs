//! Programs whose gain from padding is known, since both forms can be run: `tests/workloads/gains`.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::{tool::run, workload::directory};

/// What two threads do between two looks at whether they shall stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// As tables name it.
    pub name: &'static str,
    access: u8,
    work: u32,
}

const fn case(name: &'static str, access: u8, work: u32) -> Case {
    Case { name, access, work }
}

/// Locked additions and nothing else.
pub const LOCKED: Case = case("locked addition, 0", 1, 0);
/// Locked additions with work between them that takes much longer.
pub const RARE: Case = case("locked addition, 200", 1, 200);
/// Stores, each with a full barrier behind it.
pub const FENCED: Case = case("store and barrier, 0", 2, 0);
/// One thread stores, the other loads.
pub const ONE_STORES: Case = case("one stores, other loads, 10", 3, 10);

/// Ten programs, from all but nothing to gain to several times as fast; the number is the turns of work after each access.
pub const CASES: [Case; 10] = [
    case("word++, 0", 0, 0),
    case("word++, 10", 0, 10),
    LOCKED,
    case("locked addition, 10", 1, 10),
    FENCED,
    case("store and barrier, 10", 2, 10),
    ONE_STORES,
    case("one stores, other loads, 200", 3, 200),
    case("burst of 50 word++, 50", 4, 50),
    case("burst of 50 word++, 200", 4, 200),
];

/// The threads' names.
pub const THREADS: [&str; 2] = ["left", "right"];

/// Both forms of a program.
#[derive(Clone, Debug)]
pub struct Twins {
    /// Both words on one line.
    pub plain: PathBuf,
    /// A line for each.
    pub padded: PathBuf,
}

impl Twins {
    /// Builds them in a directory.
    pub fn build(case: Case, directory: &Path) -> Result<Twins> {
        let source = self::directory().join("gains/two_words.c");
        let build = |form: &str, more: &[&str]| -> Result<PathBuf> {
            let program = directory.join(format!("{}_{}_{form}", case.access, case.work));
            let mut compiler = Command::new("cc");
            compiler.args(["-O2", "-g", "-pthread"]).args(more);
            compiler.arg(format!("-DACCESS={}", case.access));
            compiler.arg(format!("-DWORK={}", case.work));
            let status = compiler.arg(&source).arg("-o").arg(&program).status();
            ensure!(status.context("running cc")?.success(), "cc failed");
            Ok(program)
        };
        Ok(Twins {
            plain: build("plain", &[])?,
            padded: build("padded", &["-DPADDED"])?,
        })
    }
}

/// Runs a program ahead of all else that the machine has to do, so that its two threads are on CPUs together.
pub fn ahead(program: &Path) -> Vec<OsString> {
    let nice: [OsString; 3] = ["nice", "-n", "-20"].map(Into::into);
    nice.into_iter().chain([program.into()]).collect()
}

/// What a thread did in a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ran {
    /// Turns.
    pub turns: f64,
    /// Nanoseconds on a CPU.
    pub ran_ns: f64,
    /// Nanoseconds from its first turn to its last.
    pub took_ns: f64,
}

impl Ran {
    /// Turns per nanosecond.
    pub fn rate(self) -> f64 {
        self.turns / self.ran_ns.max(1.0)
    }

    /// The same, of the time in which the other one was on a CPU as well, where it is so fast without that one. With a gain of
    /// six, a fiftieth of such time is a tenth of all turns.
    pub fn rate_beside(self, other: Ran, alone: f64) -> f64 {
        let without = (self.took_ns - other.ran_ns).clamp(0.0, self.ran_ns);
        (self.turns - alone * without) / (self.ran_ns - without).max(1.0)
    }
}

/// What both did, as the program says at its end.
pub fn said(output: &str) -> Option<[Ran; 2]> {
    let ran = |name: &str| -> Option<Ran> {
        let line = output.lines().find(|line| line.starts_with(name))?;
        let mut numbers = line.split_whitespace().skip(1);
        let mut next = || numbers.next()?.parse::<f64>().ok();
        Some(Ran {
            turns: next()?,
            ran_ns: next()?,
            took_ns: next()?,
        })
    };
    Some([ran(THREADS[0])?, ran(THREADS[1])?])
}

/// How many times as fast each thread is in the padded form, while both run: by what the plain form said of a run, and the
/// rates of the padded one, which are those that a thread has alone.
pub fn real(plain: [Ran; 2], padded: [f64; 2]) -> [f64; 2] {
    let of = |n: usize| padded[n] / plain[n].rate_beside(plain[1 - n], padded[n]);
    [of(0), of(1)]
}

/// Turns per nanosecond of each thread, in a run of so long.
pub fn rates(program: &Path, run_for: Duration) -> Result<[f64; 2]> {
    let words = ahead(program);
    let mut command = Command::new(&words[0]);
    let ended = run(
        command
            .args(&words[1..])
            .arg(run_for.as_millis().to_string()),
        run_for * 2 + Duration::from_secs(20),
    );
    let ran = said(&ended.stdout).with_context(|| format!("the program said {}", ended.said()))?;
    Ok(ran.map(Ran::rate))
}

/// How many times as fast a thread of a report's first finding would be, with least and most; `None` where the report does
/// not say.
pub fn times(report: &Value, thread: &str) -> Option<[f64; 3]> {
    let threads = report["findings"][0]["gain"]["per_thread"].as_array()?;
    let of = threads.iter().find(|of| of["comm"] == thread)?;
    let at = |name: &str| of[name].as_f64();
    Some([at("low")?, at("times")?, at("high")?])
}

/// The process by which a tool holds threads (`--hold`), as soon as it is there.
pub fn holder(tool: u32, patience: Duration) -> u32 {
    let deadline = Instant::now() + patience;
    let parent = format!("PPid:\t{tool}\n");
    loop {
        let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
        let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let found = pids.find(|pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            status.starts_with("Name:\tcohtrace-hold\n") && status.contains(&parent)
        });
        if let Some(holder) = found {
            return holder;
        }
        assert!(Instant::now() < deadline, "nobody is there to hold");
    }
}
