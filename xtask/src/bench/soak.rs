//! Whether what the tool keeps grows with what comes and goes: a simulated day, and minutes of the real thing.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use cohtrace_tests::figures::Table;

use super::{Bench, Plan, cargo, program::Killed, target_directory, watcher};

pub(super) static BENCH: Bench = Bench {
    name: "soak",
    about: "resident memory and descriptors of cohtrace record -a beside what comes and goes: a simulated day, and 10 minutes \
            after 5 of warming up",
    rounds: 1,
    needs_root: true,
    takes: |plan| RECORDED + Duration::from_secs(seconds(plan)) * 3 / 2 + Duration::from_mins(10),
    run,
};

/// Of the run from which the simulated day has its processes.
const RECORDED: Duration = Duration::from_secs(5);
/// Looks at the tool.
const LOOKS: u32 = 30;
/// Of them, while its caches grow to their bounds: decoded functions of the kernel and lines of its data, of which starting programs
/// use ever new ones.
const WARM_UP: u32 = 10;
/// What resident memory may grow by then.
const FLAT: f64 = 0.1;

/// Of the live part, after its warm-up.
fn seconds(plan: &Plan) -> u64 {
    plan.seconds.unwrap_or(600)
}

fn run(plan: &Plan) -> Result<()> {
    let directory = tempfile::tempdir_in(target_directory()?)?;
    let program = build(directory.path())?;
    let session = directory.path().join("recorded.coh");
    let mut record = recorder(plan, &session);
    record.args(["--duration", &RECORDED.as_secs().to_string()]);
    let churning = churn(
        &program,
        RECORDED + Duration::from_secs(2),
        directory.path(),
    )?;
    watcher::to_the_end(&mut record, false)?;
    drop(churning);
    println!("A simulated day:");
    let mut bench = cargo();
    bench
        .args(["bench", "--quiet", "--locked"])
        .args(["--package", "cohtrace-tests", "--bench", "soak", "--"])
        .args(["--processes", &processes(plan).to_string()])
        .arg("--session")
        .arg(&session);
    let simulated = bench.status().context("starting cargo")?;
    let seconds = seconds(plan);
    let time = Duration::from_secs(seconds) * LOOKS / (LOOKS - WARM_UP);
    println!(
        "Live, {} s of cohtrace record -a, of which the last {seconds} are measured:",
        time.as_secs()
    );
    live(plan, &program, directory.path(), time)?;
    ensure!(simulated.success(), "the simulated day failed");
    Ok(())
}

/// A million, and fewer where the live part is shorter.
fn processes(plan: &Plan) -> u64 {
    plan.seconds
        .map_or(1_000_000, |seconds| (seconds * 1_000_000 / 600).max(20_000))
}

fn recorder(plan: &Plan, session: &Path) -> Command {
    let mut command = plan.cohtrace();
    command
        .args(["record", "-a", "--quiet", "-o"])
        .arg(session)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

/// The program that comes and goes.
fn build(directory: &Path) -> Result<PathBuf> {
    let path = directory.join("churn");
    let status = Command::new("cc")
        .args(["-std=gnu11", "-O2", "-g", "-pthread", "-o"])
        .arg(&path)
        .arg(crate::root().join("tests/benches/churn.c"))
        .status()
        .context("starting cc; a C compiler must be installed")?;
    ensure!(status.success(), "building churn failed");
    Ok(path)
}

fn churn(program: &Path, time: Duration, directory: &Path) -> Result<Killed> {
    let child = Command::new(program)
        .arg(time.as_secs().to_string())
        .arg(directory)
        .spawn()
        .context("starting churn")?;
    Ok(Killed(child))
}

fn live(plan: &Plan, program: &Path, directory: &Path, time: Duration) -> Result<()> {
    let session = directory.join("live.coh");
    let tool = recorder(plan, &session)
        .spawn()
        .context("starting cohtrace")?;
    let mut tool = Killed(tool);
    let pid = tool.0.id();
    watcher::wait_until_watching(pid)?;
    // It ends a little after the last look, and says what it made.
    let churning = churn(program, time + Duration::from_secs(2), directory)?;
    let mut table = Table::new(&[
        "seconds",
        "resident, MiB",
        "of that anonymous",
        "descriptors",
        "session, MiB",
    ]);
    let (mut warm, mut most) = (Look::default(), Look::default());
    let start = Instant::now();
    for number in 1..=LOOKS {
        std::thread::sleep((time / LOOKS * number).saturating_sub(start.elapsed()));
        let look = Look::at(pid)?;
        table.row([
            format!("{:.0}", start.elapsed().as_secs_f64()),
            format!("{:.1}", look.resident_mib),
            format!("{:.1}", look.anonymous_mib),
            look.descriptors.to_string(),
            format!("{:.1}", session_mib(&session)?),
        ]);
        let sum = if number <= WARM_UP {
            &mut warm
        } else {
            &mut most
        };
        sum.keep_most(&look);
    }
    let mut churning = churning;
    churning.0.wait().context("waiting for churn")?;
    end(&mut tool)?;
    print!("{table}");
    ensure!(
        most.descriptors <= warm.descriptors,
        "descriptors grew from {} to {}",
        warm.descriptors,
        most.descriptors
    );
    ensure!(
        most.anonymous_mib <= warm.anonymous_mib * (1.0 + FLAT),
        "anonymous memory grew from {:.1} to {:.1} MiB",
        warm.anonymous_mib,
        most.anonymous_mib
    );
    println!(
        "Flat: anonymous memory at most {:.1} MiB after {:.1} MiB while warming up.",
        most.anonymous_mib, warm.anonymous_mib
    );
    Ok(())
}

/// Ends the tool as a user does, and waits for it.
fn end(tool: &mut Killed) -> Result<()> {
    let pid = tool.0.id().to_string();
    let status = Command::new("kill").args(["-INT", &pid]).status()?;
    ensure!(status.success(), "the tool could not be told to end");
    let ended = tool.0.wait()?;
    ensure!(ended.success(), "cohtrace: {ended}");
    Ok(())
}

/// What a process holds.
#[derive(Default)]
struct Look {
    resident_mib: f64,
    /// Without mapped files and rings, which the kernel can drop or shares.
    anonymous_mib: f64,
    descriptors: usize,
}

impl Look {
    fn at(pid: u32) -> Result<Look> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"));
        let status = status.context("the tool ended early")?;
        let mib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
            match kib {
                Some(kib) => Ok(kib / 1024.0),
                None => bail!("no {name} in /proc/{pid}/status"),
            }
        };
        Ok(Look {
            resident_mib: mib("VmRSS:")?,
            anonymous_mib: mib("RssAnon:")?,
            descriptors: fs::read_dir(format!("/proc/{pid}/fd"))?.count(),
        })
    }

    fn keep_most(&mut self, other: &Look) {
        self.resident_mib = self.resident_mib.max(other.resident_mib);
        self.anonymous_mib = self.anonymous_mib.max(other.anonymous_mib);
        self.descriptors = self.descriptors.max(other.descriptors);
    }
}

fn session_mib(session: &Path) -> Result<f64> {
    let mut bytes = 0;
    for table in fs::read_dir(session)? {
        let table = table?.path();
        if table.is_dir() {
            for part in fs::read_dir(&table)? {
                // A part that is being renamed is counted the next time.
                bytes += part?.metadata().map_or(0, |part| part.len());
            }
        }
    }
    Ok(bytes as f64 / f64::from(1 << 20))
}
