//! Takes sealed chunks out of the processes' shared memory, and says up to which time all is known.

use std::{
    ops::Range,
    sync::atomic::{
        Ordering::{Acquire, Relaxed, Release, SeqCst},
        fence,
    },
    time::Duration,
};

use super::{
    merge::{Merge, Row, Sealed},
    processes::Process,
};
use crate::sys::{
    emulator_layout::{ACTIVE, CHUNKS, LANES, Lane, PROCESSES, RECORDS, Shared},
    emulator_memory::sleep_on,
};

/// Rows that may wait before the program has to, some 250 MiB.
const MOST_WAITING: usize = 10 << 20;
/// Rows beyond which no more is taken while there are some to pass on.
const ENOUGH_WAITING: usize = 1 << 20;

/// The lanes as they were looked at last.
pub(super) struct Lanes {
    /// A lane that has been open for this many ticks and shows nothing holds up nobody once there is no more room.
    patience: u64,
    /// Times that a lane was not waited for.
    overtaken: u64,
}

impl Lanes {
    /// Nothing was taken yet.
    pub(super) fn new(patience: u64) -> Lanes {
        Lanes {
            patience,
            overtaken: 0,
        }
    }

    /// Times that the others went on without a thread that was in the middle of something.
    pub(super) fn overtaken(&self) -> u64 {
        self.overtaken
    }

    /// Takes what is sealed, and returns the time up to which no lane can bring anything more. `now` is a time stamp from
    /// before the processes were looked for: whoever opens a chunk says so before it reads its first stamp, so if we do
    /// not see that, it is after ours.
    pub(super) fn collect(
        &mut self,
        all: &[Shared; PROCESSES],
        processes: &[Process],
        merge: &mut Merge,
        now: u64,
        stuck: bool,
    ) -> u64 {
        fence(SeqCst);
        let most = if stuck { MOST_WAITING } else { ENOUGH_WAITING };
        let mut limit = now;
        let mut without = now;
        for (whose, lane) in lanes(all, processes, 0..processes.len()) {
            let active = lane.state.load(Acquire) == ACTIVE;
            let opened = lane.opened.load(Acquire);
            let head = lane.head.load(Acquire);
            let mut taken = lane.tail.0.load(Relaxed);
            while taken < head && merge.waiting() < most {
                take(lane, taken, merge, whose);
                taken += 1;
                lane.tail.0.store(taken, Release);
            }
            if taken < head {
                // What it has beyond is younger than that.
                let next = oldest(lane, taken);
                limit = limit.min(next);
                without = without.min(next);
            } else if active {
                limit = limit.min(opened);
                if merge.has(whose.lane) || now.saturating_sub(opened) < self.patience {
                    without = without.min(opened);
                }
            }
        }
        if merge.waiting() >= MOST_WAITING && without > limit {
            self.overtaken += 1;
            return without;
        }
        limit
    }

    /// Takes everything that some processes wrote, sealed or not. They are gone, or are not to write any more.
    pub(super) fn collect_rest(
        all: &[Shared; PROCESSES],
        processes: &[Process],
        which: Range<usize>,
        merge: &mut Merge,
    ) {
        for (whose, lane) in lanes(all, processes, which) {
            let mut taken = lane.tail.0.load(Relaxed);
            loop {
                let head = lane.head.load(Acquire);
                for number in taken..head {
                    take(lane, number, merge, whose);
                }
                taken = head;
                let open = &lane.chunks[head as usize % CHUNKS];
                let is_open = lane.state.load(Acquire) == ACTIVE;
                if is_open && open.number.load(Acquire) == head + 1 {
                    take(lane, head, merge, whose);
                    break;
                }
                // Where it was sealed just now, it is all there.
                if lane.head.load(Acquire) == head {
                    break;
                }
            }
            // The ring stays as full as it is: nobody shall write where we may still read.
        }
    }

    /// Sleeps until a ring fills, at most so long.
    pub(super) fn sleep(all: &[Shared; PROCESSES], processes: &[Process], most: Duration) {
        let sleeping = &all[0].header.sleeping;
        sleeping.store(1, SeqCst);
        fence(SeqCst);
        let fills =
            |lane: &Lane| lane.head.load(Acquire) - lane.tail.0.load(Relaxed) >= CHUNKS as u64 / 2;
        if !lanes(all, processes, 0..processes.len()).any(|(_, lane)| fills(lane)) {
            sleep_on(sleeping, 1, most);
        }
        sleeping.store(0, SeqCst);
    }
}

/// Whose a chunk is.
#[derive(Clone, Copy)]
struct Whose {
    /// In the order in which processes were found.
    process: usize,
    /// In the merge.
    lane: usize,
}

/// Lanes that have had a thread, of some processes, as far as these are observed.
fn lanes<'a>(
    all: &'a [Shared; PROCESSES],
    processes: &'a [Process],
    which: Range<usize>,
) -> impl Iterator<Item = (Whose, &'a Lane)> {
    let observed = which.filter_map(|process| Some((process, processes[process].writes_at()?)));
    observed.flat_map(move |(process, place)| {
        let shared = &all[place];
        let used = shared.header.lanes.load(Acquire) as usize;
        let lanes = shared.lanes[..used.min(LANES)].iter().enumerate();
        lanes.map(move |(n, lane)| {
            let lane_of_all = place + n * PROCESSES;
            (
                Whose {
                    process,
                    lane: lane_of_all,
                },
                lane,
            )
        })
    })
}

fn oldest(lane: &Lane, number: u64) -> u64 {
    let [first, ..] = &lane.records[number as usize % CHUNKS];
    first.tsc.load(Relaxed)
}

fn take(lane: &Lane, number: u64, merge: &mut Merge, whose: Whose) {
    let at = number as usize % CHUNKS;
    let chunk = &lane.chunks[at];
    let count = (chunk.count.load(Acquire) as usize).min(RECORDS);
    let mut rows = merge.spare();
    rows.extend(lane.records[at][..count].iter().map(|record| Row {
        tsc: record.tsc.load(Relaxed),
        place: record.place.load(Relaxed),
        instruction: record.instruction.load(Relaxed),
        repeats: record.repeats.load(Relaxed),
    }));
    let sealed = Sealed {
        process: whose.process,
        tid: chunk.tid.load(Relaxed),
        processor: chunk.processor.load(Relaxed),
        rows,
    };
    merge.add(whose.lane, sealed);
}
