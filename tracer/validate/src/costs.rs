//! What the core charges for what nothing here counts: branches that were predicted wrongly, code beyond the instruction
//! cache, additions at once, operations on floating-point numbers. Loops are timed by the clock that `cycles` are counted by.
//!
//! There is no prediction to hold a cost against: that runs repeat it is all that can be asked. The loops are after Aguilera
//! 2005, sections 3 and 4.

use cohtrace_measure::count_error::agree;

use crate::{
    NotCounted,
    asked::Asked,
    machine::{CacheKind, Machine},
};

/// Turns of a loop that take some tenths of a millisecond.
const TURNS: u64 = 10_000;
/// The same of code as large as a cache.
const TURNS_OF_CODE: u64 = 2_000;
/// Operations of a turn, and groups of additions.
const REALS: f64 = 8.0;
const GROUPS: f64 = 25.0;
/// Bytes of a line of code.
const LINE: f64 = 64.0;
/// The letter of all costs.
const LETTER: char = 'z';

/// What a loop is made of, besides its number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loop {
    /// So many of what is charged for in a turn.
    Turns(f64),
    /// Straight code, of so many instruction caches.
    Code(f64),
}

/// A cost that can be measured.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// As in `--event`.
    pub name: &'static str,
    /// What is charged for.
    pub about: &'static str,
    /// Its number in the program.
    number: u64,
    what: Loop,
}

const fn of(name: &'static str, number: u64, each: f64, about: &'static str) -> Cost {
    Cost {
        name,
        about,
        number,
        what: Loop::Turns(each),
    }
}

const fn of_code(name: &'static str, caches: f64, about: &'static str) -> Cost {
    Cost {
        name,
        about,
        number: 2,
        what: Loop::Code(caches),
    }
}

const PREDICTED: &str = "branch-predicted";
const RANDOM: &str = "branch-random";
const HALF: &str = "code-half-l1i";
const TWICE: &str = "code-twice-l1i";

/// All costs.
pub static COSTS: &[Cost] = &[
    of(PREDICTED, 0, 1.0, "a turn with a branch that never jumps"),
    of(RANDOM, 1, 1.0, "the same by a random bit"),
    of_code(HALF, 0.5, "64 bytes of code of half the instruction cache"),
    of_code(TWICE, 2.0, "the same of twice the instruction cache"),
    of(
        "adds-1",
        3,
        GROUPS,
        "an addition that waits for the last one",
    ),
    of("adds-2", 4, GROUPS, "it, and another beside it"),
    of("adds-3", 5, GROUPS, "it, and two beside it"),
    of("adds-4", 6, GROUPS, "it, and three"),
    of("adds-5", 7, GROUPS, "it, and four"),
    of("adds-6", 8, GROUPS, "it, and five"),
    of("adds-7", 9, GROUPS, "it, and six"),
    of("adds-8", 10, GROUPS, "it, and seven"),
    of("fp-add", 11, REALS, "an addition of double precision"),
    of("fp-mul", 12, REALS, "a multiplication"),
    of("fp-div", 13, REALS, "a division"),
    of("fp-sqrt", 14, REALS, "a square root"),
];

/// What one run charged for one of what is charged for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Charge {
    /// Core cycles.
    pub cycles: f64,
    /// Nanoseconds.
    pub ns: f64,
}

/// Measures costs.
pub trait Charges {
    /// One run.
    ///
    /// # Errors
    /// The program cannot be run, or the machine does not tell what a loop needs to know of it.
    fn charge(&mut self, cost: &Cost) -> Result<Charge, NotCounted>;
}

/// A cost with all its runs.
#[derive(Clone, Debug)]
pub struct CostRow {
    /// The cost.
    pub cost: &'static Cost,
    /// Of each run.
    pub charges: Vec<Charge>,
    /// Why it was not measured, or not to the end.
    pub missing: Option<String>,
    /// That is since the machine does not have, or tell, what it takes.
    pub absent: bool,
}

impl CostRow {
    /// The middle of the runs' cycles, and of their nanoseconds; `None` of no run.
    pub fn median(&self) -> Option<Charge> {
        self.of_sorted(|sorted| sorted.get(sorted.len() / 2).copied())
    }

    /// The least and the most of both; `None` of no run.
    pub fn range(&self) -> Option<(Charge, Charge)> {
        let least = self.of_sorted(|sorted| sorted.first().copied())?;
        let most = self.of_sorted(|sorted| sorted.last().copied())?;
        Some((least, most))
    }

