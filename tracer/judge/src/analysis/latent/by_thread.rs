//! Elements of one size in a row, each used by one thread: what an array that is indexed by thread looks like in an order.
//!
//! No name is needed to see it. The threads execute the same instructions, each on bytes of its own (others may do so elsewhere), and from one thread's bytes
//! to the next one's it is always as far:
//!
//! ```text
//!   instruction  thread  bytes                        stride 32, three elements:
//!   0x1130       1       0x4000..8                    |1111....|2222....|3333....|........|
//!   0x1130       2       0x4020..8                    0x4000   0x4020   0x4040   0x4060: where one
//!   0x1130       3       0x4040..8                                               more thread's would be
//! ```
//!
//! Two places are always as far from each other as from each other, so that it takes three. Stacks of threads are in a row,
//! too, but farther apart than elements of arrays.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::{
    access::{Access, Basis, Cpu, Place, SpaceId, Tid},
    analysis::small_map::SmallMap,
};

/// Elements that show that they are in a row.
const LEAST_ELEMENTS: usize = 3;
/// Bytes from one element to the next, at most: less than any stack has.
const LONGEST_STRIDE: u64 = 4096;
/// Instructions that are looked at; further ones are counted for no array.
const MOST_INSTRUCTIONS: usize = 1 << 16;
/// Threads of an instruction; one with more is looked at no further.
const MOST_THREADS: usize = 256;
/// Arrays that are kept, those first whose last element is used most.
const MOST_ARRAYS: usize = 256;

/// Elements in a row, each used by one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadArray {
    /// The first byte of the last element that its thread uses.
    pub last: Place,
    /// Bytes from there to behind the last one that it uses, at most `stride`.
    pub used: u64,
    /// Bytes from one element to the next.
    pub stride: u64,
    /// How many, at least three.
    pub elements: u64,
    /// Whose the last one is.
    pub thread: Tid,
}

impl ThreadArray {
    /// Where the element of one more thread would be used first.
    pub fn next(&self) -> Place {
        let position = self.last.position().saturating_add(self.stride);
        self.last.at(position)
    }
}

/// Those of an order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadArrays {
    /// By how often the last element is used.
    pub arrays: Vec<ThreadArray>,
    /// More than are kept.
    pub left_out: u64,
    /// A processor that executed nothing.
    pub unused_cpu: Cpu,
}

/// The bytes of a thread that an instruction accesses.
#[derive(Clone, Copy, Debug)]
struct Bytes {
    from: Place,
    /// Position behind the last one.
    to: u64,
    /// Repeats included.
    executions: u64,
}

/// Who accesses what by an instruction.
#[derive(Debug)]
enum Instruction {
    Each(SmallMap<Tid, Option<Bytes>>),
    /// A thread of it accesses more than an element.
    AllOver,
}

/// All instructions of a run whose order is complete. Feed it every access, in any order.
#[derive(Debug, Default)]
pub struct ByThread {
    instructions: FxHashMap<(SpaceId, u64), Instruction>,
    unused_cpu: Cpu,
}

impl ByThread {
    /// Takes an access at its resolved place; of what no emulator saw, nothing. `space` is the address space of the executing
    /// process.
    pub fn observe(&mut self, access: &Access, place: Place, space: SpaceId) {
        if access.basis != Basis::Emulated || !access.op.touches() {
            return;
        }
        self.unused_cpu.0 = self.unused_cpu.0.max(access.cpu.0.saturating_add(1));
        let key = (space, access.ip);
        if !self.instructions.contains_key(&key) && self.instructions.len() >= MOST_INSTRUCTIONS {
            return;
        }
        let known = self.instructions.entry(key);
        let known = known.or_insert_with(|| Instruction::Each(SmallMap::default()));
        let Instruction::Each(threads) = known else {
            return;
        };
        let to = place.position().saturating_add(access.size.max(1).into());
        let new = Bytes {
            from: place,
            to,
            executions: access.executions(),
        };
        let fits = match threads.slot(access.tid, MOST_THREADS) {
            Some(Some(bytes)) => bytes.add(new),
            Some(none) => {
                *none = Some(new);
                true
            }
            None => false,
        };
        if !fits {
            *known = Instruction::AllOver;
        }
    }

