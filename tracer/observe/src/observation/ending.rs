//! Ends a command that we started and everything below it, and nothing else.
//!
//! A process is signalled by a descriptor that was opened while its descent was certain, so that a pid that was given
//! to another process meanwhile does no harm.

use std::{
    io::ErrorKind,
    os::fd::{AsFd as _, BorrowedFd},
    path::Path,
    process::Child,
    time::{Duration, Instant},
};

use rustc_hash::FxHashMap;

use crate::{
    access::Pid,
    sys::{
        orphans::{self, Children},
        pidfd::{PidFd, Signal},
        poll::wait_readable,
        proc_snapshot,
    },
};

/// How long processes may take to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the kernel may take to end them after SIGKILL; longer where one waits for a device that does not answer.
const LAST_PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks for what cannot be waited for: processes that were not found yet.
const LOOK: Duration = Duration::from_millis(20);
/// Rounds of SIGTERM, so that a child is not missed that was forked while its parent was being asked. Not until no
/// more come: what a program starts to end in order (`rm` of a temporary file) may take its time.
const ROUNDS: usize = 3;
/// Processes that a message names.
const NAMED: usize = 4;

/// What there was to end, each as name and pid.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// They outlived the command, which had ended before.
    pub left_behind: Vec<String>,
    /// They did not heed SIGTERM.
    pub killed: Vec<String>,
    /// They live.
    pub survived: Vec<String>,
    /// Orphans could not be looked for.
    pub orphans_unknown: bool,
}

impl Ending {
    /// As sentences; none where all went as it should.
    pub fn told(&self) -> Vec<String> {
        let patience = PATIENCE.as_secs();
        let mut told = Vec::new();
        if !self.left_behind.is_empty() {
            told.push(format!(
                "what the command left behind was ended with the run: {}",
                names(&self.left_behind)
            ));
        }
        if !self.killed.is_empty() {
            told.push(format!(
                "killed, since SIGTERM did not end it within {patience} s: {}",
                names(&self.killed)
            ));
        }
        if !self.survived.is_empty() {
            told.push(format!("could not be ended: {}", names(&self.survived)));
        }
        if self.orphans_unknown {
            told.push(
                "cohtrace had children before it started the command: what the command detached from itself was not \
                 looked for, and may run on"
                    .to_owned(),
            );
        }
        told
    }
}