    /// Whether nine of ten runs are within 5 % of the middle one; `None` of fewer than two runs.
    pub fn repeats(&self) -> Option<bool> {
        let cycles: Vec<f64> = self.charges.iter().map(|charge| charge.cycles).collect();
        (cycles.len() > 1).then(|| agree(&cycles))
    }

    fn of_sorted(&self, pick: fn(&[f64]) -> Option<f64>) -> Option<Charge> {
        let of = |quantity: fn(&Charge) -> f64| {
            let mut sorted: Vec<f64> = self.charges.iter().map(quantity).collect();
            sorted.sort_by(f64::total_cmp);
            pick(&sorted)
        };
        Some(Charge {
            cycles: of(|charge| charge.cycles)?,
            ns: of(|charge| charge.ns)?,
        })
    }
}

/// Where it is.
#[derive(Clone, Copy, Debug)]
pub struct CostStep {
    /// What is measured.
    pub cost: &'static Cost,
    /// The run, from 1.
    pub run: u32,
}

/// Measures these costs so many times, by turns: what changes meanwhile changes all alike. `tell` is called before each run.
pub fn measure(
    costs: &[&'static Cost],
    runs: u32,
    charges: &mut dyn Charges,
    stopped: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(CostStep),
) -> Vec<CostRow> {
    let row = |cost: &&'static Cost| CostRow {
        cost,
        charges: Vec::new(),
        missing: None,
        absent: false,
    };
    let mut rows: Vec<CostRow> = costs.iter().map(row).collect();
    for run in 1..=runs {
        for row in rows.iter_mut().filter(|row| row.missing.is_none()) {
            tell(CostStep {
                cost: row.cost,
                run,
            });
            let charged = if stopped() {
                Err(NotCounted::Stopped)
            } else {
                charges.charge(row.cost)
            };
            match charged {
                Ok(charge) => row.charges.push(charge),
                Err(why) => {
                    // Ctrl-C ends the program, too, and that is no fault of it.
                    let why = if stopped() { NotCounted::Stopped } else { why };
                    row.absent = why.is_absent();
                    row.missing = Some(why.to_string());
                }
            }
        }
    }
    rows
}

/// What follows from the middle runs of several costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Derived {
    /// Core cycles of a branch that was predicted wrongly: half of the random ones were.
    pub branch_miss_cycles: Option<f64>,
    /// Core cycles more for 64 bytes of code that the instruction cache did not have.
    pub code_line_cycles: Option<f64>,
    /// Additions in a cycle, the most of all groups.
    pub issue_width: Option<f64>,
}

impl Derived {
    /// Of these costs.
    pub fn of(rows: &[CostRow]) -> Derived {
        let cycles = |name: &str| {
            let row = rows.iter().find(|row| row.cost.name == name)?;
            Some(row.median()?.cycles)
        };
        let more = |much: &str, little: &str| Some(cycles(much)? - cycles(little)?);
        let widths = (1..=8).filter_map(|adds| {
            let took = cycles(&format!("adds-{adds}"))?;
            (took > 0.0).then(|| f64::from(adds) / took)
        });
        Derived {
            branch_miss_cycles: more(RANDOM, PREDICTED).map(|half| 2.0 * half),
            code_line_cycles: more(TWICE, HALF),
            issue_width: widths.max_by(f64::total_cmp),
        }
    }
}

/// One run of a cost on this machine.
#[cfg(target_arch = "x86_64")]
pub(crate) fn charge(machine: &Machine, asked: &Asked, cost: &Cost) -> Result<Charge, NotCounted> {
    let (turns, each, numbers) = match cost.what {
        Loop::Turns(each) => (TURNS, each, vec![cost.number]),
        Loop::Code(caches) => {
            let bytes = instruction_cache(machine)? as f64 * caches;
            (TURNS_OF_CODE, bytes / LINE, vec![cost.number, bytes as u64])
        }
    };
    let start = || asked.start_with(LETTER, turns, &numbers);
    let timed = crate::cycles::time(machine, start)?;
    let all = turns as f64 * each;
    Ok(Charge {
        cycles: timed.cycles() / all,
        ns: timed.ns() / all,
    })
}

/// Bytes of the first-level instruction cache.
fn instruction_cache(machine: &Machine) -> Result<u64, NotCounted> {
    let mut caches = machine.caches.iter();
    let first = caches.find(|cache| cache.level == 1 && cache.kind == CacheKind::Instruction);
    let bytes = first.and_then(|cache| cache.size_bytes);
    bytes.ok_or(NotCounted::NoInstructionCache)
}

#[cfg(test)]
mod tests;
