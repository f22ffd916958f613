//! One live test: build a workload, run the tool on it, compare. It runs alone.

use std::{
    fmt::{self, Write as _},
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::Duration,
};

use anyhow::{Context, bail};
use cohtrace_skips::say;
pub use cohtrace_skips::{skipped, skipped_core};

use crate::{
    answer::{Answer, Observer, Variant},
    breakpoint,
    compare::{FunctionRanges, differences},
    disassembly, kernel,
    report::{Access, Finding, Report},
    tool::{self, Ended, cohtrace},
    turn::{self, Turn},
    workload::{self, Program, Workload, target_directory},
};

/// How long a workload runs under the tool, milliseconds; the tool looks at it for 2 s of that.
pub const RUN_MS: u64 = 2500;

/// How long the tool may take beyond the time it was asked to look: symbols of a debug build on a busy machine.
pub const GRACE: Duration = Duration::from_secs(40);

/// Waits for the turn to run live. `None` when this machine cannot, which is said loudly; but where it should be able
/// to (root, and a kernel with BPF), not being able to is a failure.
pub fn ready() -> Option<Turn> {
    if let Some(reason) = cannot() {
        skipped_core(reason);
        return None;
    }
    Some(turn::alone())
}

/// Whether there is an emulator to run programs in; says so loudly where not.
pub fn has_emulator() -> bool {
    let found = Command::new("qemu-x86_64")
        .arg("--version")
        .output()
        .is_ok();
    if !found {
        skipped_core("no qemu-x86_64 (apt install qemu-user)");
    }
    found
}

/// Why no live test can run here. Panics when one should and the tool says it cannot.
fn cannot() -> Option<&'static str> {
    static REASON: OnceLock<Option<&'static str>> = OnceLock::new();
    *REASON.get_or_init(|| {
        if !kernel::is_root() {
            return Some("not root; run the tests as root to include the live ones");
        }
        if let Err(error) = kernel::loaded() {
            return match error.raw_os_error() {
                Some(libc::ENOSYS) => Some("this kernel has no BPF"),
                Some(libc::EPERM) => {
                    Some("bpf(2) is not permitted here (a container without CAP_BPF, or lockdown)")
                }
                _ => panic!("asking the kernel for its BPF programs: {error}"),
            };
        }
        let doctor = tool::run(&mut cohtrace(["doctor", "--json"]), GRACE).expect_code(0);
        let json: serde_json::Value = serde_json::from_str(&doctor.stdout)
            .unwrap_or_else(|error| panic!("doctor --json: {error}\n{}", doctor.said()));
        let timer = json["sources"]
            .as_array()
            .and_then(|sources| sources.iter().find(|source| source["name"] == "timer"))
            .unwrap_or_else(|| panic!("doctor names no source called timer\n{}", doctor.said()));
        let answers = [&timer["available"], &timer["status"]];
        assert!(
            answers.iter().any(|&a| a == true || a == "available"),
            "root and BPF are there, but the timer source is not available: {timer}"
        );
        None
    })
}

/// Looks that a workload with an answer may take. Sampling is a matter of chance, and a machine that gives the
/// workload's threads no time together shows nothing to find; `hit_rate` counts how often one look is enough.
const LOOKS: usize = 3;

/// Seconds of a look that comes before these where something is to be found, which most often takes no more. What is found
/// too much fails it as it fails any other.
const FIRST_LOOK_S: u64 = 1;

/// Runs the tool on a workload and panics with a readable difference unless it finds the answer, as the answer's observer sees
/// it, and nothing else. A false alarm is never excused: the first look counts where nothing is to be found, and where more was
/// found. Where the machine has no breakpoints to give, what windows must see is skipped loudly.
pub fn check(name: &str, answer: &Answer) {
    let variant = answer.variant;
    let turn = match answer.observer {
        Observer::Windows => ready_to_watch(),
        _ => ready(),
    };
    let Some(_turn) = turn else { return };
    match answer.observer {
        Observer::KernelLocks => {
            look_again(name, &[answer.seconds; LOOKS], |seconds| {
                observe_kernel_locks(name, variant, seconds)
            });
        }
        Observer::Windows => look(name, variant, Windows::Required),
        Observer::Samples | Observer::Allocations => look(name, variant, Windows::WherePossible),
    }
}