fn names(processes: &[String]) -> String {
    let named = processes[..processes.len().min(NAMED)].join(", ");
    match processes.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Ends the command and all below it: SIGTERM, then SIGKILL for what does not heed it. Returns within some four
/// seconds. `adopts`: orphans of the command are children of ours by now, and we have no other children.
pub(super) fn end(command: &mut Child, adopts: bool) -> Ending {
    let had_ended = matches!(command.try_wait(), Ok(Some(_)));
    let mut family = Family::of(command, adopts);
    let mut ending = Ending {
        orphans_unknown: !adopts,
        ..Ending::default()
    };
    for _ in 0..ROUNDS {
        let new = family.look();
        family.ask();
        if new == 0 {
            break;
        }
        if had_ended {
            let known = family.members.len() - new;
            let found = family.members[known..].iter().map(Member::described);
            ending.left_behind.extend(found);
        }
    }
    let asked = Instant::now();
    while !family.is_over(command) {
        let waited = asked.elapsed();
        if waited >= PATIENCE + LAST_PATIENCE {
            ending
                .survived
                .push("some that /proc does not show".to_owned());
            break;
        }
        if waited >= PATIENCE {
            family.look();
            ending.killed.extend(family.kill());
            // Where it could not even be opened. Does nothing once it is reaped.
            let _ = command.kill();
        }
        family.wait(LOOK);
    }
    let living: Vec<String> = (family.members.iter())
        .filter(|member| member.lives())
        .map(Member::described)
        .collect();
    if !living.is_empty() {
        ending.survived = living;
    }
    ending
}

/// Reaps the command and adopted orphans, as far as they have ended.
pub(super) fn reap(command: &mut Child) {
    while let Children::Ended(pid) = orphans::children() {
        let reaped = if pid.0 == command.id() {
            matches!(command.try_wait(), Ok(Some(_)))
        } else {
            orphans::reap(pid)
        };
        if !reaped {
            return;
        }
    }
}

/// The command and what descends from it, as far as it was found.
struct Family {
    /// Whose children belong to it: we ourselves, or else the command.
    root: Pid,
    adopts: bool,
    members: Vec<Member>,
}

struct Member {
    pid: Pid,
    process: PidFd,
    /// As `ps` shows it; empty where it cannot be read.
    name: String,
    /// The last signal that it got.
    sent: Option<Signal>,
    /// It is another user's.
    refused: bool,
}

impl Member {
    fn open(pid: Pid) -> Option<Member> {
        let process = PidFd::open(pid).ok()?;
        let name = std::fs::read_to_string(format!("/proc/{}/comm", pid.0)).unwrap_or_default();
        Some(Member {
            pid,
            process,
            name: name.trim_end().to_owned(),
            sent: None,
            refused: false,
        })
    }

    fn lives(&self) -> bool {
        // An error is one of poll's, of which none can come of a single descriptor of ours.
        !self.process.has_ended().unwrap_or(true)
    }

    fn described(&self) -> String {
        format!("{} {}", self.name, self.pid.0)
            .trim_start()
            .to_owned()
    }

    fn send(&mut self, signal: Signal) {
        self.sent = Some(signal);
        let error = self.process.signal(signal).err();
        self.refused |= error.is_some_and(|e| e.kind() == ErrorKind::PermissionDenied);
    }
}

impl Family {
    fn of(command: &mut Child, adopts: bool) -> Family {
        let pid = Pid(command.id());
        // Until it is reaped, its pid is its own.
        let lives = matches!(command.try_wait(), Ok(None));
        Family {
            root: if adopts { Pid(std::process::id()) } else { pid },
            adopts,
            members: lives
                .then(|| Member::open(pid))
                .flatten()
                .into_iter()
                .collect(),
        }
    }

    /// Looks for members that are not known yet, parents first, and puts them last. How many there are. Forgets those that
    /// have ended, since each keeps a descriptor open.
    fn look(&mut self) -> usize {
        self.members.retain(Member::lives);
        let proc = Path::new("/proc");
        // The pids of another namespace's /proc are not ours.
        let own = std::fs::read_link(proc.join("self")).unwrap_or_default();
        if own.as_os_str() != std::process::id().to_string().as_str() {
            return 0;
        }
        let mut children: FxHashMap<Pid, Vec<Pid>> = FxHashMap::default();
        for pid in proc_snapshot::pids(proc) {
            if let Some(parent) = proc_snapshot::parent(proc, pid) {
                children.entry(parent).or_default().push(pid);
            }
        }
        let known = self.members.len();
        let mut parents = vec![self.root];
        parents.extend(self.members.iter().map(|member| member.pid));
        let mut next = 0;
        while let Some(&parent) = parents.get(next) {
            next += 1;
            for &pid in children.get(&parent).into_iter().flatten() {
                if self.living(pid) {
                    continue;
                }
                let Some(child) = Member::open(pid) else {
                    continue;
                };
                // In this order: it was his child, and both lived afterwards, so that neither pid was another's.
                let descends = proc_snapshot::parent(proc, pid) == Some(parent);
                let parent_lives = parent.0 == std::process::id() || self.living(parent);
                if descends && parent_lives && child.lives() {
                    parents.push(pid);
                    self.members.push(child);
                }
            }
        }
        self.members.len() - known
    }

    /// Whether a member of that pid lives.
    fn living(&self, pid: Pid) -> bool {
        self.members
            .iter()
            .any(|member| member.pid == pid && member.lives())
    }

    /// Asks whom nobody has asked yet to end.
    fn ask(&mut self) {
        for member in self
            .members
            .iter_mut()
            .filter(|member| member.sent.is_none())
        {
            member.send(Signal::Terminate);
            // What is stopped takes no signal before it goes on.
            member.send(Signal::Continue);
        }
    }

    /// Kills who lives. Says whom it had not killed before.
    fn kill(&mut self) -> Vec<String> {
        let mut killed = Vec::new();
        for member in self.members.iter_mut().filter(|member| member.lives()) {
            if member.sent != Some(Signal::Kill) {
                member.send(Signal::Kill);
                killed.extend((!member.refused).then(|| member.described()));
            }
        }
        killed
    }

    /// Waits until one of those who live ends, at most so long.
    fn wait(&self, most: Duration) {
        let living = self.members.iter().filter(|member| member.lives());
        let living: Vec<BorrowedFd<'_>> = living.map(|member| member.process.as_fd()).collect();
        if wait_readable(&living, most).is_err() {
            std::thread::sleep(most);
        }
    }

    /// Whether there is nobody left whom a signal could end.
    fn is_over(&mut self, command: &mut Child) -> bool {
        if self.adopts {
            reap(command);
            if orphans::children() == Children::None {
                return true;
            }
        }
        let mut living = self
            .members
            .iter()
            .filter(|member| member.lives())
            .peekable();
        if self.adopts {
            // Without a member that lives, one has come that was not found yet.
            living.peek().is_some() && living.all(|member| member.refused)
        } else {
            let _ = command.try_wait();
            living.all(|member| member.refused)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_some_and_counts_the_rest() {
        let processes: Vec<String> = (1..=6).map(|pid| format!("sleep {pid}")).collect();
        assert_eq!(names(&processes[..2]), "sleep 1, sleep 2");
        assert_eq!(
            names(&processes),
            "sleep 1, sleep 2, sleep 3, sleep 4 and 2 more"
        );
    }

    #[test]
    fn nothing_is_told_of_an_end_in_order() {
        assert_eq!(Ending::default().told(), Vec::<String>::new());
        let killed = Ending {
            killed: vec!["sleep 1".to_owned()],
            ..Ending::default()
        };
        assert_eq!(killed.told().len(), 1);
    }
}
