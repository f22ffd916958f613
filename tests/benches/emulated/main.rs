//! How much longer a program takes in the emulator: alone, with a callback for each access that does nothing, with our
//! plugin and nothing but counting behind it, and with all that `record` and `attach` do. `emulated [--rounds N]
//! [--lackey]`; COHTRACE_BIN names the tool.
//!
//! `cargo xtask bench emulate` runs it; built with the release settings.
#![expect(
    clippy::print_stdout,
    reason = "tables on standard output are its purpose"
)]

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use cohtrace::{
    access::Pid,
    event::Batch,
    machine::Machine,
    module::ModuleStore,
    source::{
        MemoryOptions, Progress, SourceKind as _, SourceOptions, Target, Watching,
        emulate::{self, Emulator},
    },
};
use cohtrace_tests::{
    evaluation,
    figures::{Spread, Table, spread},
};

/// Sums, permutes and counts: most accesses are to memory of one thread, some to what all share.
const MIXED: &str = include_str!("mixed.c");
/// Counts in a few lines of one thread each: nearly every access repeats another.
const HOT: &str = include_str!("hot.c");

/// Programs as people write them, with four threads each: one that mostly computes, one that mostly moves.
const KERNELS: [&str; 2] = ["ray_caster", "fft_transpose"];

/// What runs.
struct Subject {
    name: String,
    program: PathBuf,
    arguments: Vec<String>,
    /// The same with so little work that a tool a thousand times slower ends.
    small: Vec<String>,
}

impl Subject {
    fn words(&self) -> impl Iterator<Item = &str> {
        let program = self.program.to_str().unwrap_or_default();
        std::iter::once(program).chain(self.arguments.iter().map(String::as_str))
    }
}

fn main() -> Result<()> {
    let mut rounds = 5;
    let mut lackey = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // What `cargo bench` adds to every call.
            "--bench" => {}
            "--lackey" => lackey = true,
            "--rounds" => {
                let number = arguments.next().context("--rounds takes a number")?;
                rounds = number.parse().context("--rounds takes a number")?;
            }
            other => bail!("{other} is no option of this bench"),
        }
    }
    let tool = std::env::var_os("COHTRACE_BIN").context("COHTRACE_BIN names the tool")?;
    let directory = tempfile::tempdir()?;
    let plugin = directory.path().join("plugin.so");
    std::fs::write(&plugin, emulate::plugin())?;
    for subject in subjects(directory.path())? {
        let bench = Bench {
            subject,
            plugin: &plugin,
            tool: Path::new(&tool),
            directory: directory.path(),
        };
        bench.run(rounds, lackey)?;
    }
    Ok(())
}

fn subjects(directory: &Path) -> Result<Vec<Subject>> {
    let mut subjects = Vec::new();
    for (name, text) in [("mixed", MIXED), ("hot", HOT)] {
        let source = directory.join(format!("{name}.c"));
        std::fs::write(&source, text)?;
        let program = compile(&source, directory, name)?;
        subjects.extend(["1", "2", "4"].map(|threads| Subject {
            name: format!("{name}, threads: {threads}"),
            program: program.clone(),
            arguments: vec![threads.to_owned(), "40".to_owned()],
            small: vec![threads.to_owned(), "2".to_owned()],
        }));
    }
    for name in KERNELS {
        let kernel = evaluation::named(name)?;
        subjects.push(Subject {
            name: format!("{name}, threads: 4"),
            program: kernel.build(&evaluation::Build::PLAIN)?,
            arguments: vec![evaluation::Input::Ref.name().to_owned()],
            small: vec![evaluation::Input::Train.name().to_owned()],
        });
    }
    Ok(subjects)
}

fn compile(source: &Path, directory: &Path, name: &str) -> Result<PathBuf> {
    let program = directory.join(name);
    let status = Command::new("gcc")
        .args(["-O2", "-g", "-pthread"])
        .arg(source)
        .arg("-o")
        .arg(&program)
        .arg("-lm")
        .status()
        .context("starting gcc")?;
    ensure!(status.success(), "{} does not compile", source.display());
    Ok(program)
}

struct Bench<'a> {
    subject: Subject,
    plugin: &'a Path,
    tool: &'a Path,
    directory: &'a Path,
}

const WAYS: [&str; 6] = [
    "native",
    "qemu",
    "qemu, empty callback",
    "our source, counted",
    "cohtrace record",
    "cohtrace attach",
];

