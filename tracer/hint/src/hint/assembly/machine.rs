//! A built program held against the hints: which of the loads that they mean have a prefetch.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{
    callers::same_callers,
    choose::{Candidate, How, Load, Refusal, choose},
    compared::{Compared, compared},
    instruction::{Kept, Processor},
    operand::Operand,
    path::normal,
    placing::{Placing, placing},
    sources::{Built, Same},
    wanted::{Place, WantedLoads},
    writes::registers,
};
use crate::{
    decode::{Before, CodeOperand, CodeRead, FunctionCode, Spot, reads},
    hint::{
        file::{CallPlace, HintFile, Prefetch},
        repeated::Repeated,
    },
};

/// Source lines of hints, to ask about the instructions of one program.
#[derive(Debug)]
pub struct Lines {
    wanted: WantedLoads,
    built: Vec<Built>,
    /// Files of the program that are of the hints: their numbers there.
    files: HashMap<String, Vec<(usize, Same)>>,
    /// By hint.
    repeated: Vec<Option<Repeated>>,
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
    /// Where it is in a loop that a prefetch would be repeated in.
    pub repeated: Option<Standing>,
}

/// What became of the prefetch of a load that would be repeated right in front of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It stands before the loop.
    BeforeLoop,
    /// It belongs before the loop, and is not there.
    NotBeforeLoop,
    /// There is no place for it, and none is wanted.
    LeftOut(Repeated),
}

/// A function of the program.
#[derive(Debug)]
pub struct MachineFunction {
    /// Its code.
    pub code: FunctionCode,
    /// What each of its instructions prefetches for ownership.
    pub fetches: Vec<Option<CodeOperand>>,
}

impl CheckedLoad {
    /// It has its prefetch.
    pub fn is_fetched(&self) -> bool {
        self.before == Before::FetchesOwn || self.repeated == Some(Standing::BeforeLoop)
    }

    fn is_left_out(&self) -> bool {
        matches!(self.repeated, Some(Standing::LeftOut(_)))
    }
}

impl Checked {
    /// All loads that the hint means have their prefetch, or are better without, and some have it.
    pub fn is_placed(&self) -> bool {
        let done = |load: &CheckedLoad| load.is_fetched() || load.is_left_out();
        self.loads
            .as_ref()
            .is_ok_and(|loads| loads.iter().all(done) && loads.iter().any(CheckedLoad::is_fetched))
    }

    /// It means loads, and all of them are better without a prefetch.
    pub fn is_left_out(&self) -> bool {
        let loads = self.loads.as_ref();
        loads.is_ok_and(|loads| !loads.is_empty() && loads.iter().all(CheckedLoad::is_left_out))
    }
}

impl Lines {
    /// Those of a hints file in a program with these source files and their digests.
    pub fn new(hints: &HintFile, files: &[(String, Option<String>)], place: &Place<'_>) -> Lines {
        let wanted = WantedLoads::new(hints, Processor::X86, place.maps);
        let built = |(path, md5): &(String, Option<String>)| Built {
            path: normal(path),
            md5: md5.clone(),
            at: vec![normal(path)],
        };
        let built: Vec<Built> = files.iter().map(built).collect();
        let named = files.iter().zip(&built);
        let files = named.filter_map(|((path, _), file)| {
            let of = wanted.sources.of(file, &built, place.tree);
            (!of.is_empty()).then(|| (path.clone(), of))
        });
        let files = files.collect();
        Lines {
            wanted,
            built,
            files,
            repeated: (hints.hints.iter())
                .map(|hint| Repeated::of(hint).filter(|_| !place.everywhere))
                .collect(),
        }
    }

    /// How a file of the program is one of the hints'.
    fn same(&self, file: &str, hinted: usize) -> Option<Same> {
        let mut of = self.files.get(file)?.iter();
        of.find(|(number, _)| *number == hinted)
            .map(|(_, same)| *same)
    }

    /// Whether a hint is of this line.
    pub fn holds(&self, file: &str, line: u32) -> bool {
        self.files.contains_key(file)
            && self.wanted.all.iter().any(|wanted| {
                wanted.hint.is_some()
                    && wanted.line == line
                    && self.same(file, wanted.file).is_some()
            })
    }

    /// Hints whose source file is none of these: code of another module than the one with these files.
    pub fn elsewhere(&self, files: &BTreeSet<String>) -> BTreeSet<usize> {
        let is_here = |wanted: &super::wanted::Wanted| {
            files
                .iter()
                .any(|file| self.same(file, wanted.file).is_some())
        };
        (self.wanted.all.iter())
            .filter(|wanted| !is_here(wanted))
            .filter_map(|wanted| wanted.hint)
            .collect()
    }

