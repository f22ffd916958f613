//! A command that we started, from its fork to the end of everything that it started.

use std::{
    ffi::OsString,
    process::{Child, Command},
};

use super::{ObserveError, ending, targets::spoken};
use crate::{
    access::Pid,
    sys::{
        launch::Held,
        orphans::{self, Children},
        pidfd::PidFd,
    },
};

/// A started command. Dropping it ends it, and what it started, as [`Started::finish`] does.
///
/// The command stays in our process group: on a terminal it may read, and Ctrl-C reaches it as it reaches us. What it
/// starts is therefore found by descent: this process adopts orphans. Where it dies without a word (SIGKILL, a second
/// Ctrl-C), nothing is ended.
pub(super) struct Started {
    stage: Stage,
    pid: u32,
    /// As it was typed.
    words: String,
    leave_running: bool,
    /// Whether what is orphaned below us becomes our child, and nobody else's process does.
    adopts: bool,
}

enum Stage {
    /// Before its first instruction.
    Held(Held),
    /// Runs, or has ended.
    Running(Child),
    /// We are done with it.
    Over,
}

impl Started {
    /// Forks. The command waits until [`Started::release`].
    pub(super) fn hold(
        command: Command,
        words: &[OsString],
        leave_running: bool,
    ) -> Result<Started, ObserveError> {
        // A shell that became this process by `exec` leaves its children to it, whose orphans are not the command's.
        let childless = orphans::children() == Children::None;
        let held = Held::new(command).map_err(|source| ObserveError::Start {
            command: spoken(&words[..1]),
            source,
        })?;
        Ok(Started {
            pid: held.pid(),
            stage: Stage::Held(held),
            words: spoken(words),
            leave_running,
            adopts: !leave_running && childless && orphans::adopt().is_ok(),
        })
    }

    /// Process id of the command itself.
    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets the command run.
    pub(super) fn release(&mut self) -> Result<(), ObserveError> {
        self.stage = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Held(held) => {
                let child = held.release().map_err(|source| ObserveError::Run {
                    command: self.words.clone(),
                    source,
                })?;
                Stage::Running(child)
            }
            other => other,
        };
        Ok(())
    }

    /// The command itself by descriptor, readable when it has ended. `None` where there is no more room for one: then it is only asked
    /// for now and then.
    pub(super) fn process(&self) -> Option<PidFd> {
        PidFd::open(Pid(self.pid)).ok()
    }

    /// Whether the command itself has ended; what it started may live on. To be asked again and again: reaps orphans.
    pub(super) fn ended(&mut self) -> bool {
        match &mut self.stage {
            Stage::Held(_) => false,
            Stage::Running(child) => {
                if self.adopts {
                    ending::reap(child);
                }
                !matches!(child.try_wait(), Ok(None))
            }
            Stage::Over => true,
        }
    }

    /// Ends the command and all that it started, unless that shall stay. Returns what is worth telling of it.
    pub(super) fn finish(&mut self) -> Vec<String> {
        let Stage::Running(mut child) = std::mem::replace(&mut self.stage, Stage::Over) else {
            return Vec::new();
        };
        let status = child.try_wait();
        let mut told = Vec::new();
        if let Ok(Some(status)) = status
            && !status.success()
        {
            told.push(format!("the command ended with {status}"));
        }
        if !self.leave_running {
            told.extend(ending::end(&mut child, self.adopts).told());
        } else if matches!(status, Ok(None)) {
            told.push(format!(
                "the command (pid {}) was left running, with all that it started",
                self.pid
            ));
        }
        told
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // Nobody is left to be told: the run has failed.
        let _ = self.finish();
    }
}
