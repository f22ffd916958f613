//! What happened to a line, as far as it can cost messages, whichever loads are hinted.
//!
//! While one processor has a line to itself, only its first access can miss and only its first store can ask for
//! ownership, under any set of hints. So an order is kept as *streaks*, each the accesses of one processor between those of
//! others, which is a few bytes for each time that the line may have moved. Any set of hints is then counted without the
//! order:
//!
//! ```text
//!   accesses   1: load p, load r, store q   2: load p   1: store q
//!   streaks    (1, load p, stores)          (2, load p)  (1, stores)
//! ```

use super::load::Counted;
use crate::{
    access::Cpu,
    analysis::Instruction,
    coherence::{Directory, Intent, Protocol},
};

/// Highest processor that a streak can name.
const MOST_CPU: u32 = (1 << CPU_BITS) - 1;
const CPU_BITS: u32 = 12;
const STORES: u32 = 1 << 18;
/// Of the streak only the state that it leaves counts.
const UNCOUNTED: u32 = 1 << 19;
const FIRST: u32 = STORES - 1;
const FIRST_STORES: u32 = 0;
const FIRST_OWNS: u32 = 1;
const FIRST_LOADS: u32 = 2;
/// A load that is counted; its number is added.
const FIRST_COUNTED: u32 = 3;

/// One line's streaks, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Streaks(Vec<u32>);

/// What a table has room for.
#[derive(Clone, Debug)]
pub(super) struct Room(pub(super) usize);

impl Streaks {
    /// Takes the next access; `number` is of a load that is counted. False where it does not fit: then the line's streaks
    /// are of no use.
    pub(super) fn take(
        &mut self,
        cpu: Cpu,
        intent: Intent,
        number: Option<u32>,
        room: &mut Room,
    ) -> bool {
        self.add(cpu, intent, number, 0, room)
    }

    /// The same of an access of which only the state that it leaves counts.
    pub(super) fn take_uncounted(&mut self, cpu: Cpu, intent: Intent, room: &mut Room) -> bool {
        self.add(cpu, intent, None, UNCOUNTED, room)
    }

    fn add(
        &mut self,
        cpu: Cpu,
        intent: Intent,
        number: Option<u32>,
        uncounted: u32,
        room: &mut Room,
    ) -> bool {
        let stores = intent == Intent::Store;
        let goes_on =
            |last: &u32| *last >> (32 - CPU_BITS) == cpu.0 && last & UNCOUNTED == uncounted;
        if let Some(last) = self.0.last_mut().filter(|last| goes_on(last)) {
            *last |= if stores { STORES } else { 0 };
            return true;
        }
        let first = match (intent, number) {
            (Intent::Store, _) => FIRST_STORES,
            (Intent::BiasedLoad, _) => FIRST_OWNS,
            (Intent::Load, None) => FIRST_LOADS,
            (Intent::Load, Some(number)) => FIRST_COUNTED.saturating_add(number),
        };
        if cpu.0 > MOST_CPU || first > FIRST || room.0 == 0 {
            return false;
        }
        room.0 -= 1;
        if self.0.is_empty() {
            // Most lines are one processor's.
            self.0.reserve_exact(1);
        }
        let stores = if stores { STORES } else { 0 };
        (self.0).push(cpu.0 << (32 - CPU_BITS) | uncounted | stores | first);
        true
    }
}

/// The streaks of all lines of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineStreaks {
    lines: Vec<Streaks>,
    /// Loads by their numbers.
    loads: Vec<Instruction>,
    protocol: Protocol,
}

impl LineStreaks {
    pub(super) fn new(lines: Vec<Streaks>, loads: &[Counted], protocol: Protocol) -> LineStreaks {
        LineStreaks {
            lines,
            loads: loads.iter().map(|load| load.facts.instruction).collect(),
            protocol,
        }
    }

    /// Number of lines.
    pub fn lines(&self) -> usize {
        self.lines.len()
    }

    /// Streaks of a line.
    pub fn length(&self, line: usize) -> usize {
        self.lines[line].0.len()
    }

    /// Loads by the numbers that [`LineStreaks::loads_of`] gives.
    pub fn loads(&self) -> &[Instruction] {
        &self.loads
    }

    /// Numbers of the loads that a streak of the line begins with, as often as they do: no other hint changes anything on
    /// it.
    pub fn loads_of(&self, line: usize) -> impl Iterator<Item = u32> + '_ {
        let first = self.lines[line].0.iter().map(|streak| streak & FIRST);
        first
            .filter(|first| *first >= FIRST_COUNTED)
            .map(|first| first - FIRST_COUNTED)
    }

    /// Messages of a line, and of those the messages that serve loads, where these loads are hinted.
    pub fn count(&self, line: usize, is_hinted: impl Fn(u32) -> bool) -> (u64, u64) {
        let mut directory = Directory::under(self.protocol);
        let (mut all, mut of_loads) = (0, 0);
        for streak in &self.lines[line].0 {
            let counted = u64::from(streak & UNCOUNTED == 0);
            let cpu = Cpu(streak >> (32 - CPU_BITS));
            let first = match streak & FIRST {
                FIRST_STORES => None,
                FIRST_OWNS => Some(Intent::BiasedLoad),
                FIRST_LOADS => Some(Intent::Load),
                counted if is_hinted(counted - FIRST_COUNTED) => Some(Intent::BiasedLoad),
                _ => Some(Intent::Load),
            };
            if let Some(intent) = first {
                let messages = directory.access(cpu, intent).transactions.total() * counted;
                all += messages;
                of_loads += messages;
            }
            if streak & STORES != 0 {
                all += directory.access(cpu, Intent::Store).transactions.total() * counted;
            }
        }
        (all, of_loads)
    }
}
