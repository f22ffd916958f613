//! What is counted, by whom, and how many are predicted: the table, as data.
//!
//! To add an event: its loop in `asked/asked.s`, between `event_x` and `event_x_end`, and its entry here.

/// Who counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counter {
    /// The emulated source, and the directory or the caches that its order of accesses is replayed through.
    Emulate,
    /// A watch window: data breakpoints.
    Watch,
    /// An event that the kernel itself counts.
    Software,
    /// Probes on user code.
    Uprobes,
    /// Timer samples.
    Timer,
    /// The time stamp counter, and the clocks that [`cohtrace_measure`] measures.
    Clock,
}

impl Counter {
    /// All.
    pub const ALL: [Counter; 6] = [
        Counter::Emulate,
        Counter::Watch,
        Counter::Software,
        Counter::Uprobes,
        Counter::Timer,
        Counter::Clock,
    ];

    /// As in `--source`.
    pub fn name(self) -> &'static str {
        match self {
            Counter::Emulate => "emulate",
            Counter::Watch => "watch",
            Counter::Software => "software",
            Counter::Uprobes => "uprobes",
            Counter::Timer => "timer",
            Counter::Clock => "clock",
        }
    }
}

/// What of a complete order of accesses is counted: of those that the event's loop makes to its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordered {
    /// Executions that read.
    Loads,
    /// Executions that write.
    Stores,
    /// Executions of locked instructions.
    Locked,
    /// Executions that read into a vector register.
    RealLoads,
    /// Loads that find the line dirty in another cache.
    Interventions,
    /// Stores that take the line from another cache.
    Invalidations,
    /// Stores of a Shared copy that ask for ownership, under the paper's protocol.
    Upgrades,
    /// Stores of an Exclusive copy that ask for nothing, where the first reader gets such a copy.
    CleanWrites,
    /// Misses of a first level of 32 KiB and 8 ways, and of a second of 256 KiB and 8 ways.
    Misses(Level),
}

/// A level of the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The first.
    First,
    /// The second.
    Second,
}

/// An event that can be counted.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// As in `--event`.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// From what the count follows.
    pub predicted_from: &'static str,
    /// Who counts it.
    pub counter: Counter,
    /// What of an order of accesses; `None`: of a window, all.
    pub ordered: Option<Ordered>,
    /// Which loop of the program does it.
    pub letter: char,
    /// The label of the memory that its accesses are to, with its length in bytes.
    pub memory: (&'static str, u64),
    /// The sizes that it can be asked for.
    pub sizes: (u64, u64),
}

/// Lines that the program has.
const LINES: u64 = 1_000_000;
/// Most that sizes are.
pub const MOST: u64 = 1_000_000;
/// Data breakpoints cost some 10 us each.
const MOST_WATCHED: u64 = 100_000;
/// Turns of a ping-pong take two such accesses, and two threads that run at the same time.
const MOST_TURNS: u64 = 1_000;
/// Fewer rounds are over before there are samples of them.
const LEAST_TIMED: u64 = 100_000;
/// Time stamp counters step by up to some 40 cycles, which must be below a percent.
const LEAST_CYCLES: u64 = 10_000;
/// Percent of the time that the program of `time-share` is in its first function: 3 of 10 turns of one loop.
pub const SHARE_PERCENT: f64 = 30.0;

const WORD: (&str, u64) = ("word", 8);
const REAL: (&str, u64) = ("real", 8);
const LINE: (&str, u64) = ("lines", LINES * 64);
const PING: (&str, u64) = ("ping", 8);

