//! The command line: its commands, options and help.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{finding::PairThresholds, report::layout::FindingId};

mod assembling;
mod comparing;
mod diagnosing;
mod hinting;
mod measuring;
mod observing;
mod simulating;
mod slicing;
mod validating;
mod values;

pub(super) use assembling::AsArgs;
pub(super) use comparing::DiffArgs;
pub(super) use diagnosing::{BpfLogArgs, DoctorArgs};
pub(super) use hinting::{
    AfterArgs, HintFilter, HintFormat, HintPolicy, HintsArgs, LimitArgs, ProtocolArgs, YourCodeArgs,
};
pub(super) use measuring::MeasureArgs;
pub(super) use observing::{AttachArgs, ObservingArgs, RecordArgs, TargetArgs, WatchArgs};
pub(super) use simulating::SimulateArgs;
pub(super) use slicing::{SplitBy, StatsArgs};
pub(super) use validating::{GAIN, ValidateArgs};
pub(super) use values::heap_overhead;
use values::{finding_id, line_size, memory_bytes, percent, seconds};

/// Which cache lines threads fight over, by which variables and source lines; with or without a PMU.
#[derive(Debug, Parser)]
#[command(
    name = "cohtrace",
    version,
    after_help = "Start with `cohtrace demo` (as root), or ask `cohtrace doctor` what this machine offers.\n\
                  Exit codes: 0 ran, and with --check no sharing; 1 findings, with --check; 2 could not run;\n\
                  3 no findings but it could not be told, with --check: too few samples, or most could not be read."
)]
pub(super) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Watch running processes, or start one, and report the lines they fight over.
    ///
    /// Samples every CPU by a timer, decodes the instructions around each sample, and sorts the accesses
    /// per cache line. Suspicious lines are then watched by data breakpoints, some milliseconds at a time,
    /// which confirms, changes or drops what samples suggest (--no-watch: only sample). Ends after
    /// --duration, with the target, or on Ctrl-C; each way gives the report.
    #[command(after_help = "Examples:\n  \
        cohtrace attach -p 4242 --duration 5        a running process and its children\n  \
        cohtrace attach -- ./server --threads 8     start a program and watch it to its end\n  \
        cohtrace attach -a --duration 10            everything on this machine\n  \
        cohtrace attach -p 4242 --watch stats.hits  every access to this field, in order\n  \
        cohtrace attach --heap -- ./server          heap lines by where they were allocated\n  \
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
    #[command(after_help = "Examples:\n  \
        cohtrace report server.coh\n  \
        cohtrace record --source emulate -o x.coh -- ./server && cohtrace report --latent x.coh    what is not there yet\n  \
        cohtrace report --stats --interval 100ms --per cpu server.coh    what went on when, and where")]
    Report(ReportArgs),
    /// Make a session of a perf.data: of perf c2c record, perf mem record, or any record with data addresses.
    ///
    /// Files and pipes, compressed or not, of either byte order. Every sample with a data address becomes an access, with
    /// what served it, its latency and its physical address where they were recorded. What is damaged or missing is
    /// told; what is whole before that is kept. Code and variables are named when the files with the recorded build-ids
    /// are here.
    #[command(after_help = "Examples:\n  \
        perf c2c record -- ./server && cohtrace import perf.data && cohtrace report perf.coh\n  \
        perf mem record -o - -- ./server | cohtrace import - -o server.coh")]
    Import(ImportArgs),
    /// Read-then-write pairs of a recorded session: loads that a store to the same line follows.
    ///
    /// Only watch windows and emulated runs see what follows a load. A pair has a hint when fetching the line for ownership at
    /// the load would save a request; the thresholds are conservative, since a needless fetch takes the line
    /// from its readers.
    #[command(after_help = "Example:\n  \
        cohtrace record -p 4242 --duration 10 -o server.coh && cohtrace pairs server.coh")]
    Pairs(PairsArgs),
    /// Loads that should fetch their line for ownership, for compilers, editors and CI.
    ///
    /// A load that misses brings a line to read; when the same CPU then stores to the line, a second request must
    /// ask for its ownership. A hint says which loads should ask for both at once. INPUT is a session, or a hints.json that an
    /// earlier run wrote, which is converted. Edits (diff, clang-tidy, SARIF's fixes) are made only where the
    /// address can be taken from the source for certain; the other hints are listed on standard error with the reason.
    /// A prefetch can cost more than it saves: measure the program with and without.
    #[command(after_help = "Examples:\n  \
        cohtrace hints app.coh -o hints.json                      decide once, as JSON\n  \
        cohtrace hints app.coh --after worker -o hints.json       without the start of the program\n  \
        cohtrace hints hints.json --format text                   file:line:col: message, as compilers print\n  \
        cohtrace hints hints.json --format diff | patch -p1       write the prefetches; build with -mprfchw\n  \
        cohtrace hints app.coh --format sarif -o cohtrace.sarif   hints and findings, for editors and code scanning\n  \
        cohtrace hints hints.json --format clang-tidy -o fixes/cohtrace.yaml && clang-apply-replacements fixes\n\
        Exit codes: 0 ran, with or without hints; 1 hints, with --check; 2 could not run.")]
    Hints(HintsArgs),
    /// What changed between two sessions: findings, pairs and totals, by object rather than by address.
    ///
    /// For a change that was to help: record before and after, and compare. Findings of the two sessions are the
    /// same when their objects have the same name and type, or when the same functions use them; sizes are shares
    /// and rates, so the two may be of different length.
    #[command(after_help = "Examples:\n  \
        cohtrace diff before.coh after.coh\n  \
        cohtrace diff --check good.coh new.coh    in CI: exit code 1 when a finding is there that was not\n\
        Exit codes: 0 ran; 1 new findings, with --check; 2 could not run.")]
    Diff(DiffArgs),
    /// The request log of a session's watch windows, or of an emulated run.
    ///
    /// A row for each access that, by the directory protocol of SWIFT (PPoPP 2005, section 2), leaves its CPU's
    /// cache: number, processor, thread, instruction, target, line, and READ_SHAR (a load that misses) or
    /// READ_PRIV (a store without ownership). Targets and lines are addresses, in shared memory file offsets.
    /// Each window starts from a line that no cache holds.
    #[command(after_help = "Examples:\n  \
        cohtrace log server.coh                              in the order of the requests\n  \
        cohtrace log server.coh --sort line                  by line, then in their order\n  \
        cohtrace log server.coh --line private:0:0x404080    one line, by its key in the JSON report")]
    Log(LogArgs),
    /// What hinting loads changes: messages and misses of a machine with caches, simulated on an emulated session.
    ///
    /// Replays every access of the session, in order, through processors with the caches and the directory protocol of
    /// SWIFT (PPoPP 2005): as it is, with its hinted integer loads fetching for ownership, and with the floating-point
    /// ones too. Prints the paper's tables 4, 5 and 6. A thread is a processor. The loads to hint come from --hints, from
    /// --train, or else from the session itself. What hints in code that you build save comes first: a rebuild reaches
    /// no others. Those in system libraries and in code without source lines (-g) are counted with all loads.
    #[command(after_help = "Examples:\n  \
        cohtrace record --source emulate -o ref.coh -- ./radix -p4 && cohtrace simulate ref.coh\n  \
        cohtrace simulate ref.coh --train train.coh          decide on a small input, measure on another\n  \
        cohtrace simulate a.coh b.coh --hints hints.json     what these hints are worth\n  \
        cohtrace simulate ref.coh --after worker             without the start of the program\n  \
        cohtrace simulate ref.coh --line-size 128 --l3 9M --l3-ways 18\n  \
        cohtrace simulate ref.coh --exclusive-on-first-read --migratory    a protocol nearer to today's machines\n  \
        cohtrace simulate ref.coh --train train.coh --model swift2005      the paper's machine and filter\n\n\
        Messages that lines cause by leaving a cache serve no request and are counted apart.")]
    Simulate(SimulateArgs),
    /// The whole type of a finding's object, and where cache lines cut it.
    ///
    /// Prints the declaration as it lies in memory: every member with offset and size, nested ones inside, bit-fields,
    /// bases and holes. Cache lines begin where they do for this very object, at the address it had; who uses which
    /// member stands beside it, with its share of the sampled time. Where moving members helps, the new order follows
    /// with its size. Needs the debug information (-g) of the program or library that has the variable.
    #[command(after_help = "Examples:\n  \
        cohtrace record -p 4242 --duration 10 -o server.coh && cohtrace report server.coh\n  \
        cohtrace layout server.coh --finding 2             the object of F2\n  \
        cohtrace layout server.coh --finding I1            of a line that is shared too little to be a finding\n  \
        cohtrace layout server.coh --line-size 128         of F1, with the lines that prefetchers pair\n  \
        cohtrace layout server.coh --format json           each row as data")]
    Layout(LayoutArgs),
    /// Write a session as a file of another tool.
    ///
    /// A perf.data file reads in `perf c2c report`, `perf mem report`, `perf report` and `perf script`. Each access is a
    /// sample, also those of sessions recorded without a PMU: these say load or store and the lock, and "not
    /// available" for what served them, so perf counts them and shows no HITM. Sizes of accesses, watch windows,
    /// allocations and thread-local storage have no place in the format.
    #[command(after_help = "Examples:\n  \
        cohtrace export --perf-data perf.data server.coh && perf mem report -i perf.data\n  \
        cohtrace export --perf-data perf.data server.coh && perf c2c report -i perf.data --stdio --show-all")]
    Export(ExportArgs),
    /// Build with hints: an assembler that puts a prefetch for ownership in front of each hinted load.
    ///
    /// Compilers write assembly text and call `as`; with -B DIR they call DIR/as, which adds `prefetchw OPERAND` (on
    /// aarch64 `prfm pstl1keep`) in front of the loads that HINTS.json names, wherever their code was inlined to, and
    /// runs the real assembler. Loads are found by source line and column, so compile with -g, and told from their
    /// neighbours by their operand. Whatever goes wrong, the unchanged text is assembled: a build never fails for a hint.
    /// What was placed, and what was not and why, goes to standard error.
    ///
    /// rustc, and clang without -fno-integrated-as, call no assembler. With -flto the assembler runs when the program is
    /// linked: give -B DIR and -g there too. ccache does not see hints: run with CCACHE_RECACHE=1 when they change.
    #[command(
        after_help = "Environment of DIR/as: COHTRACE_AS (the real assembler), COHTRACE_AS_QUIET=1, COHTRACE_AS_LOG=FILE \
        (a line of JSON for each unit).\n\nExamples:\n  \
        cohtrace as --install build/as --hints hints.json        write build/as/as\n  \
        gcc -B build/as -O2 -g -c worker.c                       with gcc\n  \
        clang -fno-integrated-as -B build/as -O2 -g -c worker.c  with clang\n  \
        cmake -DCMAKE_C_FLAGS=\"-g -B $PWD/build/as\" ..          with cmake\n  \
        COHTRACE_AS_LOG=$PWD/as.log make -j8 && cohtrace as --summary as.log --hints hints.json\n  \
        cohtrace as --verify ./worker --hints hints.json --check    in CI: exit code 1 when a prefetch is missing"
    )]
    As(AsArgs),
    /// Build and run a small falsely shared program, watch it, and show what a report looks like.
    Demo(DemoArgs),
    /// What this machine charges for a cache line: by its state, by the distance of two CPUs, by the operation.
    ///
    /// Two threads, each on a CPU of its own, bring lines into a state and time what the next access takes, in blocks of 64
    /// lines: chained loads (latency), loads that do not wait for each other (bandwidth), stores with a fence, locked
    /// operations, and words that are handed over. Pairs of CPUs are put into classes by what was measured; where that
    /// contradicts what the kernel says, or the host moved a CPU meanwhile, it is said. Blocks during which a thread was
    /// taken off its CPU are left out and counted. Needs no PMU and no rights. What it found is kept until the machine is
    /// started anew; `doctor` tells it.
    #[command(after_help = "Examples:\n  \
        cohtrace measure                                  some seconds: pairs of each distance\n  \
        cohtrace measure --pairs all -o machine.json      a map of all pairs\n  \
        cohtrace measure --pairs all --resume -o machine.json    go on where that was ended\n  \
        cohtrace measure --pairs 0-1 --contention         what another CPU's accesses add, and two models of it")]
    Measure(MeasureArgs),
    /// What this machine offers, which sources can run, and how to enable the others.
    ///
    /// With --bpf-log, why an observation leaves out what one would expect in it: observes like `attach` for some seconds,
    /// by programs in the kernel that also tell what they did not record and why, and prints what they told. Those of
    /// other commands tell nothing and lose no time with it.
    #[command(after_help = "Examples:\n  \
        cohtrace doctor                                   what can run here\n  \
        cohtrace doctor --bpf-log -p 4242                 what is left out around a process\n  \
        cohtrace doctor --bpf-log --heap -- ./server      allocations too, from the start of a program\n  \
        cohtrace doctor --bpf-log --json -a --duration 9   of the whole machine, as JSON")]
    Doctor(DoctorArgs),
    /// Whether the counts of this tool are right: programs are asked to do so many events, and its sources count them.
    ///
    /// For each event of each source that runs here, a program is started anew for each run, whose count follows from what
    /// it was asked for. Printed are the predicted count, mean and standard deviation of the counts, their difference, and
    /// how they err: none (within 1, or 1 %), bias (a constant, which no longer matters at the largest size), multiplicative (a
    /// factor), random (more than one run in ten is more than 5 % off the median), or unknown. A source that cannot run here
    /// is told, not left out. Ctrl-C prints what was counted until then. Data breakpoints, probes and the timer take root, as
    /// for `attach`; the emulated source takes no rights.
    #[command(after_help = "Examples:
  \
        cohtrace validate                                   all that runs here: some minutes\n  \
        cohtrace validate --source emulate --runs 3         only what the emulated source counts\n  \
        cohtrace validate --event accesses --sizes 1,1000   only one event, in two sizes\n  \
        cohtrace validate --check --json                    in CI: exit code 1 for a count that is wrong\n  \
        cohtrace validate --runs 100 --sizes 1,10,100,1000,10000,100000,1000000    as published: an hour or so\n\
        Exit codes: 0 ran; with --check: 1 a count errs by more than a constant, 3 something was not counted.")]
    Validate(ValidateArgs),
}

