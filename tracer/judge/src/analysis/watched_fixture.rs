//! Orders of accesses for tests, written down one by one, and watch windows with them: one line, an access every 10 µs.

use super::{
    WatchBounds, WatchedLine, WatchedLines,
    served::Served,
    window_order::{Trapped, serve},
};
use crate::{
    access::{Access, Basis, Cpu, LineKey, LineSize, Op, Pid, Place, SpaceId, Tid},
    event::{Breadth, Unresolved, WatchedWord, Window, WindowEnd},
};

/// Of the line.
pub(crate) const BASE: u64 = 0x7f00_0000_1000;
/// Between two accesses.
pub(crate) const STEP_NS: u64 = 10_000;
/// Cost of a hit.
pub(crate) const HIT_NS: u64 = 2_000;

/// One access, of 8 bytes; thread n runs on CPU n and its instructions depend on what they do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Act {
    pub(crate) tid: u32,
    pub(crate) cpu: u32,
    pub(crate) op: Op,
    /// From the line's start.
    pub(crate) offset: u64,
    pub(crate) size: u16,
    pub(crate) within: u8,
    pub(crate) ip: u64,
}

impl Act {
    fn new(tid: u32, op: Op, offset: u64, code: u64) -> Act {
        Act {
            tid,
            cpu: tid,
            op,
            offset,
            size: 8,
            within: 0,
            ip: 0x401000 + code + offset,
        }
    }

    /// On another CPU than its thread's own.
    pub(crate) fn on(self, cpu: u32) -> Act {
        Act { cpu, ..self }
    }

    /// By the instruction of this number.
    pub(crate) fn at(self, code: u64) -> Act {
        Act {
            ip: 0x401000 + code,
            ..self
        }
    }

    /// Of so many bytes.
    pub(crate) fn of(self, size: u16) -> Act {
        Act { size, ..self }
    }

    /// Of so many bytes somewhere in its word.
    pub(crate) fn somewhere(self, size: u16) -> Act {
        Act {
            size,
            within: 8,
            offset: self.offset & !7,
            ..self
        }
    }

    pub(crate) fn trapped(&self, time_ns: u64) -> Trapped {
        let addr = BASE + self.offset;
        let space = SpaceId(0);
        Trapped {
            access: Access {
                time_ns,
                addr,
                ip: self.ip,
                pid: Pid(1),
                tid: Tid(self.tid),
                cpu: Cpu(self.cpu),
                size: self.size,
                op: self.op,
                basis: Basis::Trapped,
                locked: false,
                kernel: false,
                within: self.within,
                ..Access::BLANK
            },
            place: Place::Private { space, addr },
            space,
        }
    }
}

pub(crate) fn load(tid: u32, offset: u64) -> Act {
    Act::new(tid, Op::Load, offset, 0x1000)
}

pub(crate) fn store(tid: u32, offset: u64) -> Act {
    Act::new(tid, Op::Store, offset, 0x2000)
}

pub(crate) fn rmw(tid: u32, offset: u64) -> Act {
    Act::new(tid, Op::Rmw, offset, 0x3000)
}

pub(crate) fn key() -> LineKey {
    LineKey(Place::Private {
        space: SpaceId(0),
        addr: BASE,
    })
}

/// The accesses as the order of one window.
pub(in crate::analysis) fn served(acts: &[Act]) -> Vec<Served> {
    let trapped: Vec<Trapped> = acts.iter().map(|act| act.trapped(0)).collect();
    let order = serve(&trapped, key(), LineSize::B64);
    order.map(|(_, served)| served).collect()
}

/// Windows on the line.
pub(crate) struct Watch {
    pub(crate) lines: WatchedLines,
    pub(crate) now_ns: u64,
    windows: u64,
}

impl Watch {
    pub(crate) fn new() -> Watch {
        Watch {
            lines: WatchedLines::new(LineSize::B64, WatchBounds::default()),
            now_ns: 1_000_000_000,
            windows: 0,
        }
    }

    /// So many windows, each with these accesses once and with the 8-byte words at these offsets watched.
    pub(crate) fn windows(mut self, times: usize, words: &[u8], acts: &[Act]) -> Watch {
        for _ in 0..times {
            self.window(words, acts, |_| {});
        }
        self
    }

    /// One window, changed before it is taken.
    pub(crate) fn window(&mut self, words: &[u8], acts: &[Act], change: impl FnOnce(&mut Window)) {
        let open_ns = self.now_ns;
        for act in acts {
            self.access(act);
        }
        let word = |offset: &u8| WatchedWord {
            pid: Pid(1),
            addr: BASE + u64::from(*offset),
            len: 8,
        };
        let mut window = Window {
            number: self.windows,
            open_ns,
            end_ns: self.now_ns,
            words: words.iter().map(word).collect(),
            hits: acts.len() as u64,
            lost: 0,
            unresolved: std::iter::empty::<(Unresolved, u64)>().collect(),
            inferred: 0,
            cost_ns: acts.len() as u64 * HIT_NS,
            everyone: false,
            breadth: Breadth::Cpus,
            end: WindowEnd::Hits,
        };
        change(&mut window);
        self.lines.close(&window, |_| key().0);
        self.windows += 1;
        self.now_ns += 1_000_000;
    }

    /// An access, now.
    pub(crate) fn access(&mut self, act: &Act) {
        let trapped = act.trapped(self.now_ns);
        (self.lines).observe(&trapped.access, trapped.place, trapped.space);
        self.now_ns += STEP_NS;
    }

    pub(crate) fn line(&self) -> &WatchedLine {
        self.lines.get(key()).expect("a window was on it")
    }
}

/// The accesses, so many times over.
pub(crate) fn repeated(times: usize, acts: &[Act]) -> Vec<Act> {
    acts.iter()
        .copied()
        .cycle()
        .take(times * acts.len())
        .collect()
}