    /// The arrays whose last element is used so often that it could be handed over so many times.
    pub fn arrays(&self, hand_offs: u64) -> ThreadArrays {
        // By memory, stride and threads in the order of their places.
        let mut alike: BTreeMap<(Place, u64, Vec<Tid>), Vec<Bytes>> = BTreeMap::new();
        for instruction in self.instructions.values() {
            let Instruction::Each(threads) = instruction else {
                continue;
            };
            let each = threads
                .iter()
                .filter_map(|(tid, bytes)| Some((*tid, (*bytes)?)));
            if let Some((stride, tids, last)) = row(each.collect()) {
                let key = (last.from.at(0), stride, tids);
                alike.entry(key).or_default().push(last);
            }
        }
        let mut found: Vec<(u64, ThreadArray)> = Vec::new();
        for ((_, stride, tids), mut parts) in alike {
            let Some(thread) = tids.last() else { continue };
            parts.sort_by_key(|bytes| (bytes.from.position(), bytes.to));
            let mut parts = parts.into_iter();
            let mut element = parts.next();
            while let Some(bytes) = element {
                // What is farther away than one is of another array.
                element = parts.next();
                let mut all = bytes;
                while let Some(more) = element {
                    if more.to - all.from.position() > stride {
                        break;
                    }
                    all.to = all.to.max(more.to);
                    all.executions = all.executions.saturating_add(more.executions);
                    element = parts.next();
                }
                let array = ThreadArray {
                    last: all.from,
                    used: all.to - all.from.position(),
                    stride,
                    elements: tids.len() as u64,
                    thread: *thread,
                };
                if all.executions.saturating_mul(2) >= hand_offs {
                    found.push((all.executions, array));
                }
            }
        }
        found.sort_by_key(|(executions, array)| (std::cmp::Reverse(*executions), array.last));
        let left_out = found.len().saturating_sub(MOST_ARRAYS) as u64;
        found.truncate(MOST_ARRAYS);
        ThreadArrays {
            arrays: found.into_iter().map(|(_, array)| array).collect(),
            left_out,
            unused_cpu: self.unused_cpu,
        }
    }
}

impl Bytes {
    /// Adds what may be of the same element; false where it cannot.
    fn add(&mut self, more: Bytes) -> bool {
        let from = self.from.position().min(more.from.position());
        let to = self.to.max(more.to);
        if self.from.at(from) != more.from.at(from) || to - from > LONGEST_STRIDE {
            return false;
        }
        *self = Bytes {
            from: self.from.at(from),
            to,
            executions: self.executions.saturating_add(more.executions),
        };
        true
    }
}