/// How to judge.
#[derive(Debug, Args)]
pub(super) struct AnalysisArgs {
    /// Bytes that travel together: 128 also finds sharing of adjacent lines, which prefetchers pair.
    #[arg(long, value_name = "BYTES", default_value_t = 64, default_value_if("model", "swift2005", "128"), value_parser = line_size)]
    pub line_size: u64,
    /// Share of the sampled time, in percent, below which a shared line is no finding.
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    pub threshold: f64,
    /// Accesses are only held against each other within slices of this length.
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub slice: u64,
}

impl AnalysisArgs {
    /// As if nothing was given.
    pub(super) fn standard() -> AnalysisArgs {
        AnalysisArgs {
            line_size: 64,
            threshold: 1.0,
            slice: 100,
        }
    }
}

/// How a session is read.
#[derive(Debug, Args)]
pub(super) struct ReadingArgs {
    /// Memory in which accesses are sorted; what does not fit goes to a temporary file (in TMPDIR, else beside the
    /// session). Changes no result. [default: a quarter of the machine's memory, at most 256M]
    #[arg(long, value_name = "SIZE", value_parser = memory_bytes)]
    pub memory: Option<u64>,
    /// No progress on the terminal.
    #[arg(short, long)]
    pub quiet: bool,
}

/// How to print.
#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    /// Print JSON (schema 1) instead of text. A started COMMAND's output then goes to standard error.
    #[arg(long)]
    pub json: bool,
    /// Exit with code 1 when there is a finding, and with 3 when there is none but that could not be told.
    #[arg(long)]
    pub check: bool,
    /// Print all that is known: each pair in full, every remark on how it was measured, and what came close to a finding.
    #[arg(short, long)]
    pub verbose: bool,
    /// Write the report to a file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// When to use colours.
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// `report`.
#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    /// Session directory.
    #[arg(value_name = "NAME.coh", required_unless_present = "list")]
    pub session: Option<PathBuf>,
    #[command(flatten)]
    pub analysis: AnalysisArgs,
    #[command(flatten)]
    pub reading: ReadingArgs,
    #[command(flatten)]
    pub pairs: PairArgs,
    /// How to print: for people, for programs (schema 1), for editors and code scanning (SARIF 2.1.0), or as `perf c2c
    /// report --stdio` does, with our verdicts, variables and fields beside its columns.
    #[arg(long, value_enum, default_value_t = ReportFormat::Text, conflicts_with = "json")]
    pub format: ReportFormat,
    /// Also predict sharing that is not there yet: objects for which threads would fight if they began at another address,
    /// or if lines were 128 bytes long, each with the hand-offs and messages that a replay of the session gives it there.
    /// They are a list of their own and no findings. Emulated sessions are read twice; of others, where threads would meet is
    /// told, and no cost.
    #[arg(long)]
    pub latent: bool,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub stats: StatsArgs,
}

