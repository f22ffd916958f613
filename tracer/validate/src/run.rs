//! Sizes, runs, and the class of what comes out.

use std::path::PathBuf;

use cohtrace_measure::{
    binomial::{likely, most_outside},
    count_error::{ErrorClass, Size, error_class},
};

use crate::{
    NotCounted,
    asked::Asked,
    costs::{self, Charge, Charges, Cost},
    emulated::Emulation,
    events::{Counter, Event, SHARE_PERCENT},
    kernel,
    observed::Observer,
    pmu,
    shares::{Samples, Timed},
    watched::Windows,
};

/// What to validate.
#[derive(Clone, Debug)]
pub struct Plan {
    /// In this order.
    pub events: Vec<&'static Event>,
    /// Sizes; each event takes those that it can.
    pub sizes: Vec<u64>,
    /// Processes for each size.
    pub runs: u32,
    /// What a program is asked for that shall do `n`: `n`. Tests of the validation itself ask for something else, and see whether
    /// that is told.
    pub asked_for: fn(u64) -> u64,
}

/// What was counted in one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counted {
    /// Events; of shares, percent.
    pub count: f64,
    /// What the counter lost, by its own words.
    pub lost: u64,
}

/// One run's count, and of what is sampled whether it is within what chance allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// The count.
    pub counted: Counted,
    /// Of samples: inside of the binomial 99 % bound.
    pub is_likely: Option<bool>,
}

/// Counts events.
pub trait Counts {
    /// Asks a new process for `n` of an event and counts. `stopped`: the user wants no more.
    fn count(
        &mut self,
        event: &Event,
        n: u64,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Run, NotCounted>;
}

/// Runs of one size.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeRuns {
    /// What was asked for.
    pub n: u64,
    /// Predicted, and counted in each run.
    pub size: Size,
    /// Of what is sampled, runs inside of the binomial 99 % bound.
    pub likely: Option<u64>,
}

/// An event with all its runs.
#[derive(Clone, Debug)]
pub struct Row {
    /// The event.
    pub event: &'static Event,
    /// In order of their size.
    pub sizes: Vec<SizeRuns>,
    /// How the counts err; `None` where it was not counted, or not to the end.
    pub class: Option<ErrorClass>,
    /// What the counter lost in all runs, by its own words.
    pub lost: u64,
    /// Why it was not counted, or not to the end.
    pub missing: Option<String>,
    /// That is since the machine has not what counts it.
    pub absent: bool,
}

impl Row {
    /// Whether the counts are as predicted, but for a constant.
    pub fn is_right(&self) -> bool {
        let is_right = matches!(self.class, Some(ErrorClass::None | ErrorClass::Bias(_)));
        is_right && self.lost == 0
    }
}

/// Where a validation is.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// What is counted.
    pub event: &'static Event,
    /// Its size.
    pub n: u64,
    /// The run of that size, from 1.
    pub run: u32,
    /// Part of the work that is done, 0 to 1: a guess, since runs differ.
    pub done: f64,
}

/// Validates what is planned. `tell` is called before each run.
pub fn run(
    plan: &Plan,
    counts: &mut dyn Counts,
    stopped: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(Step),
) -> Vec<Row> {
    let sizes = |event: &Event| -> Vec<u64> {
        let mut sizes: Vec<u64> = (plan.sizes.iter().copied())
            .filter(|n| (event.sizes.0..=event.sizes.1).contains(n))
            .collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    };
    let work = |event: &Event| sizes(event).into_iter().map(weight).sum::<f64>();
    let all: f64 = plan.events.iter().map(|event| work(event)).sum();
    let all = all * f64::from(plan.runs);
    let mut done = 0.0;
    let mut rows = Vec::new();
    for &event in &plan.events {
        let mut row = Row {
            event,
            sizes: Vec::new(),
            class: None,
            lost: 0,
            missing: None,
            absent: false,
        };
        let sizes = sizes(event);
        if sizes.is_empty() {
            let (least, most) = event.sizes;
            row.missing = Some(format!("it has no size but those from {least} to {most}"));
        }
        'sizes: for n in sizes {
            let mut runs = SizeRuns {
                n,
                size: Size {
                    predicted: predicted(event, n),
                    counted: Vec::new(),
                },
                likely: None,
            };
            for number in 1..=plan.runs {
                tell(Step {
                    event,
                    n,
                    run: number,
                    done: done / all,
                });
                let counted = if stopped() {
                    Err(NotCounted::Stopped)
                } else {
                    counts.count(event, (plan.asked_for)(n), stopped)
                };
                match counted {
                    Ok(run) => {
                        runs.size.counted.push(run.counted.count);
                        row.lost += run.counted.lost;
                        if let Some(is_likely) = run.is_likely {
                            *runs.likely.get_or_insert(0) += u64::from(is_likely);
                        }
                    }
                    Err(why) => {
                        // Ctrl-C ends the program, too, and that is no fault of it.
                        let why = if stopped() { NotCounted::Stopped } else { why };
                        row.absent = why.is_absent();
                        row.missing = Some(why.to_string());
                        row.sizes.extend((number > 1).then_some(runs));
                        break 'sizes;
                    }
                }
                done += weight(n);
            }
            row.sizes.push(runs);
        }
        if row.missing.is_none() {
            row.class = class(&row.sizes);
        }
        rows.push(row);
    }
    rows
}

