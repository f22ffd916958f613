//! Two passes over the accesses: the first finds the lines that are shared, the second counts those alone, so
//! that memory is bounded by what is shared and not by what is touched.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Counts, Event};
use crate::{
    access::{Access, Cpu, LineKey, LineSize, Op, Pid, Place, SpaceId},
    data_source::stated::perf_word,
};

/// Lines kept; what is shared beyond is counted in the totals only.
const MOST_LINES: usize = 1 << 20;
/// Rows kept of all lines.
const MOST_ROWS: usize = 1 << 20;

/// An access and where it is.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The access.
    pub access: &'a Access,
    /// The address space of its process.
    pub space: SpaceId,
    /// The memory.
    pub place: Place,
    /// Mappings are known at its data, among those of the mode it ran in, and at its instruction.
    pub mapped: bool,
}

impl Seen<'_> {
    fn counts(&self) -> Counts {
        Counts::of(perf_word(self.access), self.access.addr, self.mapped)
    }
}

/// The first pass.
#[derive(Debug)]
pub struct TotalFold {
    line_size: LineSize,
    totals: Counts,
    lines: FxHashSet<LineKey>,
    more_lines: bool,
}

impl TotalFold {
    /// Nothing seen yet.
    pub fn new(line_size: LineSize) -> TotalFold {
        TotalFold {
            line_size,
            totals: Counts::default(),
            lines: FxHashSet::default(),
            more_lines: false,
        }
    }

    /// Takes in an access.
    pub fn observe(&mut self, seen: &Seen<'_>) {
        let counts = seen.counts();
        self.totals.add(&counts);
        if counts.hitm() + counts.peer() > 0 {
            let key = seen.place.line(self.line_size);
            if self.lines.len() < MOST_LINES {
                self.lines.insert(key);
            } else {
                self.more_lines |= !self.lines.contains(&key);
            }
        }
    }

    /// Goes on to the second pass, which counts the shared lines and those `judged`.
    pub fn second(self, judged: impl IntoIterator<Item = LineKey>) -> LineFold {
        let mut lines: FxHashMap<LineKey, Line> = FxHashMap::default();
        for key in self.lines.into_iter().chain(judged) {
            lines.entry(key).or_default();
        }
        LineFold {
            line_size: self.line_size,
            lines: Lines {
                totals: self.totals,
                counted: lines,
                rows: 0,
                incomplete: self.more_lines,
            },
        }
    }
}

/// The second pass.
#[derive(Debug)]
pub struct LineFold {
    line_size: LineSize,
    lines: Lines,
}

/// What two passes have counted.
#[derive(Debug)]
pub struct Lines {
    /// Of all accesses.
    pub totals: Counts,
    /// Shared and judged lines.
    pub(super) counted: FxHashMap<LineKey, Line>,
    rows: usize,
    /// Lines or rows are left out.
    pub incomplete: bool,
}

/// A line.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) counts: Counts,
    /// A virtual address of its first byte.
    pub(super) address: Option<u64>,
    pub(super) pages: Pages,
    pub(super) rows: FxHashMap<RowKey, Row>,
}

/// Changes of the physical address from one sample to the next, as perf counts them.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Pages {
    last: u64,
    pub(super) count: u64,
}

impl Pages {
    fn see(&mut self, access: &Access) {
        if let Some(addr) = access.measured.phys_addr
            && addr.get() != self.last
        {
            self.last = addr.get();
            self.count += 1;
        }
    }
}

/// What perf groups by: offset, process, instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RowKey {
    pub(super) offset: u8,
    pub(super) pid: Pid,
    pub(super) ip: u64,
    pub(super) kernel: bool,
}

/// Samples of one instruction on one offset.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) counts: Counts,
    pub(super) space: SpaceId,
    pub(super) op: Op,
    pub(super) size: u16,
    pub(super) pages: Pages,
    pub(super) remote_hitm: Mean,
    pub(super) local_hitm: Mean,
    pub(super) load: Mean,
    /// CPUs, ascending.
    pub(super) cpus: Vec<Cpu>,
}

/// Latencies, cycles.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Mean {
    sum: u64,
    samples: u64,
}

impl Mean {
    fn add(&mut self, cycles: u64) {
        self.sum = self.sum.saturating_add(cycles);
        self.samples += 1;
    }

    pub(super) fn cycles(self) -> f64 {
        if self.samples == 0 {
            0.0
        } else {
            self.sum as f64 / self.samples as f64
        }
    }
}

impl LineFold {
    /// Takes in an access again.
    pub fn observe(&mut self, seen: &Seen<'_>) {
        let key = seen.place.line(self.line_size);
        let lines = &mut self.lines;
        let Some(line) = lines.counted.get_mut(&key) else {
            return;
        };
        let access = seen.access;
        let offset = seen.place.offset_in_line(self.line_size);
        let counts = seen.counts();
        line.counts.add(&counts);
        line.address = Some(access.addr - u64::from(offset));
        line.pages.see(access);
        let key = RowKey {
            offset,
            pid: access.pid,
            ip: access.ip,
            kernel: access.kernel,
        };
        if lines.rows >= MOST_ROWS && !line.rows.contains_key(&key) {
            lines.incomplete = true;
            return;
        }
        let row = line.rows.entry(key).or_insert_with(|| {
            lines.rows += 1;
            Row::new(seen)
        });
        row.observe(access, &counts);
    }

    /// What was counted.
    pub fn finish(self) -> Lines {
        self.lines
    }
}

impl Row {
    fn new(seen: &Seen<'_>) -> Row {
        Row {
            counts: Counts::default(),
            space: seen.space,
            op: seen.access.op,
            size: seen.access.size,
            pages: Pages::default(),
            remote_hitm: Mean::default(),
            local_hitm: Mean::default(),
            load: Mean::default(),
            cpus: Vec::new(),
        }
    }

    fn observe(&mut self, access: &Access, counts: &Counts) {
        self.counts.add(counts);
        self.size = self.size.max(access.size);
        self.pages.see(access);
        let cycles = access
            .measured
            .latency_cycles
            .map_or(0, |n| u64::from(n.get()));
        // A load is in one mean only, as in compute_stats of tools/perf/builtin-c2c.c.
        if counts.get(Event::RemoteHitm) > 0 {
            self.remote_hitm.add(cycles);
        } else if counts.get(Event::LocalHitm) > 0 {
            self.local_hitm.add(cycles);
        } else if counts.peer() == 0 && counts.get(Event::Loads) > 0 {
            self.load.add(cycles);
        }
        if let Err(at) = self.cpus.binary_search(&access.cpu) {
            self.cpus.insert(at, access.cpu);
        }
    }
}