impl ReportArgs {
    /// The session; without one, the command line was refused.
    pub(super) fn session(&self) -> &Path {
        self.session.as_deref().unwrap_or(Path::new(""))
    }
}

/// How to print a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    /// Text for a terminal or a pager.
    Text,
    /// For programs (schema 1): the same as --json.
    Json,
    /// SARIF 2.1.0, one result per finding; `cohtrace hints --format sarif` has load hints too.
    Sarif,
    /// The tables of perf c2c. Their counts are perf's, but: records without a data address are not counted;
    /// private pages of a file are lines of each process, not of all together; kernel memory is always mapped;
    /// judged lines are there without HITM too.
    C2c,
}

/// `export`.
#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// Session directory.
    #[arg(value_name = "NAME.coh")]
    pub session: PathBuf,
    /// File to write, in the format of perf record.
    #[arg(long, value_name = "FILE")]
    pub perf_data: PathBuf,
    /// Replace an existing file.
    #[arg(long)]
    pub force: bool,
    /// No progress on the terminal.
    #[arg(short, long)]
    pub quiet: bool,
}

/// `import`.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// Recording of perf; `-` for standard input.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Session directory to write [default: the name of FILE with .coh, in the current directory].
    #[arg(short, long, value_name = "NAME.coh")]
    pub output: Option<PathBuf>,
    /// Replace an existing session.
    #[arg(long)]
    pub force: bool,
    /// No progress on the terminal, no summary.
    #[arg(short, long)]
    pub quiet: bool,
}

