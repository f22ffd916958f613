//! Where threads' instructions accessed memory lately, for samples in which the registers do not tell it any more: a
//! load of a pointer's target into the pointer's own register, a loop that reads its pointer anew in each round.

use rustc_hash::FxHashMap;

use super::waits::Placed;
use crate::access::Tid;

/// Places kept; beyond it all are forgotten, since those that matter are met again at once.
const MOST: usize = 4096;
/// Samples in a row that showed one place, before the next is taken to be there as well: code that goes through a list,
/// or waits for this lock and that, has no such row.
const ENOUGH: u32 = 3;
/// How long that holds, nanoseconds: a hundred samples of a thread that does nothing else.
const LATELY_NS: u64 = 100_000_000;

/// What is remembered: the access of one instruction, or the word that a loop waits for, by the loop's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Code {
    Instruction(u64),
    Loop(u64),
}

/// By code and thread, the place that it accessed last.
#[derive(Debug, Default)]
pub(super) struct LastPlaces {
    places: FxHashMap<(Code, Tid), Place>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    /// `None` until it is met.
    placed: Option<Placed>,
    times: u32,
    last_ns: u64,
}

impl LastPlaces {
    /// From now on notes the place, if it was none of those noted.
    pub(super) fn want(&mut self, code: Code, tid: Tid) {
        if self.places.len() >= MOST && !self.places.contains_key(&(code, tid)) {
            self.places.clear();
        }
        self.places.entry((code, tid)).or_insert(Place {
            placed: None,
            times: 0,
            last_ns: 0,
        });
    }

    /// A sample showed the place. Forgotten at once unless it is [wanted](LastPlaces::want).
    pub(super) fn note(&mut self, code: Code, tid: Tid, time_ns: u64, placed: Placed) {
        if self.places.is_empty() {
            return;
        }
        let Some(place) = self.places.get_mut(&(code, tid)) else {
            return;
        };
        let same = place.placed.is_some_and(|known| known.is_same(&placed));
        *place = Place {
            placed: Some(placed),
            times: if same {
                place.times.saturating_add(1)
            } else {
                1
            },
            last_ns: time_ns,
        };
    }

    /// The place, if it has been the same in the last samples that told.
    pub(super) fn lately(&self, code: Code, tid: Tid, time_ns: u64) -> Option<Placed> {
        let place = self.places.get(&(code, tid))?;
        let recent = time_ns.saturating_sub(place.last_ns) <= LATELY_NS;
        place.placed.filter(|_| place.times >= ENOUGH && recent)
    }
}
