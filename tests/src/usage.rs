//! Runs a command and tells what it used: processor time and peak memory of that process, as wait4(2) accounts them.
//!
//! wait4 adds the children that the process itself has waited for. To measure a tool alone, do not let it start
//! what it watches.

use std::{
    fs::{self, File},
    io::{self, Read, Seek},
    mem::MaybeUninit,
    os::unix::process::ExitStatusExt,
    process::{Child, Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};

/// Between two looks at a running process: what a wall time may be too long by.
const LOOK: Duration = Duration::from_millis(2);

/// What a process used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Time in user mode.
    pub user: Duration,
    /// Time in the kernel on its behalf.
    pub system: Duration,
    /// From start to end.
    pub wall: Duration,
    /// Largest resident set. `None` when it is not above what this process itself held: the kernel hands the peak
    /// of the memory that an exec replaces on to the new program (`setmax_mm_hiwater_rss` in fs/exec.c, begin_new_exec),
    /// and with vfork that memory is ours.
    pub peak_bytes: Option<u64>,
}

impl Usage {
    /// User and system time.
    pub fn cpu(&self) -> Duration {
        self.user + self.system
    }
}

/// A process that has ended.
#[derive(Debug)]
pub struct Finished {
    /// How.
    pub status: ExitStatus,
    /// What it used.
    pub usage: Usage,
    /// What it said on standard error.
    pub stderr: String,
}

impl Finished {
    /// An error with everything it said, unless it ended well.
    pub fn expect_success(self, what: &str) -> anyhow::Result<Finished> {
        if self.status.success() {
            return Ok(self);
        }
        bail!("{what}: {}\n{}", self.status, self.stderr)
    }
}

/// A running process whose use is accounted; killed when dropped.
#[derive(Debug)]
pub struct Measured {
    /// Not reaped before the field below says so; its id is its own until then.
    child: Child,
    reaped: bool,
    started: Instant,
    /// `None` where the command brought its own.
    stderr: Option<File>,
    own_peak_bytes: Option<u64>,
}

impl Measured {
    /// Starts a command; its standard error is kept in a file without a name.
    pub fn start(command: &mut Command) -> anyhow::Result<Measured> {
        let stderr = tempfile::tempfile().context("making a file for standard error")?;
        command.stderr(stderr.try_clone()?);
        let mut measured = Measured::start_as_it_is(command)?;
        measured.stderr = Some(stderr);
        Ok(measured)
    }

    /// Starts a command whose streams go where it says.
    pub fn start_as_it_is(command: &mut Command) -> anyhow::Result<Measured> {
        let own_peak_bytes = own_peak_bytes();
        let started = Instant::now();
        let child = command
            .spawn()
            .with_context(|| format!("starting {command:?}"))?;
        Ok(Measured {
            child,
            reaped: false,
            started,
            stderr: None,
            own_peak_bytes,
        })
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// When it was started.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Asks it to stop, as Ctrl-C does.
    pub fn interrupt(&self) -> io::Result<()> {
        // SAFETY: kill takes two integers; the child is not reaped while `self` is usable, so the id is its own.
        let result = unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGINT) };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Waits until it ends; an error with what it said when it has not after the limit.
    pub fn wait(mut self, limit: Duration) -> anyhow::Result<Finished> {
        loop {
            if let Some((status, usage)) = self.look()? {
                return Ok(Finished {
                    status,
                    usage,
                    stderr: self.said(),
                });
            }
            if self.started.elapsed() >= limit {
                bail!("still running after {limit:?}\n{}", self.said());
            }
            thread::sleep(LOOK);
        }
    }

    /// Reaps it if it has ended.
    fn look(&mut self) -> anyhow::Result<Option<(ExitStatus, Usage)>> {
        let mut status = 0;
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: both pointers are to live memory of the types that wait4 writes; the child is not reaped yet.
        let pid = unsafe {
            libc::wait4(
                self.child.id() as libc::pid_t,
                &raw mut status,
                libc::WNOHANG,
                usage.as_mut_ptr(),
            )
        };
        match pid {
            0 => return Ok(None),
            -1 => return Err(io::Error::last_os_error()).context("waiting for a child"),
            _ => self.reaped = true,
        }
        let wall = self.started.elapsed();
        // SAFETY: `rusage` is plain integers, for which zeroes are a value; wait4 overwrote them.
        let usage = unsafe { usage.assume_init() };
        let peak_bytes = usage.ru_maxrss as u64 * 1024;
        let usage = Usage {
            user: duration(usage.ru_utime),
            system: duration(usage.ru_stime),
            wall,
            peak_bytes: Some(peak_bytes).filter(|&peak| Some(peak) > self.own_peak_bytes),
        };
        Ok(Some((ExitStatus::from_raw(status), usage)))
    }

    fn said(&mut self) -> String {
        let mut bytes = Vec::new();
        if let Some(stderr) = &mut self.stderr {
            // What cannot be read back is missing in a message, no more.
            stderr.rewind().ok();
            stderr.read_to_end(&mut bytes).ok();
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        if !self.reaped {
            // Nothing to do about a child that cannot be killed or reaped: the measurement is void anyway.
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
}

/// Peak resident set of this process, proc_pid_status(5).
fn own_peak_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(script: &str) -> Finished {
        let mut shell = Command::new("sh");
        let running = Measured::start(shell.args(["-c", script])).unwrap();
        running.wait(Duration::from_mins(1)).unwrap()
    }

    #[test]
    fn work_is_processor_time_and_sleep_is_not() {
        let busy = used("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done").usage;
        let idle = used("sleep 0.3").usage;
        assert!(busy.cpu() > idle.cpu(), "{busy:?} {idle:?}");
        assert!(idle.wall >= Duration::from_millis(300), "{idle:?}");
        assert!(idle.cpu() < Duration::from_millis(100), "{idle:?}");
    }

    #[test]
    fn peak_memory_is_that_of_the_process_or_unknown() {
        let large = used("x=$(head -c 200000000 /dev/zero | tr '\\0' x)").usage;
        assert!(large.peak_bytes.unwrap() >= 200_000_000, "{large:?}");
        let small = used(":").usage;
        assert!(small.peak_bytes < large.peak_bytes, "{small:?} {large:?}");
    }

    #[test]
    fn a_failure_comes_with_what_was_said() {
        let error = used("echo no such thing >&2; exit 3")
            .expect_success("the tool")
            .unwrap_err()
            .to_string();
        assert!(error.contains("exit status: 3"), "{error}");
        assert!(error.contains("no such thing"), "{error}");
    }
}