/// When a pair deserves a hint.
#[derive(Debug, Args)]
pub(super) struct PairArgs {
    /// Least share of a load's executions, in percent, that the store must follow.
    #[arg(long = "pair-share", value_name = "PERCENT", default_value_t = default_pairs().share_of_load * 100.0, value_parser = percent)]
    pub share: f64,
    /// Least executions of the load.
    #[arg(long = "pair-executions", value_name = "N", default_value_t = default_pairs().executions)]
    pub executions: u64,
    /// Most of the load's executions, in percent, at which another CPU that only reads would lose its copy.
    #[arg(long = "pair-readers", value_name = "PERCENT", default_value_t = default_pairs().readers * 100.0, value_parser = percent)]
    pub readers: f64,
}

fn default_pairs() -> PairThresholds {
    PairThresholds::default()
}

impl PairArgs {
    /// As if nothing was given.
    pub(super) fn standard() -> PairArgs {
        let limits = default_pairs();
        PairArgs {
            share: limits.share_of_load * 100.0,
            executions: limits.executions,
            readers: limits.readers * 100.0,
        }
    }

    /// As the judgement takes them.
    pub(super) fn thresholds(&self) -> PairThresholds {
        PairThresholds {
            share_of_load: self.share / 100.0,
            executions: self.executions,
            readers: self.readers / 100.0,
            ..default_pairs()
        }
    }
}