impl Bench<'_> {
    fn run(&self, rounds: u32, lackey: bool) -> Result<()> {
        let mut took: Vec<Vec<f64>> = vec![Vec::new(); WAYS.len()];
        let mut counted = Counted::default();
        for _ in 0..rounds {
            for (way, took) in took.iter_mut().enumerate() {
                let time = if way == 3 {
                    counted = self.counted()?;
                    counted.took
                } else {
                    time(&mut self.command(way))?
                };
                took.push(time.as_secs_f64());
            }
        }
        println!("\n{}, {rounds} rounds, in turns", self.subject.name);
        let mut table = Table::new(&["", "wall, s", "x native", "x empty callback"]);
        let median = |way: usize| Spread::of(&took[way]).map_or(f64::NAN, |spread| spread.median);
        for (way, name) in WAYS.iter().enumerate() {
            table.row([
                (*name).to_owned(),
                spread(&took[way], 3),
                format!("{:.1}", median(way) / median(0)),
                format!("{:.2}", median(way) / median(2)),
            ]);
        }
        print!("{table}");
        let Counted {
            rows, executions, ..
        } = counted;
        println!(
            "{executions} accesses in {rows} rows: {:.3} rows an access",
            rows as f64 / executions.max(1) as f64
        );
        if lackey {
            self.beside_lackey()?;
        }
        Ok(())
    }

    fn command(&self, way: usize) -> Command {
        let mut words = self.subject.words();
        let mut command = match way {
            0 => Command::new(words.next().unwrap_or_default()),
            1 => Command::new(emulate::QEMU),
            2 => {
                let mut command = Command::new(emulate::QEMU);
                let plugin = format!("{},empty=1", self.plugin.display());
                command.arg("-plugin").arg(plugin);
                command
            }
            4 => {
                let mut command = Command::new(self.tool);
                let session = self.directory.join("bench.coh");
                command.args(["record", "--quiet", "--force", "--source", "emulate", "-o"]);
                command.arg(session).arg("--");
                command
            }
            _ => {
                let mut command = Command::new(self.tool);
                command.args(["attach", "--quiet", "--source", "emulate", "--"]);
                command
            }
        };
        command.args(words);
        command
    }

    /// Runs it under our source, and counts what comes.
    fn counted(&self) -> Result<Counted> {
        count(&self.subject.words().map(str::to_owned).collect::<Vec<_>>())
    }

    /// The same with less work, once, because of its time.
    fn beside_lackey(&self) -> Result<()> {
        let program = self.subject.program.display().to_string();
        let words: Vec<String> = std::iter::once(program)
            .chain(self.subject.small.iter().cloned())
            .collect();
        let ours = count(&words)?.took.as_secs_f64();
        let mut valgrind = Command::new("valgrind");
        valgrind
            .args(["--tool=lackey", "--trace-mem=yes", "--log-file=/dev/null"])
            .args(&words);
        let Ok(lackey) = time(&mut valgrind) else {
            println!("valgrind could not be run: not compared with lackey");
            return Ok(());
        };
        let lackey = lackey.as_secs_f64();
        println!(
            "with less work: our source {ours:.2} s, valgrind's lackey {lackey:.2} s, {:.0} times as long",
            lackey / ours
        );
        Ok(())
    }
}

#[derive(Default)]
struct Counted {
    took: Duration,
    rows: u64,
    executions: u64,
}

fn count(words: &[String]) -> Result<Counted> {
    let started = Instant::now();
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    let emulator = Arc::new(Emulator::prepare(&words, None)?);
    let mut child = emulator.command().stdout(Stdio::null()).spawn()?;
    let options = SourceOptions {
        frequency_hz: 1000,
        ring_bytes: 4096,
        slots: 4,
        watch: Watching::Off,
        heap: None,
        memory: MemoryOptions::default(),
        emulator: Some(emulator),
        tells: false,
    };
    let target = Target::Trees(vec![Pid(child.id())]);
    let modules = Arc::new(ModuleStore::new("/".into(), true));
    let mut source = emulate::KIND.open(&target, &options, &Machine::default(), modules)?;
    let mut counted = Counted::default();
    let mut batch = Batch::default();
    loop {
        if child.try_wait()?.is_some() {
            source.stop();
        }
        batch.clear();
        let progress = source.take(&mut batch)?;
        counted.rows += batch.accesses.len() as u64;
        counted.executions += batch.tally.executions;
        if progress == Progress::End {
            break;
        }
        source.idle()?;
    }
    counted.took = started.elapsed();
    Ok(counted)
}

fn time(command: &mut Command) -> Result<Duration> {
    let started = Instant::now();
    let ended = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    ensure!(ended.success(), "{command:?} ended with {ended}");
    Ok(started.elapsed())
}