const fn of_order(
    name: &'static str,
    letter: char,
    ordered: Ordered,
    memory: (&'static str, u64),
    about: &'static str,
    predicted_from: &'static str,
) -> Event {
    Event {
        name,
        about,
        predicted_from,
        counter: Counter::Emulate,
        ordered: Some(ordered),
        letter,
        memory,
        sizes: (1, MOST),
    }
}

const fn of_window(
    name: &'static str,
    ordered: Ordered,
    about: &'static str,
    predicted_from: &'static str,
) -> Event {
    Event {
        name,
        about,
        predicted_from,
        counter: Counter::Watch,
        ordered: Some(ordered),
        letter: 'o',
        memory: PING,
        sizes: (1, MOST_TURNS),
    }
}

const fn of(
    name: &'static str,
    letter: char,
    counter: Counter,
    sizes: (u64, u64),
    about: &'static str,
    predicted_from: &'static str,
) -> Event {
    Event {
        name,
        about,
        predicted_from,
        counter,
        ordered: None,
        letter,
        memory: WORD,
        sizes,
    }
}

/// All events that a source here can count.
pub static EVENTS: &[Event] = &[
    of_order(
        "loads",
        'a',
        Ordered::Loads,
        WORD,
        "loads of a word",
        "one load in each turn of a loop",
    ),
    of_order(
        "stores",
        'b',
        Ordered::Stores,
        WORD,
        "stores to a word",
        "one store in each turn",
    ),
    of_order(
        "locked",
        'c',
        Ordered::Locked,
        WORD,
        "locked additions, among plain ones",
        "one of each in a turn",
    ),
    of_order(
        "fp-loads",
        'd',
        Ordered::RealLoads,
        REAL,
        "loads of floating-point numbers, among others",
        "one of each in a turn",
    ),
    of_order(
        "l1d-miss",
        'e',
        Ordered::Misses(Level::First),
        LINE,
        "misses of a first level of 32 KiB",
        "lines that are loaded, each once",
    ),
    of_order(
        "l2d-miss",
        'e',
        Ordered::Misses(Level::Second),
        LINE,
        "misses of a second level of 256 KiB",
        "lines that are loaded, each once",
    ),
    of_order(
        "intervention",
        'f',
        Ordered::Interventions,
        LINE,
        "loads that find a line modified by another thread",
        "lines that it wrote before",
    ),
    of_order(
        "invalidation",
        'g',
        Ordered::Invalidations,
        PING,
        "stores that take a line from another thread's cache",
        "turns of a ping-pong of two threads",
    ),
    of_order(
        "upgrade",
        'h',
        Ordered::Upgrades,
        LINE,
        "stores to lines that this thread and another have read",
        "lines that both read before",
    ),
    of_order(
        "upgrade-alone",
        'i',
        Ordered::Upgrades,
        LINE,
        "stores to lines that this thread alone has read; the paper's protocol has no clean owner",
        "lines that it read before",
    ),
    of_order(
        "clean-write",
        'i',
        Ordered::CleanWrites,
        LINE,
        "the same, where the first reader owns the line: nothing is asked for",
        "lines that it read before",
    ),
    of(
        "accesses",
        'k',
        Counter::Watch,
        (1, MOST_WATCHED),
        "accesses of a word in a watch window, none lost",
        "one in each turn of a loop",
    ),
    of_window(
        "watched-intervention",
        Ordered::Interventions,
        "loads in a window that find the line modified by another CPU",
        "turns of a ping-pong of two threads",
    ),
    of_window(
        "watched-invalidation",
        Ordered::Invalidations,
        "stores in a window that take the line from another CPU's cache",
        "turns of a ping-pong of two threads",
    ),
    of(
        "page-touch",
        'j',
        Counter::Software,
        (1, MOST),
        "pages touched for the first time, page-faults of the kernel",
        "one page in each turn, no huge ones",
    ),
    of(
        "checkpoint",
        'l',
        Counter::Uprobes,
        (1, MOST),
        "executions of an instruction",
        "one in each turn of a loop",
    ),
    of(
        "time-share",
        'n',
        Counter::Timer,
        (LEAST_TIMED, MOST),
        "percent of the time in one of two functions",
        "3 of 10 equal turns are in it",
    ),
    of(
        "cycles",
        'm',
        Counter::Clock,
        (LEAST_CYCLES, MOST),
        "core cycles, by the time stamp counter and the measured clock",
        "additions that wait for each other, a cycle each",
    ),
];

/// What no source of this tool counts, and why. They are told, so that nobody takes them for counted.
pub static NOT_COUNTED: &[(&str, &str)] = &[
    (
        "instructions, branches",
        "the emulated source sees accesses of memory only",
    ),
    (
        "fp add, mul, div, sqrt",
        "the same; their costs are not measured",
    ),
    (
        "branch miss, icache miss, issue width",
        "a PMU would count them; their costs are not measured",
    ),
    (
        "cycles, cache misses, HITM, dTLB misses of a PMU",
        "the tool samples by PMUs and does not count by them",
    ),
];

/// The event of a name.
pub fn named(name: &str) -> Option<&'static Event> {
    EVENTS.iter().find(|event| event.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_names_of_one_event_and_orders_are_the_emulators() {
        for event in EVENTS {
            let of_name = EVENTS.iter().filter(|other| other.name == event.name);
            assert_eq!(of_name.count(), 1, "{}", event.name);
            let has_order = matches!(event.counter, Counter::Emulate | Counter::Watch);
            assert!(has_order || event.ordered.is_none(), "{}", event.name);
            let is_emulated = event.counter == Counter::Emulate;
            assert!(!is_emulated || event.ordered.is_some(), "{}", event.name);
            assert!(event.sizes.0 <= event.sizes.1 && event.sizes.1 <= MOST);
        }
        assert_eq!(named("loads").map(|event| event.letter), Some('a'));
        assert!(named("nothing").is_none());
    }
}