/// `pairs`.
#[derive(Debug, Args)]
pub(super) struct PairsArgs {
    /// Session directory.
    #[arg(value_name = "NAME.coh")]
    pub session: PathBuf,
    #[command(flatten)]
    pub analysis: AnalysisArgs,
    #[command(flatten)]
    pub reading: ReadingArgs,
    #[command(flatten)]
    pub pairs: PairArgs,
    /// Print the pairs as JSON: the `pairs` of the report.
    #[arg(long)]
    pub json: bool,
    /// When to use colours.
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
}

/// `layout`.
#[derive(Debug, Args)]
pub(super) struct LayoutArgs {
    /// Session directory.
    #[arg(value_name = "NAME.coh")]
    pub session: PathBuf,
    /// Number of the finding in the report of the same session and options: 2 or F2; I1 for a line that is none.
    #[arg(long, value_name = "N", default_value = "1", value_parser = finding_id)]
    pub finding: FindingId,
    #[command(flatten)]
    pub analysis: AnalysisArgs,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// How to print.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Short for --format json.
    #[arg(long)]
    pub json: bool,
    /// When to use colours.
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
}

/// How to print a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Text for a terminal or a pager.
    Text,
    /// For programs (schema 1).
    Json,
}

/// `log`.
#[derive(Debug, Args)]
pub(super) struct LogArgs {
    /// Session directory.
    #[arg(value_name = "NAME.coh")]
    pub session: PathBuf,
    /// Only the line with this key, as the JSON report names it. Repeat for more.
    #[arg(long, value_name = "KEY")]
    pub line: Vec<String>,
    /// Order of the rows.
    #[arg(long, value_enum, default_value_t = LogOrder::Request)]
    pub sort: LogOrder,
    /// Bytes that travel together.
    #[arg(long, value_name = "BYTES", default_value_t = 64, value_parser = line_size)]
    pub line_size: u64,
    /// No progress on the terminal.
    #[arg(short, long)]
    pub quiet: bool,
}

/// Order of a request log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum LogOrder {
    /// As the requests came.
    Request,
    /// By line, then as they came.
    Line,
}

/// `demo`.
#[derive(Debug, Args)]
pub(super) struct DemoArgs {
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
    fn heaps_are_followed_in_given_processes_only_and_their_options_need_the_wish() {
        let parse = |words: &[&str]| Cli::try_parse_from([&["cohtrace", "attach"], words].concat());
        assert!(parse(&["-p", "1", "--heap", "--heap-min", "32"]).is_ok());
        assert!(parse(&["--heap", "--heap-overhead", "100", "--", "ls"]).is_ok());
        assert!(parse(&["-a", "--heap"]).is_err());
        assert!(parse(&["-p", "1", "--heap-min", "32"]).is_err());
        assert!(parse(&["-p", "1", "--heap", "--heap-min", "0"]).is_err());
        assert!(parse(&["-p", "1", "--heap", "--heap-overhead", "0"]).is_err());
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
            ["--overhead", "0"],
            ["--overhead", "51"],
        ] {
            assert!(parse(&bad).is_err(), "{bad:?}");
        }
    }
}