/// Stride, threads and the last one's bytes of the longest row among places, of equally long ones the first.
fn row(mut each: Vec<(Tid, Bytes)>) -> Option<(u64, Vec<Tid>, Bytes)> {
    each.sort_by_key(|(_, bytes)| bytes.from);
    let stride = |n: usize| {
        let (before, bytes) = (&each[n - 1].1, &each[n].1);
        let is_behind = bytes.from.at(0) == before.from.at(0) && before.to <= bytes.from.position();
        is_behind.then(|| bytes.from.position() - before.from.position())
    };
    let mut longest = 0..0;
    let mut first = 0;
    for n in 1..each.len() {
        if n - first > 1 && stride(n) != stride(n - 1) {
            first = n - 1;
        }
        if stride(n).is_none_or(|stride| stride > LONGEST_STRIDE) {
            first = n;
        }
        if n + 1 - first > longest.len() {
            longest = first..n + 1;
        }
    }
    if longest.len() < LEAST_ELEMENTS {
        return None;
    }
    let stride = stride(longest.end - 1)?;
    let row = &each[longest];
    let last = row.last()?.1;
    let fits = last.to - last.from.position() <= stride;
    fits.then(|| (stride, row.iter().map(|(tid, _)| *tid).collect(), last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{access::Op, analysis::emulated_fixture::emulated};

    fn place(access: &Access) -> Place {
        Place::Private {
            space: SpaceId(3),
            addr: access.addr,
        }
    }

    /// Each thread adds, ten times, to its word at each of these places: thread, instruction, place.
    fn arrays(adds: &[(u32, u64, u64)]) -> Vec<ThreadArray> {
        let mut by_thread = ByThread::default();
        for _ in 0..10 {
            for (thread, ip, at) in adds {
                let access = emulated(*thread, *ip, Op::Rmw, *at);
                by_thread.observe(&access, place(&access), SpaceId(3));
            }
        }
        by_thread.arrays(8).arrays
    }

    #[test]
    fn elements_in_a_row_are_an_array_of_all_bytes_that_their_threads_use() {
        let fields = |thread: u32| {
            let at = 0x4000 + u64::from(thread) * 48;
            [(thread, 0x10, at + 8), (thread, 0x18, at + 24)]
        };
        let adds = [fields(1), fields(2), fields(3)].concat();
        let found = arrays(&adds);
        let last = emulated(3, 0, Op::Rmw, 0x4000 + 3 * 48 + 8);
        let expected = ThreadArray {
            last: place(&last),
            used: 24,
            stride: 48,
            elements: 3,
            thread: Tid(3),
        };
        assert_eq!(found, [expected]);
        assert_eq!(expected.next().position(), 0x4000 + 4 * 48 + 8);
    }

    #[test]
    fn what_is_not_in_a_row_or_not_of_one_thread_each_is_none() {
        // Two of them; different distances; stacks; one that all threads use.
        let at = |places: &[u64]| {
            let threads = places.iter().zip(1..);
            let adds: Vec<_> = threads.map(|(at, thread)| (thread, 0x10, *at)).collect();
            arrays(&adds)
        };
        assert!(at(&[0x4000, 0x4020]).is_empty());
        assert!(at(&[0x4000, 0x4020, 0x4048]).is_empty());
        assert!(at(&[0x4000, 0x80_5000, 0x100_6000]).is_empty());
        assert!(at(&[0x4000, 0x4000, 0x4000]).is_empty());
        // The twin, in whichever order threads have their elements.
        assert_eq!(at(&[0x4040, 0x4000, 0x4020]).len(), 1);
    }

    #[test]
    fn a_thread_that_does_the_same_elsewhere_is_in_no_row() {
        let at = |places: &[u64]| {
            let threads = places.iter().zip(1..);
            let adds: Vec<_> = threads.map(|(at, thread)| (thread, 0x10, *at)).collect();
            let found = arrays(&adds);
            let row = found
                .iter()
                .map(|array| (array.elements, array.last.position()));
            row.collect::<Vec<_>>()
        };
        assert_eq!(at(&[0x4000, 0x4040, 0x4080, 0x40c8]), [(3, 0x4080)]);
        assert_eq!(at(&[0x4000, 0x4048, 0x4088, 0x40c8]), [(3, 0x40c8)]);
        let far = [0x4000, 0x80_4000, 0x80_4040, 0x80_4080];
        assert_eq!(at(&far), [(3, 0x80_4080)]);
        assert_eq!(at(&[0x4000, 0x4040, 0x4088, 0x40c8]), []);
    }

    #[test]
    fn instructions_that_go_over_an_array_and_elements_used_too_rarely_make_none() {
        let all: Vec<_> = (1..4)
            .flat_map(|thread| (0..3).map(move |n| (thread, 0x10, 0x4000 + n * 32)))
            .collect();
        assert!(arrays(&all).is_empty());
        let mut by_thread = ByThread::default();
        for thread in 1..4 {
            let access = emulated(thread, 0x10, Op::Rmw, 0x4000 + u64::from(thread) * 32);
            by_thread.observe(&access, place(&access), SpaceId(3));
        }
        assert!(by_thread.arrays(8).arrays.is_empty());
        assert_eq!(by_thread.arrays(2).arrays.len(), 1);
        assert_eq!(by_thread.arrays(2).unused_cpu, Cpu(4));
    }

    #[test]
    fn two_arrays_one_behind_the_other_are_two() {
        // As `long a[3]; long b[3];`, 8 bytes each.
        let both = |thread: u32| {
            let at = 0x4000 + u64::from(thread) * 8;
            [(thread, 0x10, at), (thread, 0x18, at + 24)]
        };
        let found = arrays(&[both(0), both(1), both(2)].concat());
        let lasts: Vec<u64> = found.iter().map(|array| array.last.position()).collect();
        assert_eq!(lasts, [0x4010, 0x4028]);
    }
}
