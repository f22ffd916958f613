//! A program on a pseudo terminal, watched from the other side: when did it show what?

use std::{
    fs::File,
    io::{self, Read, Write as _},
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    process::{Command, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};

use crate::usage::{Finished, Measured};

/// A program that believes a person is looking; killed when dropped.
#[derive(Debug)]
pub struct OnTerminal {
    program: Measured,
    keyboard: File,
    shown: Receiver<(Instant, Vec<u8>)>,
    text: String,
}

impl OnTerminal {
    /// Starts a command with its three streams on a new terminal, which is nobody's controlling terminal.
    pub fn start(command: &mut Command) -> anyhow::Result<OnTerminal> {
        let (mut ours, theirs) = pair().context("opening a pseudo terminal")?;
        let keyboard = ours.try_clone()?;
        command
            .stdin(theirs.try_clone()?)
            .stdout(theirs.try_clone()?)
            .stderr(theirs);
        let program = Measured::start_as_it_is(command)?;
        // The command holds the program's end open, and our end reports the program's end only when nobody does.
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let (send, shown) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // EIO, not an end of file, is how a terminal says that the program closed it.
            while let Ok(length @ 1..) = ours.read(&mut buffer) {
                if send
                    .send((Instant::now(), buffer[..length].to_vec()))
                    .is_err()
                {
                    break;
                }
            }
        });
        Ok(OnTerminal {
            program,
            keyboard,
            shown,
            text: String::new(),
        })
    }

    /// The time from the start until `words` have been shown; an error with everything shown when the program ends or
    /// the limit passes before.
    pub fn shows(&mut self, words: &str, limit: Duration) -> anyhow::Result<Duration> {
        let deadline = self.program.started() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.shown.recv_timeout(left) {
                Ok((at, bytes)) => {
                    self.text += &String::from_utf8_lossy(&bytes);
                    if self.text.contains(words) {
                        return Ok(at - self.program.started());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    bail!("no {words:?} after {limit:?}; shown:\n{}", self.text)
                }
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("it ended without {words:?}; shown:\n{}", self.text)
                }
            }
        }
    }

    /// Types on its keyboard; `\x03` is Ctrl-C.
    pub fn types(&mut self, keys: &str) -> anyhow::Result<()> {
        (self.keyboard.write_all(keys.as_bytes())).context("typing on the terminal")
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.program.pid()
    }

    /// Waits until it ends; what it has shown comes as its standard error.
    pub fn wait(mut self, limit: Duration) -> anyhow::Result<Finished> {
        let mut finished = self.program.wait(limit)?;
        // The reading thread ends with the program's last end of the terminal.
        for (_, bytes) in &self.shown {
            self.text += &String::from_utf8_lossy(&bytes);
        }
        finished.stderr = self.text;
        Ok(finished)
    }

    /// Everything shown so far, control sequences included.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Both ends of a new pseudo terminal: ours, and the program's. Neither is inherited by accident.
fn pair() -> io::Result<(File, OwnedFd)> {
    // The standard library opens close-on-exec.
    let ours = File::options().read(true).write(true).open("/dev/ptmx")?;
    let unlock: libc::c_int = 0;
    // SAFETY: TIOCSPTLCK reads one int through the pointer, which is live.
    let result = unsafe { libc::ioctl(ours.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlock) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: TIOCGPTPEER takes its flags by value and touches no memory of ours.
    let theirs = unsafe { libc::ioctl(ours.as_raw_fd(), libc::TIOCGPTPEER, flags) };
    if theirs < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor and nobody else knows it.
    Ok((ours, unsafe { OwnedFd::from_raw_fd(theirs) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_mins(1);

    fn shell(script: &str) -> OnTerminal {
        let mut command = Command::new("sh");
        OnTerminal::start(command.args(["-c", script])).unwrap()
    }

    #[test]
    fn the_program_sees_a_terminal_on_all_streams() {
        let mut running = shell("test -t 0 && test -t 1 && test -t 2 && echo all three; sleep 60");
        running.shows("all three", LIMIT).unwrap();
    }

    #[test]
    fn the_program_reads_what_is_typed() {
        let mut running = shell("read word; echo got $word; sleep 60");
        running.types("this\n").unwrap();
        running.shows("got this", LIMIT).unwrap();
    }

    #[test]
    fn the_time_is_that_of_the_words() {
        let mut running = shell("echo early; sleep 0.3; echo late >&2; sleep 60");
        let early = running.shows("early", LIMIT).unwrap();
        let late = running.shows("late", LIMIT).unwrap();
        assert!(late >= early + Duration::from_millis(250));
        assert!(running.text().contains("early"));
    }

    #[test]
    fn what_it_used_and_showed_is_there_at_its_end() {
        let finished = shell("echo shown; exit 4").wait(LIMIT).unwrap();
        assert_eq!(finished.status.code(), Some(4));
        assert!(finished.stderr.contains("shown"), "{finished:?}");
    }

    #[test]
    fn an_end_without_the_words_is_an_error_with_what_was_shown() {
        let error = shell("echo something else").shows("the words", LIMIT);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("ended without"), "{error}");
        assert!(error.contains("something else"), "{error}");
    }
}