/// What a run comes to on a workload whose threads spin in the kernel for a lock that it keeps in memory of its own: that must be
/// found, with the lock's code as the one that spins.
fn observe_kernel_locks(name: &str, variant: Variant, seconds: u64) -> anyhow::Result<()> {
    let subject = Subject::new(name, variant)?;
    let ended = subject.attach(seconds)?;
    subject.judge(&ended)?;
    let report = Report::parse(&ended.stdout)?;
    // The lock is a `struct rw_semaphore`; who waits for it is in one of these.
    let spins = |access: &Access| {
        let symbol = access.code.symbol.as_deref().unwrap_or("");
        access.waits.1 > 0.0 && (symbol.starts_with("rwsem_") || symbol.starts_with("osq_"))
    };
    let is_lock = |finding: &Finding| {
        let said = |fact: &String| fact.contains("Threads spin for it ");
        finding.object_kind == "kernel"
            && finding.accesses.iter().any(spins)
            && finding.facts.iter().any(said)
    };
    if !report.findings.iter().any(is_lock) {
        bail!(
            "no lock of the kernel is found that threads spin for\n{:#?}\nrun: {}",
            report.findings,
            report.json["run"]
        );
    }
    Ok(())
}

/// Looks at a workload as often, and as long, as its answer allows.
fn look(name: &str, variant: Variant, windows: Windows) {
    let subject = Subject::new(name, variant).unwrap_or_else(|error| panic!("{error:#}"));
    let looks = looks(&subject.answer);
    look_again(name, &looks, |seconds| subject.observe(seconds, windows));
}

/// Seconds of each look. Where nothing is to be found there is one, of full length, for what is seen late is a false alarm
/// too. Windows, pairs and many threads have their time in each look.
fn looks(answer: &Answer) -> Vec<u64> {
    if answer.findings.is_empty() {
        return vec![answer.seconds];
    }
    let has_pairs = !answer.pairs.is_empty() || !answer.no_pair.is_empty();
    let is_soon = answer.observer == Observer::Samples && answer.seconds == 2 && !has_pairs;
    let first = is_soon.then_some(FIRST_LOOK_S);
    let full = [answer.seconds; LOOKS];
    first.into_iter().chain(full).collect()
}

/// Looks until what is right is seen, as long as chance may be why it was not.
fn look_again(name: &str, looks: &[u64], see: impl Fn(u64) -> anyhow::Result<()>) {
    let last = looks.len();
    for (look, &seconds) in (1..).zip(looks) {
        match see(seconds) {
            Ok(()) => return,
            Err(error) if look == last || !is_by_chance(&error) => panic!("{error:#}"),
            Err(error) => say(format_args!(
                "*** {name}: look {look} of {last} missed: {error:#}"
            )),
        }
    }
}

/// Waits for the turn to run live with windows; `None`, said loudly, where the machine has no breakpoints to give.
pub fn ready_to_watch() -> Option<Turn> {
    let turn = ready()?;
    let free = breakpoint::free().unwrap_or_else(|error| panic!("{error:#}"));
    if free == 0 {
        skipped("no hardware breakpoint is free on every CPU");
        return None;
    }
    Some(turn)
}

/// Why a report is not the answer.
#[derive(Debug)]
struct NotTheAnswer {
    text: String,
    /// Whether chance may be the reason for all of it; see [`crate::compare::Difference::by_chance`].
    by_chance: bool,
}

impl fmt::Display for NotTheAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for NotTheAnswer {}

fn is_by_chance(error: &anyhow::Error) -> bool {
    let not = error.downcast_ref::<NotTheAnswer>();
    not.is_none_or(|not| not.by_chance)
}

/// What a run must have had to give the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Windows {
    /// Findings need not be confirmed in a run that could not watch and says so.
    WherePossible,
    /// A run that did not watch did not give the answer, if there was anything to watch.
    Required,
}

/// What one run of the tool on a workload comes to: `Err` explains the difference from the answer.
pub fn observe(name: &str, variant: Variant, windows: Windows) -> anyhow::Result<()> {
    let subject = Subject::new(name, variant)?;
    subject.observe(subject.answer.seconds, windows)
}

/// A built workload with its answer.
#[derive(Debug)]
pub struct Subject {
    /// Source and key.
    pub workload: Workload,
    /// The variant's key.
    pub answer: Answer,
    /// The variant's build.
    pub program: Program,
}

/// Records a variant of a workload into a session for 2 s, with these arguments more. Panics unless that works.
pub fn record(name: &str, variant: Variant, session: &Path, arguments: &[&str]) {
    let subject = Subject::new(name, variant).unwrap_or_else(|error| panic!("{error:#}"));
    let mut record = cohtrace(["record", "--duration", "2"]);
    record.args(arguments).arg("-o").arg(session).arg("--");
    record.arg(&subject.program.path).arg(RUN_MS.to_string());
    tool::run(&mut record, GRACE).expect_code(0);
}

