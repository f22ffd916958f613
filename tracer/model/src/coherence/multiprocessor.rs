//! Processors with caches around one home: [`Directory`] per line, with copies that have to make room.

use super::{
    CacheGeometry, Directory, Intent, Line, LogBuffer, Protocol, Request, State, Transaction,
    Transactions,
    cache::{Cache, Put},
};
use crate::access::{Cpu, LineSize};

/// The machine that is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemModel {
    /// Bytes that travel together.
    pub line: LineSize,
    /// Second level of each processor.
    pub l2: CacheGeometry,
    /// Third and last level of each processor; has all that the second has.
    pub l3: CacheGeometry,
    /// How the home answers.
    pub protocol: Protocol,
    /// What of the requests the home keeps for the paper's filter; what they cost is not changed by it.
    pub log: LogBuffer,
}

impl Default for SystemModel {
    /// The processors of SWIFT section 5.1: Itanium 2 with 256 KiB of second and 3 MiB of third level, of 8 and 12 ways.
    /// Lines are today's 64 bytes; theirs had 128.
    fn default() -> SystemModel {
        SystemModel {
            line: LineSize::B64,
            l2: CacheGeometry {
                bytes: 256 << 10,
                ways: 8,
            },
            l3: CacheGeometry {
                bytes: 3 << 20,
                ways: 12,
            },
            protocol: Protocol::default(),
            log: LogBuffer::default(),
        }
    }
}

/// Why a [`SystemModel`] cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// A size that its ways and lines do not divide.
    #[error(
        "a cache of {} bytes cannot have {} ways of {line_bytes}-byte lines: the size must be a multiple of one set, \
         and at most 16,777,216 sets", cache.bytes, cache.ways
    )]
    Sets {
        /// The cache.
        cache: CacheGeometry,
        /// Bytes of a line.
        line_bytes: u64,
    },
    /// The third level could not hold what the second does.
    #[error(
        "the third level has {} bytes and the second {}: the third holds all that the second does", l3.bytes, l2.bytes
    )]
    Inclusion {
        /// The second level.
        l2: CacheGeometry,
        /// The third.
        l3: CacheGeometry,
    },
}

/// What one access took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// What the processor had to ask for; `None` when its caches were enough.
    pub request: Option<Request>,
    /// The messages that served the request.
    pub transactions: Transactions,
    /// The second level did not have the line.
    pub missed_l2: bool,
    /// Neither did the third: the line had to be fetched. An upgrade of a copy is no miss.
    pub missed_l3: bool,
    /// The message about a line that had to leave the third level; it serves no request and is not among
    /// `transactions`.
    pub eviction: Option<Transaction>,
}

/// Caches of one processor.
#[derive(Clone, Debug)]
struct Caches {
    l2: Cache,
    l3: Cache,
}

/// What is kept of a line, in half a cache line.
#[derive(Clone, Debug)]
#[repr(align(32))]
struct Kept {
    home: Directory,
    l2_set: u32,
    l3_set: u32,
}

/// The machine. Memory: 32 bytes a line, and per processor 4 bytes for each line that its caches can hold.
///
/// A processor's third level has a line exactly when the line's [`Directory`] names it a holder. Sets are chosen by where
/// the line is in its memory (virtual address, offset in a file), since physical addresses are not known; of all levels
/// least recently used lines leave first, and what the second level serves is no use of the third.
#[derive(Clone, Debug)]
pub struct Multiprocessor {
    protocol: Protocol,
    sets: (u32, u32),
    ways: (u32, u32),
    /// By number of the processor.
    processors: Vec<Caches>,
    /// By number of the line.
    lines: Vec<Kept>,
    /// Scratch: who had the line before a request.
    holders: Vec<Cpu>,
}

impl SystemModel {
    /// Sets of the second and the third level.
    fn sets(&self) -> Result<(u32, u32), ModelError> {
        let line_bytes = self.line.bytes();
        let sets = |cache: CacheGeometry| {
            let sets = cache.sets(line_bytes);
            sets.ok_or(ModelError::Sets { cache, line_bytes })
        };
        let sets = (sets(self.l2)?, sets(self.l3)?);
        if self.l3.bytes < self.l2.bytes {
            let (l2, l3) = (self.l2, self.l3);
            return Err(ModelError::Inclusion { l2, l3 });
        }
        Ok(sets)
    }

    /// A number of which lines with different remainders never meet in a set, of neither level: the greatest.
    pub fn independent_sets(&self) -> Result<u64, ModelError> {
        let (mut a, mut b) = self.sets()?;
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Ok(a.into())
    }

    /// The machine with one of so many equal parts of the sets of each level; `parts` divides
    /// [`independent_sets`](SystemModel::independent_sets).
    #[must_use]
    pub fn part(&self, parts: u64) -> SystemModel {
        let part = |cache: CacheGeometry| CacheGeometry {
            bytes: cache.bytes / parts,
            ..cache
        };
        SystemModel {
            l2: part(self.l2),
            l3: part(self.l3),
            ..*self
        }
    }
}

