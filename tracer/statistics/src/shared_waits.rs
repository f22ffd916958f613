//! Waits until it is known whether other threads use the line too.

use rustc_hash::FxHashMap;

use crate::access::{LineKey, Tid};

/// Most lines of one thread with what was waited for them, and most of these waits.
const MOST: usize = 1 << 20;

/// A wait, and where it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waited {
    /// Number of its key.
    pub(crate) key: Option<u32>,
    pub(crate) slice: u32,
    /// Sampled time, nanoseconds.
    pub(crate) time_ns: u64,
    pub(crate) samples: u64,
}

#[derive(Debug)]
enum Line {
    OfOne(Tid, Vec<Waited>),
    OfSeveral,
}

/// Who touched which line, and what was waited for those of one thread.
#[derive(Debug, Default)]
pub(crate) struct LineWaits {
    lines: FxHashMap<LineKey, Line>,
    waits: usize,
    left_out: bool,
}

impl LineWaits {
    /// A thread touched a line, and waited for it if there is a wait. Puts into `settled` the waits that are known to be
    /// for a line of several threads now.
    pub(crate) fn touch(
        &mut self,
        key: LineKey,
        tid: Tid,
        wait: Option<Waited>,
        settled: &mut Vec<Waited>,
    ) {
        if self.lines.len() >= MOST && !self.lines.contains_key(&key) {
            self.left_out = true;
            return;
        }
        let line = (self.lines.entry(key)).or_insert_with(|| Line::OfOne(tid, Vec::new()));
        match line {
            Line::OfOne(first, waits) if *first == tid => {
                let Some(wait) = wait else {
                    return;
                };
                match waits.last_mut() {
                    Some(last) if (last.key, last.slice) == (wait.key, wait.slice) => {
                        last.time_ns = last.time_ns.saturating_add(wait.time_ns);
                        last.samples = last.samples.saturating_add(wait.samples);
                    }
                    _ if self.waits >= MOST => self.left_out = true,
                    _ => {
                        waits.push(wait);
                        self.waits += 1;
                    }
                }
            }
            Line::OfOne(_, waits) => {
                self.waits -= waits.len().min(self.waits);
                settled.append(waits);
                settled.extend(wait);
                *line = Line::OfSeveral;
            }
            Line::OfSeveral => settled.extend(wait),
        }
    }

    /// What was waited for lines that nobody else touched.
    pub(crate) fn private(&mut self) -> Vec<Waited> {
        let lines = std::mem::take(&mut self.lines);
        let of_one = lines.into_values().filter_map(|line| match line {
            Line::OfOne(_, waits) => Some(waits),
            Line::OfSeveral => None,
        });
        of_one.flatten().collect()
    }

    /// Whether there was more than is kept.
    pub(crate) fn left_out(&self) -> bool {
        self.left_out
    }
}
