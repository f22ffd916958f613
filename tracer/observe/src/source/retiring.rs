//! Forgets what is known of processes, threads and mappings that are there no more, so that a tool that runs for weeks
//! holds no more than one that runs for a minute.
//!
//! The kernel tells of each end but for two: records of it that found no room in their ring, and memory that is unmapped.
//! For both `/proc` is asked, for the second when a process seems to have mapped twice as much as when last looked at.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    access::{Pid, SpaceId},
    event::{ContextKind, Mapping},
    space::{AddressSpaces, Kept, Retired},
    sys::proc_snapshot,
};

/// Late samples and hits of what ended come for so long, nanoseconds; a poll takes a hundredth of it.
pub const LATE_NS: u64 = 1_000_000_000;
/// Between two looks for ends that were not told, nanoseconds.
const LOOK_NS: u64 = 30_000_000_000;
/// The same where records were lost since.
const LOOK_AFTER_LOSS_NS: u64 = 2_000_000_000;
/// Mappings that a process has before it is looked at: few have more at once.
const FEW_MAPPINGS: usize = 1024;

/// Memory that a process has no more.
pub type Unmapped = (Pid, Vec<Arc<Mapping>>);

/// What is forgotten when.
#[derive(Default)]
pub struct Retiring {
    round_ns: u64,
    look_ns: u64,
    lost_context: u64,
    looked_lost: u64,
    /// Processes that seem to have mapped much.
    grown: FxHashSet<Pid>,
    /// Mappings from which on a space is looked at again.
    enough: FxHashMap<SpaceId, usize>,
    unmapped: Vec<Unmapped>,
}

impl Retiring {
    /// Takes notice of what was told; it has been applied to `spaces`.
    pub fn notice(&mut self, kind: &ContextKind, spaces: &AddressSpaces) {
        let ContextKind::Mapping { pid, .. } = kind else {
            return;
        };
        if let Some(space) = spaces.current(*pid)
            && spaces.mapping_count(space)
                > self.enough.get(&space).copied().unwrap_or(FEW_MAPPINGS)
        {
            self.grown.insert(*pid);
        }
    }

    /// Forgets what ended, at most every second of `now_ns` (CLOCK_MONOTONIC); `lost_context` are records lost so far.
    pub fn retire(&mut self, now_ns: u64, spaces: &mut AddressSpaces) -> Retired {
        for pid in std::mem::take(&mut self.grown) {
            self.look_at_mappings(Path::new("/proc"), pid, spaces);
        }
        if now_ns < self.round_ns {
            return Retired::default();
        }
        self.round_ns = now_ns.saturating_add(LATE_NS);
        let retired = spaces.retire(now_ns.saturating_sub(LATE_NS), &Kept::default());
        if !retired.spaces.is_empty() {
            self.enough
                .retain(|space, _| !retired.spaces.contains(space));
        }
        retired
    }

    /// Ends of processes and threads that the kernel did not tell of, or not yet; seldom looked for.
    pub fn unseen_ends(
        &mut self,
        now_ns: u64,
        lost: u64,
        spaces: &AddressSpaces,
    ) -> Vec<ContextKind> {
        self.lost_context += lost;
        if self.look_ns == 0 {
            self.look_ns = now_ns;
        }
        let pace = if self.lost_context > self.looked_lost {
            LOOK_AFTER_LOSS_NS
        } else {
            LOOK_NS
        };
        let due_ns = self.look_ns.saturating_add(pace);
        if now_ns < due_ns {
            return Vec::new();
        }
        self.look_ns = now_ns;
        self.looked_lost = self.lost_context;
        unseen_ends(Path::new("/proc"), spaces)
    }

    /// What processes have no more, since the last time.
    pub fn take_unmapped(&mut self) -> Vec<Unmapped> {
        std::mem::take(&mut self.unmapped)
    }

    fn look_at_mappings(&mut self, proc: &Path, pid: Pid, spaces: &mut AddressSpaces) {
        let Some(space) = spaces.current(pid) else {
            return;
        };
        let gone = gone(proc, pid, spaces.mappings(space));
        spaces.unmap(space, &gone, &Kept::default());
        let enough = (2 * spaces.mapping_count(space)).max(FEW_MAPPINGS);
        self.enough.insert(space, enough);
        if !gone.is_empty() {
            self.unmapped.push((pid, gone));
        }
    }
}

/// Ends of what is taken to run in `spaces` and is not below `proc`.
fn unseen_ends(proc: &Path, spaces: &AddressSpaces) -> Vec<ContextKind> {
    let there: FxHashSet<Pid> = proc_snapshot::pids(proc).into_iter().collect();
    // Where /proc cannot be read, nothing is known to have ended.
    if there.is_empty() {
        return Vec::new();
    }
    let mut ends = Vec::new();
    for (pid, mut threads) in spaces.living() {
        if there.contains(&pid) {
            // A thread for each is what most have.
            if threads.len() <= 1 {
                continue;
            }
            let running: FxHashSet<_> = proc_snapshot::threads(proc, pid).into_iter().collect();
            if running.is_empty() {
                continue;
            }
            threads.retain(|tid| tid.0 != pid.0 && !running.contains(tid));
        } else if !threads.iter().any(|tid| tid.0 == pid.0) {
            threads.push(crate::access::Tid(pid.0));
        }
        let ended = threads.into_iter();
        ends.extend(ended.map(|tid| ContextKind::Exit { pid, tid }));
    }
    ends
}