/// How long a run takes, in no unit: a start, and so many events.
fn weight(n: u64) -> f64 {
    1.0 + n as f64 / 200_000.0
}

fn predicted(event: &Event, n: u64) -> f64 {
    match event.counter {
        Counter::Timer => SHARE_PERCENT,
        _ => n as f64 * event.each,
    }
}

/// The class of the counts. Of samples it is none where no more runs than by chance are outside of the bound.
fn class(sizes: &[SizeRuns]) -> Option<ErrorClass> {
    if sizes.iter().any(|runs| runs.likely.is_some()) {
        let runs: u64 = sizes
            .iter()
            .map(|runs| runs.size.counted.len() as u64)
            .sum();
        let likely: u64 = sizes.iter().filter_map(|runs| runs.likely).sum();
        let is_chance = runs - likely <= most_outside(runs);
        return Some(if is_chance {
            ErrorClass::None
        } else {
            ErrorClass::Unknown
        });
    }
    let sizes: Vec<Size> = sizes.iter().map(|runs| runs.size.clone()).collect();
    error_class(&sizes)
}

/// The sources of this machine. What they take is opened when the first event needs it.
pub struct Machinery {
    asked: Asked,
    emulation: Emulation,
    windows: Windows,
    timed: Timed,
    observer: Observer,
}

impl Machinery {
    /// With the emulator at `qemu`, or else where the emulated source finds it.
    pub fn new(qemu: Option<PathBuf>) -> Result<Machinery, NotCounted> {
        let observer = Observer::new();
        Ok(Machinery {
            asked: Asked::lay_down()?,
            emulation: Emulation::new(observer.clone(), qemu),
            windows: Windows(observer.clone()),
            timed: Timed(observer.clone()),
            observer,
        })
    }
}

impl Counts for Machinery {
    fn count(
        &mut self,
        event: &Event,
        n: u64,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Run, NotCounted> {
        let asked = &self.asked;
        let counted = match (event.counter, event.ordered) {
            (Counter::Emulate, Some(ordered)) => {
                self.emulation.count(asked, event, ordered, n, stopped)
            }
            // The table has none; its test says so.
            (Counter::Emulate, None) => Err(NotCounted::NoSymbol(event.name.to_owned())),
            (Counter::Watch, _) => self.windows.count(asked, event, n, stopped),
            (Counter::Pairs, _) => self.windows.count_pairs(asked, event, n, stopped),
            (Counter::Pmu, _) => pmu::count(self.observer.machine(), asked, event, n),
            (Counter::Software, _) => kernel::page_faults(asked, event, n),
            (Counter::Uprobes, _) => kernel::executions(asked, event, n),
            (Counter::Timer, _) => {
                return self.timed.sample(asked, event, n, stopped).map(share);
            }
            #[cfg(target_arch = "x86_64")]
            (Counter::Clock, _) => crate::cycles::count(self.observer.machine(), asked, event, n),
            #[cfg(not(target_arch = "x86_64"))]
            (Counter::Clock, _) => Err(NotCounted::NoProgram),
        }?;
        Ok(Run {
            counted,
            is_likely: None,
        })
    }
}

impl Charges for Machinery {
    fn charge(&mut self, cost: &Cost) -> Result<Charge, NotCounted> {
        #[cfg(target_arch = "x86_64")]
        return costs::charge(self.observer.machine(), &self.asked, cost);
        #[cfg(not(target_arch = "x86_64"))]
        Err(NotCounted::NoProgram)
    }
}

fn share(samples: Samples) -> Run {
    let Samples { inside, all } = samples;
    Run {
        counted: Counted {
            count: inside as f64 * 100.0 / (all as f64).max(1.0),
            lost: 0,
        },
        is_likely: Some(all > 0 && likely(all, SHARE_PERCENT / 100.0).contains(&inside)),
    }
}

#[cfg(test)]
mod tests;
