//! A built program held against the hints: which of the loads that they mean have a prefetch.

use std::collections::BTreeSet;

use super::{
    callers::same_callers,
    choose::{Candidate, How, Load, Refusal, choose},
    instruction::{Kept, Processor},
    operand::Operand,
    wanted::WantedLoads,
};
use crate::{
    decode::{Before, CodeRead},
    hint::file::{CallPlace, HintFile},
};

/// Source lines of hints, to ask about instructions.
#[derive(Debug)]
pub struct Lines {
    wanted: WantedLoads,
}

/// An instruction that reads memory, with its place in the source.
#[derive(Debug, Clone)]
pub struct PlacedRead {
    /// The instruction.
    pub read: CodeRead,
    /// Number of its function.
    pub function: u32,
    /// Number of the stretch of code of the very same place that it is in.
    pub run: u32,
    /// Source file.
    pub file: String,
    /// Line.
    pub line: u32,
    /// Column.
    pub column: Option<u32>,
    /// Of inlined code, the calls that were inlined, innermost first.
    pub inlined_at: Vec<CallPlace>,
}

/// What was found for a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Index of the hint in its file.
    pub hint: usize,
    /// The loads that it means, and what stands in front of each; or why there is none.
    pub loads: Result<Vec<CheckedLoad>, Refusal>,
}

/// A load that a hint means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedLoad {
    /// Address in the file.
    pub address: u64,
    /// Its operand.
    pub operand: String,
    /// How it was recognised.
    pub how: How,
    /// What stands right in front of it.
    pub before: Before,
}

impl Checked {
    /// All loads that the hint means have their prefetch, and there are some.
    pub fn is_placed(&self) -> bool {
        let all =
            |loads: &Vec<CheckedLoad>| loads.iter().all(|load| load.before == Before::FetchesOwn);
        self.loads
            .as_ref()
            .is_ok_and(|loads| !loads.is_empty() && all(loads))
    }
}

impl Lines {
    /// Those of a hints file.
    pub fn new(hints: &HintFile) -> Lines {
        Lines {
            wanted: WantedLoads::new(hints, Processor::X86),
        }
    }

    /// Whether a hint is of this line.
    pub fn holds(&self, file: &str, line: u32) -> bool {
        let is = |wanted: &&super::wanted::Wanted| wanted.hint.is_some() && wanted.line == line;
        self.wanted
            .all
            .iter()
            .filter(is)
            .any(|wanted| super::files::same_file(&wanted.file, file))
    }

    /// Hints whose source file is none of these: code of another module than the one with these files.
    pub fn elsewhere(&self, files: &BTreeSet<String>) -> BTreeSet<usize> {
        let is_here = |wanted: &super::wanted::Wanted| {
            (files.iter()).any(|file| super::files::same_file(&wanted.file, file))
        };
        (self.wanted.all.iter())
            .filter(|wanted| !is_here(wanted))
            .filter_map(|wanted| wanted.hint)
            .collect()
    }

    /// Holds the reading instructions of a program at these lines against the hints, in the hints' order.
    pub fn check(&self, reads: &[PlacedRead]) -> Vec<Checked> {
        let candidates: Vec<Candidate> = reads.iter().map(candidate).collect();
        let hinted = self
            .wanted
            .all
            .iter()
            .filter_map(|wanted| Some((wanted.hint?, wanted)));
        hinted
            .map(|(hint, wanted)| {
                let there = reads.iter().zip(&candidates).enumerate();
                let there: Vec<(usize, &Candidate)> = there
                    .filter(|(_, (read, _))| {
                        read.line == wanted.line
                            && super::files::same_file(&wanted.file, &read.file)
                            && same_callers(&wanted.file, &wanted.inlined_at, &read.inlined_at)
                    })
                    .map(|(index, (_, candidate))| (index, candidate))
                    .collect();
                let mut left = self.wanted.left_beside(wanted);
                left.retain(|left| {
                    same_callers(&wanted.file, &wanted.inlined_at, &left.inlined_at)
                });
                let chosen = choose(wanted, &left, &there);
                let loads = chosen.map(|chosen| {
                    chosen
                        .into_iter()
                        .filter_map(|(index, how)| checked(reads.get(index)?, how))
                        .collect()
                });
                Checked { hint, loads }
            })
            .collect()
    }
}

fn checked(read: &PlacedRead, how: How) -> Option<CheckedLoad> {
    let load = candidate(read).load.ok()?;
    Some(CheckedLoad {
        address: read.read.address,
        operand: load.text,
        how,
        before: read.read.before.clone(),
    })
}

fn candidate(read: &PlacedRead) -> Candidate {
    let code = &read.read.operand;
    let relative = code.base.as_deref() == Some("rip");
    let operand = Operand {
        symbol: String::new(),
        displacement: if relative { 0 } else { code.displacement },
        base: code.base.clone(),
        index: code.index.clone(),
        scale: code.scale,
        unnamed: relative,
    };
    let load = Load {
        text: if relative {
            format!("{:#x}(%rip)", code.displacement)
        } else {
            operand.to_string()
        },
        operand,
        width: read.read.size,
    };
    Candidate {
        function: read.function,
        run: read.run,
        column: read.column,
        load: if read.read.plain {
            Ok(load)
        } else {
            Err(Kept::Unknown)
        },
    }
}
