//! The table of events, as data.

use super::{Counter, Event, Executions, Level, Ordered};
use crate::decode::RealOperation;
use crate::sys::perf_event::counting::HardwareEvent;

/// Lines that the program has.
const LINES: u64 = 1_000_000;
/// Most that sizes are.
pub const MOST: u64 = 1_000_000;
/// Data breakpoints cost some 10 us each.
const MOST_WATCHED: u64 = 100_000;
/// Pages of the memory of that size.
const MOST_PAGES: u64 = 10_000;
/// Pages that loads find in no buffer of translations that is not large.
const MOST_OLD_PAGES: u64 = 8_192;
/// Lines that are loaded in no order, of 2^19.
const MOST_LINES: u64 = 500_000;
/// Turns of a ping-pong take two such accesses, and two threads that run at the same time.
const MOST_TURNS: u64 = 1_000;
/// Fewer rounds are over before there are samples of them.
const LEAST_TIMED: u64 = 100_000;
/// Time stamp counters step by up to some 40 cycles, which must be below a percent.
const LEAST_CYCLES: u64 = 10_000;
/// Of fewer coin tosses, half are not within some percent heads.
const LEAST_TOSSED: u64 = 100_000;
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
        hardware: None,
        letter,
        memory,
        each: 1.0,
        sizes: (1, MOST),
    }
}

const fn of_reals(name: &'static str, operation: RealOperation, about: &'static str) -> Event {
    of_order(
        name,
        'v',
        Ordered::Executions(Executions::Reals(operation)),
        WORD,
        about,
        "one in each turn of a loop, among others",
    )
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
        hardware: None,
        letter: 'o',
        memory: PING,
        each: 1.0,
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
        hardware: None,
        letter,
        memory: WORD,
        each: 1.0,
        sizes,
    }
}

const fn of_pmu(
    name: &'static str,
    letter: char,
    hardware: HardwareEvent,
    each: f64,
    sizes: (u64, u64),
    about: &'static str,
    predicted_from: &'static str,
) -> Event {
    Event {
        hardware: Some(hardware),
        each,
        ..of(name, letter, Counter::Pmu, sizes, about, predicted_from)
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
    Event {
        each: 3.0,
        ..of_order(
            "instructions",
            'a',
            Ordered::Executions(Executions::All),
            WORD,
            "executions of instructions",
            "three in each turn of a loop",
        )
    },
    of_order(
        "branches",
        'a',
        Ordered::Executions(Executions::Branches),
        WORD,
        "executions of branches",
        "one in each turn of a loop",
    ),
    of_reals("fp-add", RealOperation::Add, "floating-point additions"),
    of_reals(
        "fp-mul",
        RealOperation::Multiply,
        "floating-point multiplications",
    ),
    of_reals("fp-div", RealOperation::Divide, "floating-point divisions"),
    of_reals(
        "fp-sqrt",
        RealOperation::Root,
        "floating-point square roots",
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
    Event {
        memory: PING,
        ..of(
            "upgrade",
            'p',
            Counter::Pairs,
            (1, MOST_TURNS),
            "the same in a window, by its read-then-write pairs",
            "rounds in which both threads read and one then writes",
        )
    },
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
    Event {
        sizes: (1, MOST_PAGES),
        ..of_order(
            "page-touch",
            'q',
            Ordered::Pages,
            LINE,
            "pages touched for the first time, of the order of accesses",
            "one page in each turn, which two instructions touch",
        )
    },
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
    of_pmu(
        "cycles",
        'r',
        HardwareEvent::Cycles,
        1.0,
        (LEAST_CYCLES, MOST),
        "core cycles",
        "additions that wait for each other, a cycle each",
    ),
    of_pmu(
        "instructions",
        'a',
        HardwareEvent::Instructions,
        3.0,
        (1, MOST),
        "instructions in user mode",
        "three in each turn of a loop",
    ),
    of_pmu(
        "branches",
        'a',
        HardwareEvent::Branches,
        1.0,
        (1, MOST),
        "branches in user mode",
        "one in each turn",
    ),
    of_pmu(
        "branch-miss",
        'u',
        HardwareEvent::BranchMisses,
        0.5,
        (LEAST_TOSSED, MOST),
        "branches that were not predicted",
        "half of those by a random bit",
    ),
    of_pmu(
        "l1d-miss",
        's',
        HardwareEvent::DataReadMisses,
        1.0,
        (1, MOST_LINES),
        "loads that miss the first level",
        "lines that are loaded, each once, in no order",
    ),
    of_pmu(
        "dtlb-miss",
        't',
        HardwareEvent::TranslationReadMisses,
        1.0,
        (1, MOST_OLD_PAGES),
        "loads that find no translation of their page",
        "pages that are loaded from, each once, in no order",
    ),
];

/// What no source of this tool counts, and why. They are told, so that nobody takes them for counted.
pub static NOT_COUNTED: &[(&str, &str)] = &[
    (
        "branch and instruction cache misses, issue width",
        "without a PMU they are timed, not counted",
    ),
    (
        "HITM of a PMU",
        "each processor has another event for it; the tool samples it and does not count it",
    ),
];