impl Subject {
    /// Builds a variant.
    pub fn new(name: &str, variant: Variant) -> anyhow::Result<Subject> {
        let workload = workload::named(name)?;
        Ok(Subject {
            answer: workload.answer(variant)?.clone(),
            program: workload.build(variant)?,
            workload,
        })
    }

    /// The program, told to run that long.
    pub fn command(&self, ms: u64) -> Command {
        let mut command = Command::new(&self.program.path);
        command.arg(ms.to_string());
        command
    }

    /// What a look of so many seconds comes to.
    fn observe(&self, seconds: u64, windows: Windows) -> anyhow::Result<()> {
        let ended = self.attach(seconds)?;
        self.judge(&ended)?;
        if windows == Windows::Required && !self.answer.findings.is_empty() {
            let report = Report::parse(&ended.stdout)?;
            if report.watch.is_none() {
                bail!("the run had no watch windows: {:#?}", report.caveats);
            }
        }
        Ok(())
    }

    /// Runs the tool on the program, which outlives the look at it.
    fn attach(&self, seconds: u64) -> anyhow::Result<Ended> {
        let run_ms = seconds * 1000 + 500;
        let mut command = cohtrace(["attach", "--json", "--duration", &seconds.to_string()]);
        command
            .args(&self.answer.tool_arguments)
            .arg("--")
            .arg(&self.program.path)
            .arg(run_ms.to_string());
        let ended = tool::run(&mut command, Duration::from_millis(run_ms) + GRACE);
        if ended.code() != 0 {
            bail!("cohtrace exits with {}\n{}", ended.code(), ended.said());
        }
        Ok(ended)
    }

    /// Compares what the tool printed with the answer. The report is kept in the target directory.
    pub fn judge(&self, ended: &Ended) -> anyhow::Result<()> {
        let kept = self.keep(&ended.stdout)?;
        let report = Report::parse(&ended.stdout).with_context(|| ended.said())?;
        self.judge_report(&report)
            .map_err(|error| match error.downcast::<NotTheAnswer>() {
                Ok(mut not) => {
                    let _ = write!(
                        not.text,
                        "\nreport: {}\nstderr:\n{}",
                        kept.display(),
                        ended.stderr
                    );
                    not.into()
                }
                Err(error) => error,
            })
    }

    /// Compares a report with the answer.
    pub fn judge_report(&self, report: &Report) -> anyhow::Result<()> {
        let functions = self.functions()?;
        let differences = differences(&self.workload, &self.answer, report, functions.as_ref());
        if differences.is_empty() {
            return Ok(());
        }
        let texts: Vec<String> = differences.iter().map(ToString::to_string).collect();
        let text = format!(
            "{} ({}): the report is not the answer\n\n{}\n\nrun: {}\ncaveats: {:#?}",
            self.workload.name,
            self.answer.variant.name(),
            texts.join("\n"),
            report.json["run"],
            report.caveats
        );
        Err(NotTheAnswer {
            text,
            by_chance: differences.iter().all(|difference| difference.by_chance),
        }
        .into())
    }

    /// The functions of a stripped program, from its copy with symbols.
    fn functions(&self) -> anyhow::Result<Option<FunctionRanges>> {
        self.answer
            .strip
            .then(|| disassembly::functions(&self.program.with_symbols))
            .transpose()
    }

    fn keep(&self, report: &str) -> anyhow::Result<PathBuf> {
        let directory = target_directory()?.join("reports");
        fs::create_dir_all(&directory)?;
        let name = format!("{}.{}.json", self.workload.name, self.answer.variant.name());
        let path = directory.join(name);
        fs::write(&path, report).with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(words: &str) -> Answer {
        let json = format!(r#"{{"variant": "plain", {words}}}"#);
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn only_what_is_found_by_samples_has_a_short_look_first() {
        let found = r#""findings": [{"kind": "k", "object": {"kind": "global"}, "fields": []}]"#;
        let with = |more: &str| looks(&answer(&format!("{found}{more}")));
        assert_eq!(with(""), [FIRST_LOOK_S, 2, 2, 2]);
        assert_eq!(looks(&answer(r#""findings": []"#)), [2]);
        assert_eq!(with(r#", "seconds": 6"#), [6; LOOKS]);
        assert_eq!(with(r#", "observer": "windows""#), [2; LOOKS]);
        assert_eq!(with(r#", "no_pair": ["@a"]"#), [2; LOOKS]);
    }
}