impl Multiprocessor {
    /// Empty caches.
    pub fn new(model: &SystemModel) -> Result<Multiprocessor, ModelError> {
        let sets = model.sets()?;
        Ok(Multiprocessor {
            protocol: model.protocol,
            sets,
            ways: (model.l2.ways, model.l3.ways),
            processors: Vec::new(),
            lines: Vec::new(),
            holders: Vec::new(),
        })
    }

    /// Serves one access of a processor to a line. Processors and lines should be numbered from 0 without gaps: there
    /// is a row for each number up to the greatest.
    #[inline]
    pub fn access(&mut self, cpu: Cpu, line: Line, intent: Intent) -> Served {
        if line.id as usize >= self.lines.len() || cpu.0 as usize >= self.processors.len() {
            self.grow(cpu, line);
        }
        let kept = &mut self.lines[line.id as usize];
        if kept.l2_set == UNPLACED {
            kept.l2_set = (line.index % u64::from(self.sets.0)) as u32;
            kept.l3_set = (line.index % u64::from(self.sets.1)) as u32;
        }
        let caches = &mut self.processors[cpu.0 as usize];
        let in_l2 = caches.l2.put(kept.l2_set, line.id);
        if in_l2 == Put::Hit && (intent != Intent::Store || kept.home.state(cpu) == State::Modified)
        {
            return Served::default();
        }
        self.beyond_l2(cpu, line.id, intent, in_l2 != Put::Hit)
    }

    /// Brings what is kept of the line near to the processor that simulates. What it gives means nothing.
    #[inline]
    pub fn look_at(&self, line: Line) -> u64 {
        let kept = self.lines.get(line.id as usize);
        kept.map_or(0, |kept| u64::from(kept.l3_set))
    }

    /// The same of the line that would leave the third level to make room for this one.
    #[inline]
    pub fn look_at_next_out(&self, cpu: Cpu, line: Line) -> u64 {
        let kept = self.lines.get(line.id as usize);
        let placed = kept.filter(|kept| kept.l3_set != UNPLACED);
        let next = placed
            .zip(self.processors.get(cpu.0 as usize))
            .and_then(|(kept, caches)| caches.l3.next_out(kept.l3_set));
        let kept = next.and_then(|next| self.lines.get(next as usize));
        kept.map_or(0, |kept| u64::from(kept.l3_set))
    }

    /// The line as the processor has it.
    pub fn state(&self, cpu: Cpu, line: Line) -> State {
        let kept = self.lines.get(line.id as usize);
        kept.map_or(State::Invalid, |kept| kept.home.state(cpu))
    }

    #[cold]
    fn grow(&mut self, cpu: Cpu, line: Line) {
        while self.processors.len() <= cpu.0 as usize {
            self.processors.push(Caches {
                l2: Cache::new(self.sets.0, self.ways.0),
                l3: Cache::new(self.sets.1, self.ways.1),
            });
        }
        if self.lines.len() <= line.id as usize {
            let kept = Kept {
                home: Directory::under(self.protocol),
                l2_set: UNPLACED,
                l3_set: UNPLACED,
            };
            self.lines.resize(line.id as usize + 1, kept);
        }
    }

    /// An access that the second level cannot serve alone; it has the line, or keeps a place for it.
    fn beyond_l2(&mut self, cpu: Cpu, line: u32, intent: Intent, missed_l2: bool) -> Served {
        let kept = &mut self.lines[line as usize];
        self.holders.clear();
        self.holders
            .extend(kept.home.holders().filter(|holder| *holder != cpu));
        let outcome = kept.home.access(cpu, intent);
        let (l2_set, l3_set) = (kept.l2_set, kept.l3_set);
        if outcome.request.is_some() {
            for holder in &self.holders {
                if kept.home.state(*holder) == State::Invalid {
                    let caches = &mut self.processors[holder.0 as usize];
                    caches.l2.take(l2_set, line);
                    caches.l3.take(l3_set, line);
                }
            }
        }
        // The third level's order of use is of what the second asked it for.
        let mut eviction = None;
        if missed_l2 {
            let caches = &mut self.processors[cpu.0 as usize];
            if let Put::Missed(Some(leaves)) = caches.l3.put(l3_set, line) {
                let left = &mut self.lines[leaves as usize];
                caches.l2.take(left.l2_set, leaves);
                eviction = left.home.evict(cpu);
            }
        }
        Served {
            request: outcome.request,
            transactions: outcome.transactions,
            missed_l2,
            missed_l3: outcome.missed(),
            eviction,
        }
    }
}

/// Set of a line that has not been accessed.
const UNPLACED: u32 = u32::MAX;

#[cfg(test)]
mod tests;
