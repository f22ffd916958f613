//! The loop closed: hints that were decided on a recording are built into the program, and the recording of that
//! program shows what the simulation of the first predicted.

mod ways;

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use cohtrace::{
    access::Op,
    event::Batch,
    hint::{
        file::{HintFile, LoadHint},
        your_code::YourCode,
    },
    session::SessionReader,
};
use cohtrace_tests::{
    disassembly::{Prefetched, prefetches},
    evaluation::{Build, Input, Kernel, named},
    live::has_emulator,
    tool::{Ended, cohtrace, run},
    turn,
};
use serde_json::Value;
use ways::Way;

/// For one command: what compares recordings of millions of accesses takes its time on a busy machine.
const LIMIT: Duration = Duration::from_mins(4);
/// Recordings of each build in a round, one build after the other. Threads of two runs meet at other times; the median of
/// three is not that of a run which the machine disturbed.
const RUNS: usize = 3;
/// On a busy machine a program's own messages differ by some percent from one run to the next, which is a third of what the
/// hints of one program save: as long as the medians are not near enough, up to so many rounds are added to them.
const ROUNDS: usize = 4;
/// Most by which the rebuilt program's messages may differ from the predicted ones, percent of those.
const MOST_OFF: f64 = 5.0;
/// The same of what the hints save, percent of the predicted saving. The hints save 6 % of the messages of one of the
/// programs: that all messages are within 5 % would be said of hints that do next to nothing.
const MOST_SAVING_OFF: f64 = 20.0;

/// A kernel, and a directory for what is made of it.
struct Bench {
    kernel: Kernel,
    way: Way,
    /// The build without hints.
    plain: PathBuf,
    input: Input,
    directory: tempfile::TempDir,
    /// The result of the plain build.
    checksum: String,
}

/// The messages of the recordings of one build.
struct Messages {
    /// As it ran.
    all: u64,
    /// With the hints given in the program's own code, where they are not in the program yet.
    hinted: u64,
    /// Executions of loads that had a hint when they ran.
    biased: u64,
}