/// Of the mappings known of a process, those that it does not have now; none where that cannot be read.
fn gone<'m>(
    proc: &Path,
    pid: Pid,
    known: impl Iterator<Item = &'m Arc<Mapping>>,
) -> Vec<Arc<Mapping>> {
    let present: BTreeMap<u64, u64> = proc_snapshot::process(proc, pid, 0)
        .into_iter()
        .filter_map(|context| match context.kind {
            ContextKind::Mapping { mapping, .. } => Some((mapping.start, mapping.end())),
            _ => None,
        })
        .collect();
    if present.is_empty() {
        return Vec::new();
    }
    let is_gone = |mapping: &&Arc<Mapping>| {
        let before = present.range(..mapping.end()).next_back();
        before.is_none_or(|(_, end)| *end <= mapping.start)
    };
    known.filter(is_gone).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        access::Tid,
        event::Context,
        sys::running::{Running, compile},
    };

    fn apply(spaces: &mut AddressSpaces, kind: ContextKind) {
        spaces.apply(&Context { time_ns: 0, kind });
    }

    /// Maps and unmaps a page at ever new addresses, and keeps one.
    const MAPS: &str = r#"
        #include <stdio.h>
        #include <sys/mman.h>
        int main(void) {
            char *kept = mmap((void *)0x200000000000, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            printf("kept %p\nend\n", kept); fflush(stdout); getchar();
            return 0;
        }"#;

    #[test]
    fn memory_that_a_process_has_no_more_is_forgotten_and_what_it_has_is_not() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("maps.c"), MAPS).unwrap();
        compile(directory.path(), &["maps.c", "-o", "program"]);
        let running = Running::start(directory);
        let (pid, mut spaces) = (running.pid(), running.spaces());
        let space = spaces.space(pid);
        let real = spaces.mapping_count(space);
        let mut retiring = Retiring::default();
        let mut most = 0;
        for n in 0..20_000 {
            let start = 0x1000_0000_0000 + n * 0x1_0000;
            let mapping = Mapping {
                start,
                len: 4096,
                ..(**spaces.mapping(space, running.says["kept"]).unwrap()).clone()
            };
            let kind = ContextKind::Mapping {
                pid,
                mapping: Arc::new(mapping),
            };
            apply(&mut spaces, kind.clone());
            retiring.notice(&kind, &spaces);
            if n % 100 == 0 {
                retiring.retire(0, &mut spaces);
            }
            most = most.max(spaces.mapping_count(space));
        }
        assert!(most <= FEW_MAPPINGS + 101, "{most}");
        assert!(spaces.mapping_count(space) >= real);
        assert!(spaces.mapping(space, running.says["kept"]).is_some());
        let told: usize = retiring
            .take_unmapped()
            .iter()
            .map(|(_, gone)| gone.len())
            .sum();
        assert!(told > 18_000, "{told}");
    }

    #[test]
    fn the_end_of_a_process_that_nobody_told_of_is_found_and_the_living_stay() {
        let mut spaces = AddressSpaces::default();
        let own = Pid(std::process::id());
        for pid in [own.0, u32::MAX - 5] {
            for tid in [pid, u32::MAX - 6] {
                let kind = ContextKind::Comm {
                    pid: Pid(pid),
                    tid: Tid(tid),
                    comm: "x".into(),
                    exec: false,
                };
                apply(&mut spaces, kind);
                spaces.place(Pid(pid), 0x1000);
            }
        }
        let mut retiring = Retiring::default();
        assert!(retiring.unseen_ends(1, 0, &spaces).is_empty());
        assert!(retiring.unseen_ends(LOOK_NS, 0, &spaces).is_empty());
        let ends = retiring.unseen_ends(LOOK_NS + 1, 0, &spaces);
        let ended: FxHashSet<Pid> = ends
            .iter()
            .map(|kind| match kind {
                ContextKind::Exit { pid, .. } => *pid,
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(ended.contains(&Pid(u32::MAX - 5)), "{ends:?}");
        assert!(!ends.contains(&ContextKind::Exit {
            pid: own,
            tid: Tid(own.0)
        }));
        for kind in ends {
            apply(&mut spaces, kind);
        }
        // Soon again only where records were lost.
        assert!(
            retiring
                .unseen_ends(LOOK_NS + LOOK_AFTER_LOSS_NS, 0, &spaces)
                .is_empty()
        );
        let retired = retiring.retire(10 * LATE_NS, &mut spaces);
        assert_eq!(retired.processes, [Pid(u32::MAX - 5)]);
        assert!(spaces.current(own).is_some());
    }
}
