//! Where a compiler's files are, and whether they may be believed.

use std::{
    fs::{self, File},
    path::Path,
    time::{Duration, SystemTime},
};

use super::{
    super::{find, stamps::unix_ns},
    JitMissing,
};
use crate::{access::Pid, event::Mapping, sys::found_file::FoundFile};

/// `USER_HZ`, in which `/proc/PID/stat` counts on every machine that Linux runs on but alpha.
const TICKS_A_SECOND: f64 = 100.0;
/// How much older than its process a file may seem: the clocks of start times are coarse.
const SLACK_NS: u64 = 2_000_000_000;

/// The process' own `/tmp/perf-PID.map`, by its number in its own namespace; see `map__init` and
/// `dso__load_perf_map` in tools/perf/util.
///
/// What a process that is gone left behind is believed only if it was there while it was recorded.
pub(super) fn perf_map(
    root: &Path,
    pid: Pid,
    recorded_until: Option<u64>,
) -> Result<(File, (u64, u64)), JitMissing> {
    let process = root.join(format!("proc/{}", pid.0));
    let status = fs::read_to_string(process.join("status")).ok();
    let (root_of_files, number, user) = if let Some(status) = &status {
        let number = ns_pid(status).unwrap_or(pid.0);
        (process.join("root"), number, user(status))
    } else {
        // It ended: what it left behind is believed as perf believes it, by our own user.
        let own = fs::read_to_string(root.join("proc/self/status")).ok();
        (root.to_owned(), pid.0, own.as_deref().and_then(user))
    };
    let path = format!("tmp/perf-{number}.map");
    let said = root_of_files.join(&path).display().to_string();
    let unreadable =
        |error: std::io::Error| JitMissing::Unreadable(said.clone(), error.to_string());
    // Anyone can put a file of this name there: a link could lead to another's.
    let found = match FoundFile::itself_below(&root_of_files, Path::new(&path)) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(JitMissing::NoMap);
        }
        Err(error) => return Err(unreadable(error)),
    };
    let file = found.open().map_err(unreadable)?;
    let owner = found.owner();
    if owner != 0 && user != Some(owner) {
        return Err(JitMissing::Owner { path: said, owner });
    }
    let started = started(root, pid);
    let written = found.written().map(unix_ns);
    if let Some((started, written)) = started.zip(written)
        && written.saturating_add(SLACK_NS) < started
    {
        return Err(JitMissing::Stale(said));
    }
    let born = found.born().or(found.written());
    if let (None, Some(until), Some(born)) = (started, recorded_until, born)
        && unix_ns(born) > until
    {
        return Err(JitMissing::Later(said));
    }
    Ok((file, found.identity()))
}

/// The process' number in its own namespace; `None` when it is gone.
pub(super) fn own_pid(root: &Path, pid: Pid) -> Option<u32> {
    ns_pid(&fs::read_to_string(root.join(format!("proc/{}/status", pid.0))).ok()?)
}

/// Whether a mapping is what a compiler makes of its dump to say where that is: executable, of a file named
/// `jit-PID.dump` (`jit_detect` in tools/perf/util/jitdump.c).
pub(super) fn is_dump(mapping: &Mapping, own: Option<u32>) -> bool {
    let path = mapping.path();
    let number = || {
        let file = path.file_name()?.to_str()?;
        let digits = file.strip_prefix("jit-")?.strip_suffix(".dump")?;
        digits.parse::<u32>().ok()
    };
    mapping.is_file()
        && mapping.executable
        && number().is_some_and(|number| own.is_none_or(|own| own == number))
}

/// Opens the very file that is mapped.
pub(super) fn mapped(root: &Path, pid: Pid, mapping: &Mapping) -> Option<File> {
    let found = find::candidates(root, pid, mapping).next()?;
    found.file.open().ok()
}

fn field<'t>(status: &'t str, name: &str) -> Option<&'t str> {
    status.lines().find_map(|line| line.strip_prefix(name))
}

/// The innermost of the process' numbers.
fn ns_pid(status: &str) -> Option<u32> {
    let numbers = field(status, "NSpid:").or(field(status, "Pid:"))?;
    numbers.split_ascii_whitespace().next_back()?.parse().ok()
}

/// The effective user.
fn user(status: &str) -> Option<u32> {
    field(status, "Uid:")?
        .split_ascii_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

/// When the process started, nanoseconds since 1970-01-01 UTC, to some ten milliseconds; `None` when it is gone.
pub(super) fn started(root: &Path, pid: Pid) -> Option<u64> {
    let stat = fs::read(root.join(format!("proc/{}/stat", pid.0))).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The program's name is in parentheses and may hold anything; the start time is the 20th field behind.
    let (_, fields) = stat.rsplit_once(')')?;
    let started: f64 = fields.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let uptime = fs::read_to_string(root.join("proc/uptime")).ok()?;
    let uptime: f64 = uptime.split_ascii_whitespace().next()?.parse().ok()?;
    let age = Duration::try_from_secs_f64(uptime - started / TICKS_A_SECOND).ok()?;
    SystemTime::now().checked_sub(age).map(unix_ns)
}