impl Bench {
    fn new(kernel: Kernel, way: Way, input: Input) -> Bench {
        let plain = match way.plugin() {
            None => kernel.build(&Build::PLAIN).expect("it builds"),
            Some(plugin) => plugin.build("plain", None),
        };
        assert_eq!(prefetches(&plain).expect("objdump"), Vec::new());
        let answered = kernel.run(&plain, input).expect("it answers");
        assert!(answered.right);
        Bench {
            kernel,
            way,
            plain,
            input,
            directory: tempfile::tempdir().expect("a temporary directory"),
            checksum: answered.checksum,
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn tool(&self, arguments: &[&str], paths: &[&Path]) -> Ended {
        let mut command = cohtrace(arguments);
        run(command.args(paths).current_dir(self.at("")), LIMIT)
    }

    /// Records a run of a build, which must find its result right.
    fn record(&self, program: &Path, name: &str) -> PathBuf {
        let session = self.at(&format!("{name}.coh"));
        let options = ["record", "--quiet", "--source", "emulate", "--output"];
        let rest = [
            session.as_path(),
            Path::new("--"),
            program,
            Path::new(self.input.name()),
        ];
        let ended = self.tool(&options, &rest);
        let answered = self
            .kernel
            .answered(ended.code(), &ended.stdout, ended.took);
        let answered = answered.unwrap_or_else(|e| panic!("{e:#}\n{}", ended.said()));
        assert!(answered.right && answered.checksum == self.checksum);
        session
    }

    /// Decides; the hints for the program itself that the way can place.
    fn hints(&self, session: &Path) -> HintFile {
        let text = self.tool(&["hints"], &[session]).expect_code(0).stdout;
        let mut hints = HintFile::parse(&text).expect("it prints hints");
        hints.hints.retain(|hint| {
            let module = hint.load.module.as_deref().map(Path::new);
            module.and_then(Path::file_name) == Some(OsStr::new(self.kernel.name))
                && hint.load.file.is_some()
                && self.way.reaches(&hint.load)
        });
        hints
    }

    /// Writes the hints, and builds with them.
    fn build(&self, hints: &HintFile, name: &str) -> PathBuf {
        let text = hints.render();
        fs::write(self.at("hints.json"), &text).expect("the directory is writable");
        let program = match self.way.plugin() {
            None => self.assemble(&text, name),
            Some(plugin) => plugin.build(name, Some(&self.at("hints.json"))),
        };
        let answered = self.kernel.run(&program, self.input).expect("it answers");
        assert!(answered.right && answered.checksum == self.checksum);
        program
    }

    /// Builds with the assembler that places them.
    fn assemble(&self, hints: &str, name: &str) -> PathBuf {
        // What was predicted is of all loads, also of those that walk over the words of a line.
        let install = [
            "as",
            "--everywhere",
            "--install",
            "bin",
            "--hints",
            "hints.json",
        ];
        self.tool(&install, &[]).expect_code(0);
        let bin = self.at("bin");
        let arguments = [OsStr::new("-B"), bin.as_os_str()];
        let build = Build {
            name,
            arguments: &arguments,
            depends_on: hints,
            ..Build::PLAIN
        };
        self.kernel.build(&build).expect("it builds with hints")
    }

    /// Simulates sessions with `hints.json`; the medians.
    fn simulate(&self, sessions: &[PathBuf]) -> Messages {
        let paths: Vec<&Path> = sessions.iter().map(PathBuf::as_path).collect();
        let options = [
            "simulate",
            "--quiet",
            "--json",
            "--everywhere",
            "--hints",
            "hints.json",
        ];
        let ended = self.tool(&options, &paths).expect_code(0);
        let json: Value = serde_json::from_str(&ended.stdout).expect("it prints JSON");
        let median = |pointer: &str| {
            let rows = json["sessions"].as_array().expect("sessions").iter();
            let figure = |row: &Value| row.pointer(pointer).and_then(Value::as_u64);
            let mut all: Vec<u64> = rows.map(|row| figure(row).expect("a figure")).collect();
            all.sort_unstable();
            all[all.len() / 2]
        };
        Messages {
            all: median("/unmodified/transactions"),
            hinted: median("/your_code_all_hinted/transactions"),
            biased: median("/executed/biased_loads"),
        }
    }
}

/// Each prefetch belongs to the load behind it, which is that of a hint; and each hint has one.
fn assert_placed(hints: &[LoadHint], placed: &[Prefetched]) {
    let of = |hint: &LoadHint, prefetch: &Prefetched| {
        let file = Path::new(hint.load.file.as_deref().unwrap_or_default());
        let frame = prefetch.frames.first().expect("it was built with -g");
        file.file_name() == Some(OsStr::new(&frame.file)) && hint.load.line == Some(frame.line)
    };
    for prefetch in placed {
        assert!(prefetch.is_of_next(), "{prefetch:?}");
        assert!(hints.iter().any(|hint| of(hint, prefetch)), "{prefetch:?}");
    }
    for hint in hints {
        assert!(placed.iter().any(|prefetch| of(hint, prefetch)), "{hint:?}");
    }
}

/// Fetches for ownership in a session.
fn fetches(session: &Path) -> usize {
    let mut reader = SessionReader::open(session).expect("the session reads");
    let (mut count, mut batch) = (0, Batch::default());
    while reader.next_batch(&mut batch).expect("the session reads") {
        let fetches = |access: &&cohtrace::access::Access| access.op == Op::PrefetchOwn;
        count += batch.accesses.iter().filter(fetches).count();
        batch.clear();
    }
    count
}

/// Off by so many percent of what was predicted.
fn off(predicted: u64, measured: u64) -> f64 {
    (measured as f64 - predicted as f64).abs() / predicted as f64 * 100.0
}

/// What was predicted of the plain build, what the hinted one does, and what the one without hints does.
struct Figures {
    predicted: Messages,
    measured: Messages,
    unchanged: Messages,
}

impl Figures {
    /// Whether the hinted build does what was predicted, and the one without hints, by the same measure, nothing.
    fn hold(&self) -> bool {
        let predicted = &self.predicted;
        let saving = predicted.all - predicted.hinted;
        let saved = predicted.all.saturating_sub(self.measured.all);
        let noise = predicted.all.abs_diff(self.unchanged.all) as f64;
        off(predicted.hinted, self.measured.all) < MOST_OFF
            && off(saving, saved) < MOST_SAVING_OFF
            && noise < saving as f64 * MOST_SAVING_OFF / 100.0
    }

    fn text(&self) -> String {
        format!(
            "{} messages, {} predicted, {} measured, {} of the twin",
            self.predicted.all, self.predicted.hinted, self.measured.all, self.unchanged.all
        )
    }
}

/// `input` is the one whose hints save clearly more than two runs differ by.
fn check(kernel: Kernel, way: Way, input: Input) {
    if !has_emulator() {
        return;
    }
    let name = kernel.name;
    // Programs that share the CPUs disturb each other.
    let _turn = turn::alone();
    let bench = Bench::new(kernel, way, input);
    let plain = &bench.plain;
    let decided = bench.record(plain, "decided");
    assert_eq!(fetches(&decided), 0);
    let hints = bench.hints(&decided);
    // What the compiler can place: loads of the program itself that have a source line.
    let mut reached = hints.hints.clone();
    reached.retain(|hint| YourCode::default().has(&hint.load));
    assert!(!reached.is_empty());

    // The twin comes first: the compiler calls the same wrapper, which has nothing to place.
    let none = HintFile {
        hints: Vec::new(),
        ..hints.clone()
    };
    let twin = bench.build(&none, "no_hints");
    assert_eq!(prefetches(&twin).expect("objdump"), Vec::new());

    let hinted = bench.build(&hints, "hinted");
    let verify = [
        "as",
        "--everywhere",
        "--hints",
        "hints.json",
        "--check",
        "--verify",
    ];
    bench.tool(&verify, &[&hinted]).expect_code(0);
    bench.tool(&verify, &[plain]).expect_code(1);
    assert_placed(&reached, &prefetches(&hinted).expect("objdump"));

    let [mut before, mut unchanged, mut after] = [(); 3].map(|()| Vec::new());
    let mut figures = None;
    for round in 0..ROUNDS {
        for run in round * RUNS..(round + 1) * RUNS {
            before.push(bench.record(plain, &format!("before{run}")));
            unchanged.push(bench.record(&twin, &format!("twin{run}")));
            after.push(bench.record(&hinted, &format!("after{run}")));
        }
        let now = Figures {
            predicted: bench.simulate(&before),
            measured: bench.simulate(&after),
            unchanged: bench.simulate(&unchanged),
        };
        let holds = now.hold();
        figures = Some(now);
        if holds {
            break;
        }
    }
    let figures = figures.expect("there is a round");
    #[expect(clippy::print_stderr, reason = "the figures of docs/hints.md")]
    {
        eprintln!("{name}, {}: {}", input.name(), figures.text());
    }
    assert!(figures.hold());
    assert!(fetches(&after[0]) > 0);
    assert_eq!((fetches(&before[0]), fetches(&unchanged[0])), (0, 0));
    assert_eq!((figures.predicted.biased, figures.unchanged.biased), (0, 0));
    // Each miss that was seen before is an execution now. Of hits there may be more or fewer: threads that wait for a lock
    // may do so in a loop of hinted loads.
    let misses = reached.iter().map(|hint| hint.expected.requests);
    let misses: u64 = misses.sum();
    assert!(
        figures.measured.biased * 2 > misses,
        "{misses} misses, {} executions with a hint",
        figures.measured.biased
    );

    // Two single runs may differ by more than the hints save; most do not.
    let fewer = before.iter().zip(&after).filter(|(before, after)| {
        let diff = bench
            .tool(&["diff", "--json"], &[before, after])
            .expect_code(0);
        let diff: Value = serde_json::from_str(&diff.stdout).expect("it prints JSON");
        let cost = |side: &str| diff[side]["cost"].as_u64().expect("messages");
        assert_eq!(diff["before"]["cost_unit"], "transactions");
        assert_eq!(diff["comparable"], true);
        cost("after") < cost("before")
    });
    assert!(fewer.count() * 2 > before.len(), "{}", figures.text());
}

fn check_kernel(name: &str, input: Input) {
    check(named(name).expect("it is a kernel"), Way::Assembler, input);
}

#[test]
fn a_program_without_locks_saves_what_was_predicted_and_without_hints_nothing() {
    check_kernel("fft_transpose", Input::Ref);
}

#[test]
fn a_program_with_locks_saves_what_was_predicted_and_without_hints_nothing() {
    check_kernel("sparse_cholesky", Input::Train);
}

#[test]
fn a_program_of_blocks_with_owners_saves_what_was_predicted_and_without_hints_nothing() {
    check_kernel("blocked_lu", Input::Ref);
}

#[test]
fn a_program_in_cpp_by_clangs_plugin_saves_what_was_predicted_and_without_hints_nothing() {
    if let Some(way) = Way::clang() {
        check(ways::LEDGER, way, Input::Train);
    }
}

#[test]
fn a_program_in_rust_by_its_linkers_plugin_saves_what_was_predicted_and_without_hints_nothing() {
    if let Some(way) = Way::rust() {
        check(ways::LEDGER, way, Input::Train);
    }
}
