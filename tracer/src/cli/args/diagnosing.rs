//! Options of what looks at the machine and at the tool itself.

use std::ffi::OsString;

use clap::{ArgGroup, Args};

use super::values::seconds;

/// `doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON. A COMMAND's output then goes to standard error.
    #[arg(long)]
    pub json: bool,
    /// Observe, and print what the programs in the kernel did not record and why: a line the first time that a thread, a
    /// program and a reason meet. Needs one of -p, -a and COMMAND. Ends after --duration, with the target, or on Ctrl-C;
    /// each way prints.
    #[arg(long, requires = "observed")]
    pub bpf_log: bool,
    #[command(flatten)]
    pub log: BpfLogArgs,
}

/// What `doctor --bpf-log` observes.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("observed").args(["pid", "all", "command"]).requires("bpf_log")))]
pub(crate) struct BpfLogArgs {
    /// With --bpf-log: processes to observe, with their children. Every other process is told as none of them.
    #[arg(short, long, value_name = "PID", value_delimiter = ',')]
    pub pid: Vec<u32>,
    /// With --bpf-log: observe every process.
    #[arg(short, long)]
    pub all: bool,
    /// With --bpf-log: seconds to observe.
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = seconds, requires = "bpf_log")]
    pub duration: f64,
    /// With --bpf-log: put probes on the allocators too, as `attach --heap` does. Not with --all.
    #[arg(long, requires = "bpf_log", conflicts_with = "all")]
    pub heap: bool,
    /// With --bpf-log: command to start and observe, after `--`. What it started ends with the observation.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::Cli;

    #[test]
    fn lines_are_told_of_what_is_observed_and_nothing_is_observed_for_anything_else() {
        let parse = |words: &[&str]| Cli::try_parse_from([&["cohtrace", "doctor"], words].concat());
        assert!(parse(&[]).is_ok());
        assert!(parse(&["--json"]).is_ok());
        assert!(parse(&["--bpf-log", "-p", "1"]).is_ok());
        assert!(parse(&["--bpf-log", "-a", "--duration", "1"]).is_ok());
        assert!(parse(&["--bpf-log", "--heap", "--", "ls"]).is_ok());
        assert!(parse(&["--bpf-log"]).is_err());
        assert!(parse(&["-p", "1"]).is_err());
        assert!(parse(&["--duration", "1"]).is_err());
        assert!(parse(&["--bpf-log", "-a", "--heap"]).is_err());
        assert!(parse(&["--bpf-log", "-a", "-p", "1"]).is_err());
    }
}
