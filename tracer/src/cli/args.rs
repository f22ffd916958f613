//! What can be typed.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};

/// Samples per second and CPU unless asked otherwise.
pub const DEFAULT_FREQUENCY_HZ: u64 = 1000;
/// Sample ring of each CPU unless asked otherwise: 11,000 samples.
pub const DEFAULT_RING_KIB: usize = 2048;

/// Which cache lines threads fight over, by which variables and source lines; with or without a PMU.
#[derive(Debug, Parser)]
#[command(
    name = "cohtrace",
    version,
    after_help = "Start with `cohtrace demo` (as root), or ask `cohtrace doctor` what this machine offers.\n\
                  Exit codes: 0 ran; 1 findings, with --check; 2 could not run."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Watch running processes, or start one, and report the lines they fight over.
    ///
    /// Samples every CPU by a timer, decodes the instructions around each sample, and sorts the accesses
    /// per cache line. Ends after --duration, with the target, or on Ctrl-C; each way gives the report.
    #[command(after_help = "Examples:\n  \
        cohtrace attach -p 4242 --duration 5        a running process and its children\n  \
        cohtrace attach -- ./server --threads 8     start a program and watch it to its end\n  \
        cohtrace attach -a --duration 10            everything on this machine\n  \
        cohtrace attach --check --json -o report.json -- ./bench    in CI: exit code 1 on a finding")]
    Attach(AttachArgs),
    /// Watch like `attach`, and keep everything in a session for later reports.
    ///
    /// A session is a directory of Parquet files. A recorder that is killed loses at most its last
    /// seconds; the rest reads.
    #[command(after_help = "Example:\n  \
        cohtrace record -p 4242 --duration 30 -o server.coh && cohtrace report server.coh")]
    Record(RecordArgs),
    /// Report on a recorded session.
    Report(ReportArgs),
    /// Build and run a small falsely shared program, watch it, and show what a report looks like.
    Demo(DemoArgs),
    /// What this machine offers, which sources can run, and how to enable the others.
    Doctor(DoctorArgs),
}

/// Which processes.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("target").required(true).args(["pid", "all", "command"])))]
pub struct TargetArgs {
    /// Processes to watch, with their children.
    #[arg(short, long, value_name = "PID", value_delimiter = ',')]
    pub pid: Vec<u32>,
    /// Watch every process.
    #[arg(short, long)]
    pub all: bool,
    /// Command to start and watch, after `--`.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// Leave a started COMMAND running after --duration (else it gets SIGTERM).
    #[arg(long, requires = "command")]
    pub leave_running: bool,
}

/// How to sample.
#[derive(Debug, Args)]
pub struct SamplingArgs {
    /// Stop after this many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<f64>,
    /// Samples per second on each CPU.
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = DEFAULT_FREQUENCY_HZ, value_parser = clap::value_parser!(u64).range(1..=50_000))]
    pub frequency: u64,
    /// Size of each CPU's sample ring, a power of two; larger rides out longer stalls of this tool.
    #[arg(long, value_name = "KIB", default_value_t = DEFAULT_RING_KIB, value_parser = ring_kib)]
    pub ring_kib: usize,
    /// No progress on the terminal.
    #[arg(short, long)]
    pub quiet: bool,
}

/// How to judge.
#[derive(Debug, Args)]
pub struct AnalysisArgs {
    /// Bytes that travel together: 128 also finds sharing of adjacent lines, which prefetchers pair.
    #[arg(long, value_name = "BYTES", default_value_t = 64, value_parser = line_size)]
    pub line_size: u64,
    /// Share of the sampled time, in percent, below which a shared line is no finding.
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    pub threshold: f64,
    /// Accesses are only held against each other within slices of this length.
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub slice: u64,
}

/// How to print.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Print JSON (schema 1) instead of text. A started COMMAND's output then goes to standard error.
    #[arg(long)]
    pub json: bool,
    /// Exit with code 1 when there is a finding.
    #[arg(long)]
    pub check: bool,
    /// Write the report to a file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// When to use colours.
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// `attach`.
#[derive(Debug, Args)]
pub struct AttachArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub sampling: SamplingArgs,
    /// Keep everything in a session as well, for later reports.
    #[arg(long, value_name = "NAME.coh")]
    pub record: Option<PathBuf>,
    #[command(flatten)]
    pub analysis: AnalysisArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `record`.
#[derive(Debug, Args)]
pub struct RecordArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub sampling: SamplingArgs,
    /// Session directory to write.
    #[arg(short, long, value_name = "NAME.coh")]
    pub output: PathBuf,
    /// Replace an existing session.
    #[arg(long)]
    pub force: bool,
}

/// `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Session directory.
    #[arg(value_name = "NAME.coh")]
    pub session: PathBuf,
    #[command(flatten)]
    pub analysis: AnalysisArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Seconds to watch.
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = seconds)]
    pub duration: f64,
    /// Run the padded twin of the program, which gives no finding.
    #[arg(long)]
    pub padded: bool,
    /// Print the program's source and stop.
    #[arg(long)]
    pub source: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 31_536_000.0 => Ok(value),
        _ => Err("expected seconds above 0, up to a year".into()),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse::<f64>() {
        Ok(value) if (0.0..=100.0).contains(&value) => Ok(value),
        _ => Err("expected a percentage from 0 to 100".into()),
    }
}

fn line_size(text: &str) -> Result<u64, String> {
    match text {
        "64" => Ok(64),
        "128" => Ok(128),
        _ => Err("expected 64 or 128".into()),
    }
}

fn ring_kib(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(kib) if kib.is_power_of_two() && (64..=262_144).contains(&kib) => Ok(kib),
        _ => Err("expected a power of two from 64 to 262144".into()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn exactly_one_kind_of_target_is_asked_for() {
        let parse = |words: &[&str]| Cli::try_parse_from([&["cohtrace", "attach"], words].concat());
        assert!(parse(&["-p", "1,2"]).is_ok());
        assert!(parse(&["-a"]).is_ok());
        assert!(parse(&["--", "sleep", "1"]).is_ok());
        assert!(parse(&[]).is_err());
        assert!(parse(&["-a", "-p", "1"]).is_err());
        assert!(parse(&["-p", "1", "--", "sleep"]).is_err());
    }

    #[test]
    fn senseless_values_are_refused() {
        let parse =
            |words: &[&str]| Cli::try_parse_from([&["cohtrace", "attach", "-a"], words].concat());
        for bad in [
            ["--duration", "0"],
            ["--duration", "-1"],
            ["--duration", "inf"],
            ["--frequency", "0"],
            ["--line-size", "96"],
            ["--threshold", "101"],
            ["--ring-kib", "100"],
        ] {
            assert!(parse(&bad).is_err(), "{bad:?}");
        }
    }
}
