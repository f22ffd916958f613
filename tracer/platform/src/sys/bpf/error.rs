//! Why the kernel half cannot run.

use std::io;

use aya::{EbpfError, maps::MapError, programs::ProgramError};

use crate::{machine::Rights, sys::capabilities};

/// Why the kernel half cannot run, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BpfError {
    /// Not allowed.
    #[error(
        "the kernel does not let this user load BPF programs: {advice}; in a container, its seccomp profile must \
         allow bpf and perf_event_open too; before Linux 5.11, `ulimit -l` must allow some megabytes"
    )]
    NotPermitted {
        /// What is lacking.
        advice: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// No BPF here.
    #[error("this kernel has no BPF: it needs CONFIG_BPF_SYSCALL and CONFIG_BPF_EVENTS")]
    NoBpf(#[source] io::Error),
    /// Out of descriptors.
    #[error("no file descriptor is left for the programs in the kernel")]
    TooManyFiles(#[source] io::Error),
    /// The verifier, or the lack of a helper, refused a program.
    #[error(
        "the kernel refused the BPF program `{program}`; kernels from 5.8 on are supported, and \
         lockdown=confidentiality must be off. The verifier's last words: {log}"
    )]
    Rejected {
        /// Which program.
        program: &'static str,
        /// The last lines of the verifier's log.
        log: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The embedded object does not load; a defect of the build.
    #[error("the embedded BPF object does not load; rebuild it with `cargo xtask ebpf`")]
    Object(#[source] Box<EbpfError>),
    /// A call on a loaded program failed.
    #[error("the BPF program `{program}` could not be used")]
    Program {
        /// Which program.
        program: &'static str,
        /// aya's answer.
        source: Box<ProgramError>,
    },
    /// A call on a map failed.
    #[error("the BPF map `{map}` could not be used")]
    Map {
        /// Which map.
        map: &'static str,
        /// aya's answer.
        source: Box<MapError>,
    },
    /// What the debug object tells cannot be read; a defect of the build.
    #[error("the lines of the debug object cannot be read; rebuild it with `cargo xtask ebpf`")]
    Lines(#[source] Box<aya_log::Error>),
    /// A plain system call on behalf of the programs failed.
    #[error("{action} failed")]
    Call {
        /// What was tried.
        action: String,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// Says what an answer of aya about a program means.
pub(super) fn program_error(program: &'static str, error: ProgramError) -> BpfError {
    /// Lines of the verifier's log worth showing: the refused instruction and the summary.
    const LOG_LINES: usize = 12;
    match error {
        ProgramError::LoadError {
            io_error,
            verifier_log,
        } => {
            // Loading without the privilege is EPERM with an empty log; a program that the verifier
            // finds unsafe may be EPERM or EACCES too, with its reasons.
            let log = verifier_log.to_string();
            if let Some(error) = not_available(&io_error)
                && (log.trim().is_empty() || matches!(error, BpfError::TooManyFiles(_)))
            {
                return error;
            }
            let lines: Vec<&str> = log.trim_end().lines().collect();
            BpfError::Rejected {
                program,
                log: lines[lines.len().saturating_sub(LOG_LINES)..].join(" | "),
                source: io_error,
            }
        }
        ProgramError::SyscallError(error) if not_available(&error.io_error).is_some() => {
            not_permitted(error.io_error)
        }
        other => BpfError::Program {
            program,
            source: Box::new(other),
        },
    }
}

/// Says which map it was.
pub(super) fn map_error(map: &'static str, source: MapError) -> BpfError {
    BpfError::Map {
        map,
        source: Box::new(source),
    }
}

/// Says what an answer of aya about the object means.
pub(super) fn object_error(error: EbpfError) -> BpfError {
    let answer = match &error {
        EbpfError::MapError(MapError::CreateError { io_error, .. }) => not_available(io_error),
        EbpfError::MapError(MapError::SyscallError(call)) => not_available(&call.io_error),
        _ => None,
    };
    answer.unwrap_or_else(|| BpfError::Object(Box::new(error)))
}

fn not_permitted(source: io::Error) -> BpfError {
    BpfError::NotPermitted {
        advice: capabilities::advice(Rights::Programs),
        source,
    }
}

/// The answers that mean no BPF at all for this user, this kernel or this process.
fn not_available(error: &io::Error) -> Option<BpfError> {
    let errno = error.raw_os_error()?;
    let again = io::Error::from_raw_os_error(errno);
    match errno {
        libc::EPERM | libc::EACCES => Some(not_permitted(again)),
        libc::ENOSYS => Some(BpfError::NoBpf(again)),
        libc::EMFILE | libc::ENFILE => Some(BpfError::TooManyFiles(again)),
        _ => None,
    }
}
