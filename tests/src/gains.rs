//! Programs whose gain from padding is known, since both forms can be run: `tests/workloads/gains`.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
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

/// Turns per nanosecond of each thread's run time, in a run of so long.
pub fn rates(program: &Path, run_for: Duration) -> Result<[f64; 2]> {
    let words = ahead(program);
    let mut command = Command::new(&words[0]);
    let ended = run(
        command
            .args(&words[1..])
            .arg(run_for.as_millis().to_string()),
        run_for * 2 + Duration::from_secs(20),
    );
    let rate = |name: &str| -> Option<f64> {
        let line = ended.stdout.lines().find(|line| line.starts_with(name))?;
        let mut numbers = line.split_whitespace().skip(1);
        let mut next = || numbers.next()?.parse::<f64>().ok();
        Some(next()? / next()?.max(1.0))
    };
    let rates = [rate(THREADS[0]), rate(THREADS[1])];
    let [Some(left), Some(right)] = rates else {
        anyhow::bail!("the program said {}", ended.said());
    };
    Ok([left, right])
}

/// How many times as fast a thread of a report's first finding would be, with least and most; `None` where the report does
/// not say.
pub fn times(report: &Value, thread: &str) -> Option<[f64; 3]> {
    let threads = report["findings"][0]["gain"]["per_thread"].as_array()?;
    let of = threads.iter().find(|of| of["comm"] == thread)?;
    let at = |name: &str| of[name].as_f64();
    Some([at("low")?, at("times")?, at("high")?])
}