    /// Files with hints that are none of the program's, beside the program's; those with namesakes there first.
    pub fn not_here(&self) -> Vec<Compared> {
        let found: HashSet<usize> = self
            .files
            .values()
            .flatten()
            .map(|(number, _)| *number)
            .collect();
        compared(&self.wanted.sources, &self.built, &found)
    }

    /// Source files of the program that may be others than the hints', and why; a line each.
    pub fn doubts(&self) -> BTreeSet<String> {
        let all = self
            .files
            .iter()
            .flat_map(|(path, of)| of.iter().map(move |(_, same)| (path, same)));
        all.filter_map(|(path, same)| Some(format!("{path}: {}", same.doubt()?)))
            .collect()
    }

    /// Holds the reading instructions of a program at these lines against the hints, in the hints' order. `function` gives
    /// the function at an address.
    pub fn check(
        &self,
        reads: &[PlacedRead],
        function: &dyn Fn(u64) -> Option<MachineFunction>,
    ) -> Vec<Checked> {
        let candidates: Vec<Candidate> = reads.iter().map(candidate).collect();
        let hinted = self
            .wanted
            .all
            .iter()
            .filter_map(|wanted| Some((wanted.hint?, wanted)));
        hinted
            .map(|(hint, wanted)| {
                let there = reads.iter().zip(&candidates).enumerate();
                let mut sure = true;
                let there: Vec<(usize, &Candidate)> = there
                    .filter(|(_, (read, _))| {
                        read.line == wanted.line
                            && same_callers(&wanted.path, &wanted.inlined_at, &read.inlined_at)
                    })
                    .filter_map(|(index, (read, candidate))| {
                        sure &= self.same(&read.file, wanted.file)?.doubt().is_none();
                        Some((index, candidate))
                    })
                    .collect();
                let mut left = self.wanted.left_beside(wanted);
                left.retain(|left| {
                    same_callers(&wanted.path, &wanted.inlined_at, &left.inlined_at)
                });
                let chosen = choose(wanted, &left, &there, sure);
                let loads = chosen.map(|chosen| {
                    let chosen = chosen.into_iter();
                    let loads = chosen.filter_map(|(index, how)| {
                        let (read, candidate) = (&reads[index].read, &candidates[index]);
                        let repeated = self.repeated[hint];
                        let standing = repeated.and_then(|repeated| {
                            standing(&function(read.address)?, read, repeated)
                        });
                        checked(read, candidate, how, standing)
                    });
                    loads.collect()
                });
                Checked { hint, loads }
            })
            .collect()
    }
}

fn checked(
    read: &CodeRead,
    candidate: &Candidate,
    how: How,
    standing: Option<Standing>,
) -> Option<CheckedLoad> {
    // Straight in front of the loop, it looks as if it were in front of the load.
    let before = match standing {
        Some(Standing::BeforeLoop) => Before::Nothing,
        _ => read.before.clone(),
    };
    Some(CheckedLoad {
        address: read.address,
        operand: candidate.load.as_ref().ok()?.text.clone(),
        how,
        repeated: standing.filter(|_| before != Before::FetchesOwn),
        before,
    })
}

/// What became of the prefetch of a load that would be repeated; `None` where it should be in front.
fn standing(function: &MachineFunction, read: &CodeRead, repeated: Repeated) -> Option<Standing> {
    match placing_of(&function.code, read, repeated) {
        Placing::InFront => None,
        Placing::LeftOut => Some(Standing::LeftOut(repeated)),
        Placing::BeforeLoop(spots) => {
            let is_there = |spot: &Spot| {
                let behind = match *spot {
                    Spot::Before(at) => at,
                    Spot::Behind(at) => at + 1,
                };
                let before = function.fetches.get(..behind).unwrap_or_default().iter();
                let mut before = before.rev().map_while(Option::as_ref);
                before.any(|fetched| *fetched == read.operand)
            };
            Some(if spots.iter().all(is_there) {
                Standing::BeforeLoop
            } else {
                Standing::NotBeforeLoop
            })
        }
    }
}

fn placing_of(code: &FunctionCode, read: &CodeRead, repeated: Repeated) -> Placing<Spot> {
    let of_operand = registers(read.operand.base.iter().chain(&read.operand.index));
    placing(code.around(read.address), of_operand, repeated)
}

/// Where the prefetch of a load goes when its program is built again, by the machine code of its function, which begins at
/// `start`.
pub fn prefetch_of(code: &[u8], start: u64, address: u64, repeated: Option<Repeated>) -> Prefetch {
    let Some(repeated) = repeated else {
        return Prefetch::InFront;
    };
    let reads = reads(code, start);
    let Some(read) = reads.iter().find(|read| read.address == address) else {
        return Prefetch::InFront;
    };
    match placing_of(&FunctionCode::decode(start, code), read, repeated) {
        Placing::InFront => Prefetch::InFront,
        Placing::BeforeLoop(_) => Prefetch::BeforeLoop,
        Placing::LeftOut => Prefetch::LeftOut,
    }
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
