//! Starts a command that waits before its first instruction until we are ready to watch it.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    process::{Child, Command},
    thread::JoinHandle,
};

use super::limits;

/// Exit code of a child that was never released; nobody waits for it.
const CANCELLED: i32 = 127;

/// A forked child that has not yet become the command.
pub struct Held {
    pid: u32,
    go: File,
    spawning: JoinHandle<io::Result<Child>>,
}

impl Held {
    /// Forks. The child blocks before `exec`, so that whoever watches it misses nothing.
    pub fn new(mut command: Command) -> io::Result<Held> {
        limits::give_back(&mut command);
        let (mut pid_reader, pid_writer) = pipe()?;
        let (go_reader, go) = pipe()?;
        let (pid_fd, go_fd, go_writer_fd) = (
            pid_writer.as_raw_fd(),
            go_reader.as_raw_fd(),
            go.as_raw_fd(),
        );
        let wait = move || {
            // The child's own copy of the writing end would keep its read from ever seeing the end.
            // SAFETY: closes a descriptor of the child, which does not use it.
            unsafe { libc::close(go_writer_fd) };
            // SAFETY: getpid has no preconditions and is async-signal-safe.
            let pid = unsafe { libc::getpid() }.to_ne_bytes();
            // SAFETY: the buffer is live and `pid.len()` long; the descriptor is open in the child,
            // which inherits it (close-on-exec has not happened yet).
            let wrote = unsafe { libc::write(pid_fd, pid.as_ptr().cast(), pid.len()) };
            if wrote != pid.len() as isize {
                return Err(io::Error::last_os_error());
            }
            let mut byte = 0_u8;
            // SAFETY: one writable byte at a live address; the descriptor is open as above.
            let got = unsafe { libc::read(go_fd, (&raw mut byte).cast(), 1) };
            // The other end closed without a word: the tracer is gone, and so are we. At once, because an error
            // would be told to the tracer, and the standard library aborts aloud when that cannot be.
            if got != 1 {
                // SAFETY: ends the child without running anything of the tracer's.
                unsafe { libc::_exit(CANCELLED) };
            }
            Ok(())
        };
        // SAFETY: the closure only makes async-signal-safe calls and does not allocate.
        unsafe { command.pre_exec(wait) };
        // `spawn` returns only after exec, so it waits in a thread of its own.
        let spawning = std::thread::spawn(move || {
            let child = command.spawn();
            drop((pid_writer, go_reader));
            child
        });
        let mut pid = [0; 4];
        if let Err(error) = pid_reader.read_exact(&mut pid) {
            drop(go);
            return match spawning.join() {
                Ok(Err(refused)) => Err(refused),
                _ => Err(error),
            };
        }
        Ok(Held {
            pid: u32::from_ne_bytes(pid),
            go,
            spawning,
        })
    }

    /// The child's process id, which it keeps through `exec`.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets the child become the command. An error is `exec`'s: no such file, not executable.
    pub fn release(mut self) -> io::Result<Child> {
        // When the child was killed meanwhile the write fails, and `spawn` knows why.
        let _ = self.go.write_all(&[1]);
        self.spawning
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the spawning thread panicked")))
    }
}

/// A close-on-exec pipe: reader, writer.
fn pipe() -> io::Result<(File, File)> {
    let mut fds = [0; 2];
    // SAFETY: `fds` is two writable ints, as pipe2 asks.
    if unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: pipe2 just gave us this descriptor; nobody else owns it.
    let reader = unsafe { OwnedFd::from_raw_fd(fds[0]) };
    // SAFETY: as above.
    let writer = unsafe { OwnedFd::from_raw_fd(fds[1]) };
    Ok((reader.into(), writer.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_command_runs_only_after_its_release() {
        let directory = tempfile::tempdir().unwrap();
        let mark = directory.path().join("mark");
        let mut command = Command::new("touch");
        command.arg(&mark);
        let held = Held::new(command).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(30));
        assert!(!mark.exists());
        let pid = held.pid();
        let mut child = held.release().unwrap();
        assert_eq!(child.id(), pid);
        assert!(child.wait().unwrap().success());
        assert!(mark.exists());
    }

    #[test]
    fn a_command_that_does_not_exist_is_an_error_at_release() {
        let held = Held::new(Command::new("/no/such/command")).unwrap();
        assert_eq!(held.release().unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn an_abandoned_command_never_runs() {
        let directory = tempfile::tempdir().unwrap();
        let mark = directory.path().join("mark");
        let mut command = Command::new("touch");
        command.arg(&mark);
        drop(Held::new(command).unwrap());
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!mark.exists());
    }
}
