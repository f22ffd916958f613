//! The functions of a unit of assembly text, for where a prefetch in a loop belongs.

use std::collections::{HashMap, HashSet};

use super::{
    instruction::Processor,
    line::{Line, Reader},
    operand::Operand,
    placing::{Placing, placing},
    writes::{ALL, registers, writes},
};
use crate::{
    decode::{Goes, Spot, Told, around_told},
    hint::repeated::Repeated,
};

/// An instruction, or what cannot be told apart from one.
struct Instruction<'t> {
    /// Line of the text, from 0.
    at: usize,
    /// Without its comment; several of them where they were written by hand.
    statement: &'t str,
    by_hand: bool,
}

/// The functions of a unit. Of x86 only: of another processor it has none.
pub(super) struct Functions<'t> {
    all: Vec<Instruction<'t>>,
    /// Where each function starts, by the number of its first instruction.
    starts: Vec<usize>,
    /// What stands behind each local label.
    labels: HashMap<&'t str, usize>,
    /// Local labels that something else than a jump of their own function names.
    named: HashSet<&'t str>,
}

impl<'t> Functions<'t> {
    pub(super) fn read(text: &'t str, processor: Processor) -> Functions<'t> {
        let mut functions = Functions {
            all: Vec::new(),
            starts: Vec::new(),
            labels: HashMap::new(),
            named: HashSet::new(),
        };
        if processor != Processor::X86 {
            return functions;
        }
        let mut reader = Reader::new(processor.marks());
        let mut in_debug = false;
        // Names of labels, by the function and whether a jump says them.
        let mut said: Vec<(&str, usize, bool)> = Vec::new();
        for (at, line) in text.split('\n').enumerate() {
            match reader.read(line) {
                Line::Label(_) => functions.starts.push(functions.all.len()),
                Line::Local(name) => {
                    functions.labels.insert(name, functions.all.len());
                }
                Line::Instruction(statement) => {
                    let jumps = statement.starts_with('j');
                    let function = functions.starts.len();
                    said.extend(local_names(statement).map(|name| (name, function, jumps)));
                    functions.all.push(Instruction {
                        at,
                        statement,
                        by_hand: false,
                    });
                }
                Line::ByHand(statement) => {
                    said.extend(local_names(statement).map(|name| (name, 0, false)));
                    functions.all.push(Instruction {
                        at,
                        statement,
                        by_hand: true,
                    });
                }
                _ => {
                    let line = line.trim_start();
                    if [
                        ".section",
                        ".text",
                        ".data",
                        ".bss",
                        ".pushsection",
                        ".popsection",
                    ]
                    .iter()
                    .any(|name| line.starts_with(name))
                    {
                        in_debug = line.contains(".debug_");
                    } else if !in_debug && line.starts_with('.') {
                        said.extend(local_names(line).map(|name| (name, 0, false)));
                    }
                }
            }
        }
        functions.starts.dedup();
        for (name, function, jumps) in said {
            let of = functions
                .labels
                .get(name)
                .map(|&target| functions.function(target));
            let own = jumps && function > 0 && of == Some(function - 1);
            if !own {
                functions.named.insert(name);
            }
        }
        functions
    }

    /// Number of the function of an instruction.
    fn function(&self, instruction: usize) -> usize {
        self.starts
            .partition_point(|start| *start <= instruction)
            .saturating_sub(1)
    }

    /// Where the prefetch of a load in line `at` goes: before which lines of the text, and whether it stands there already.
    pub(super) fn placing(
        &self,
        at: usize,
        operand: &Operand,
        repeated: Repeated,
    ) -> Placing<(usize, bool)> {
        let Ok(load) = self
            .all
            .binary_search_by_key(&at, |instruction| instruction.at)
        else {
            // Of another processor, whose loops are not known.
            return Placing::InFront;
        };
        let function = self.function(load);
        let start = self.starts.get(function).copied().unwrap_or(0).min(load);
        let end = self
            .starts
            .get(function + 1)
            .copied()
            .unwrap_or(self.all.len());
        let steps = self.all[start..end]
            .iter()
            .map(|instruction| self.step(instruction, start, end));
        let entries = self.named.iter().filter_map(|name| self.labels.get(name));
        let entries: Vec<usize> = entries
            .filter(|target| (start..end).contains(target))
            .map(|target| target - start)
            .collect();
        let steps: Vec<Told> = steps.collect();
        let around = around_told(&steps, &entries, load - start);
        let of_operand = registers(operand.base.iter().chain(&operand.index));
        match placing(around, of_operand, repeated) {
            Placing::InFront => Placing::InFront,
            Placing::LeftOut => Placing::LeftOut,
            Placing::BeforeLoop(spots) => {
                let lines = spots.into_iter();
                let lines = lines.map(|spot| self.line(spot, start, operand));
                Placing::BeforeLoop(lines.collect())
            }
        }
    }

    /// The line before which a spot is, and whether the prefetch of an operand is there.
    fn line(&self, spot: Spot, start: usize, operand: &Operand) -> (usize, bool) {
        let (line, behind) = match spot {
            Spot::Before(at) => (self.all[start + at].at, start + at),
            Spot::Behind(at) => (self.all[start + at].at + 1, start + at + 1),
        };
        let before = self.all[start..behind].iter().rev();
        let prefetches =
            before.map_while(|instruction| instruction.statement.strip_prefix("prefetchw"));
        let there = prefetches
            .map(Operand::parse)
            .any(|known| known.as_ref() == Some(operand));
        (line, there)
    }

    fn step(&self, instruction: &Instruction<'_>, start: usize, end: usize) -> Told {
        let statement = instruction.statement;
        if instruction.by_hand {
            // A label may be jumped to from anywhere.
            let known = !statement.contains(':');
            let parts = statement.split(';').filter(|part| !part.trim().is_empty());
            let all = parts.map(writes).fold(0, |all, one| all | one);
            return Told {
                writes: if known { all } else { ALL },
                goes: Goes::Next,
            };
        }
        let plain = statement
            .trim_start_matches("notrack ")
            .trim_start_matches("bnd ");
        let (mnemonic, target) = plain
            .split_once(|c: char| c.is_ascii_whitespace())
            .unwrap_or((plain, ""));
        let target = target.trim();
        let starts = |names: &[&str]| names.iter().any(|name| mnemonic.starts_with(name));
        let within = |target: &&usize| (start..end).contains(*target);
        let label = || {
            self.labels
                .get(target)
                .filter(within)
                .map(|target| (target - start) as u32)
        };
        let goes = match mnemonic {
            "jmp" | "jmpq" if target.starts_with('*') => Goes::Stop,
            "jmp" | "jmpq" => Goes::Jump(label()),
            _ if starts(&["j", "loop"]) => Goes::Branch(label()),
            _ if starts(&["ret", "ud2", "hlt"])
                || starts(&["rep"]) && target.starts_with("ret") =>
            {
                Goes::Stop
            }
            _ => Goes::Next,
        };
        Told {
            writes: writes(statement),
            goes,
        }
    }
}

/// The local labels that a line names.
fn local_names(text: &str) -> impl Iterator<Item = &str> {
    let of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '$');
    let words = text.split(move |c: char| !of_name(c));
    words.filter(|word| word.starts_with(".L"))
}
