//! One unit of assembly text, read once: the instructions at the lines of hints.

use std::collections::{HashMap, HashSet};

use super::{
    choose::{Candidate, Load},
    files::Files,
    instruction::{Does, Kept, Processor},
    line::{Line, Loc, Reader},
    sources::Built,
    wanted::{InFile, Place, WantedLoads},
};

/// An instruction that reads memory at a line that is looked for.
#[derive(Debug)]
pub(super) struct Found {
    /// Line of the assembly text, from 0.
    pub(super) at: usize,
    /// Source line.
    pub(super) line: u32,
    /// File of it, as the unit writes it.
    pub(super) file: String,
    /// Symbol that it stands under.
    pub(super) function: Option<String>,
    /// The instruction before it is the very prefetch.
    pub(super) fetched: bool,
    pub(super) candidate: Candidate,
}

/// What a unit has for the hints.
#[derive(Debug, Default)]
pub(super) struct Unit {
    pub(super) found: Vec<Found>,
    /// By index of what is wanted: those of `found` at its line.
    pub(super) of_wanted: HashMap<usize, Vec<usize>>,
    /// What is wanted and has code here, a load or not.
    pub(super) with_code: HashSet<usize>,
    /// What is wanted in the very file that the unit is made of.
    pub(super) of_main_file: HashSet<usize>,
    /// What is wanted in files that may be others.
    pub(super) unsure: HashSet<usize>,
    /// Files that may be others than the hints', as the unit writes them, and why.
    pub(super) doubts: Vec<String>,
    /// The file that the unit is made of, where it has the base name of one with hints and is none of those.
    pub(super) stranger: Option<Built>,
    /// `.file "name"`.
    pub(super) name: Option<String>,
    /// There is a `.loc`.
    pub(super) has_lines: bool,
    /// There is an instruction.
    pub(super) has_code: bool,
    /// The text is in another syntax than is read here.
    pub(super) other_syntax: bool,
}

/// Reads a unit.
pub(super) fn read(
    text: &[u8],
    wanted: &WantedLoads,
    processor: Processor,
    place: &Place<'_>,
) -> Unit {
    let mut unit = Unit::default();
    let mut files = Files::new(place.directory);
    let beside = all_files(text, processor, place.directory);
    let mut lines_of: HashMap<u32, InFile> = HashMap::new();
    let mut reader = Reader::new(processor.marks());
    let mut now = Now::default();
    for (at, bytes) in text.split(|byte| *byte == b'\n').enumerate() {
        let line = String::from_utf8_lossy(bytes);
        match reader.read(&line) {
            Line::Other => {}
            Line::Local(_) => now.prefetched = None,
            Line::File(operands) => {
                // A number may be given again.
                if let Some(number) = files.directive(operands) {
                    lines_of.remove(&number);
                }
            }
            Line::OtherSyntax => {
                unit.other_syntax = true;
                break;
            }
            Line::Label(name) => {
                now.function += 1;
                now.name = Some(name.to_owned());
                now.leave();
            }
            Line::Loc(loc) => {
                unit.has_lines = true;
                if now.loc != Some(loc) {
                    now.run += 1;
                    now.loc = Some(loc);
                    let of_file = lines_of.entry(loc.file).or_insert_with(|| {
                        let built = files.get(loc.file);
                        let of_file = built.map(|built| wanted.of_file(built, &beside, place.tree));
                        let of_file = of_file.unwrap_or_default();
                        unit.learn(files.written(loc.file).unwrap_or_default(), &of_file);
                        of_file
                    });
                    let of_line = of_file.get(&loc.line);
                    now.wanted = of_line
                        .into_iter()
                        .flatten()
                        .map(|(index, _)| *index)
                        .collect();
                }
            }
            Line::Instruction(statement) => {
                unit.has_code = true;
                let interesting = !now.wanted.is_empty();
                if !interesting
                    && !statement.starts_with("prefetchw")
                    && !statement.starts_with("prf")
                {
                    now.prefetched = None;
                    continue;
                }
                let does = processor.does(statement);
                let prefetched = now.prefetched.take();
                if let Does::PrefetchesOwn(operand) = does {
                    now.prefetched = processor.operand(operand);
                }
                if interesting {
                    unit.note(at, &now, &files, does, prefetched.as_ref());
                }
            }
            Line::ByHand(statement) => {
                now.prefetched = None;
                if !now.wanted.is_empty() && reads_perhaps(processor, statement) {
                    unit.note(at, &now, &files, Does::Keeps(Kept::ByHand), None);
                }
            }
        }
    }
    unit.name.clone_from(&files.unit);
    if let Some(main) = files.main() {
        let of_file = wanted.of_file(&main, &beside, place.tree);
        unit.learn(files.unit.as_deref().unwrap_or_default(), &of_file);
        let is_stranger = of_file.is_empty() && wanted.sources.names(&main.path);
        let of_lines = of_file.into_values().flatten();
        unit.of_main_file = of_lines.map(|(index, _)| index).collect();
        unit.stranger = Some(main).filter(|_| is_stranger);
    }
    unit
}

/// The files that a unit names anywhere.
fn all_files(text: &[u8], processor: Processor, directory: &str) -> Vec<Built> {
    let mut files = Files::new(directory);
    let mut reader = Reader::new(processor.marks());
    for line in text.split(|byte| *byte == b'\n') {
        let directive = line.trim_ascii_start();
        if directive.starts_with(b".file")
            && let Line::File(operands) = reader.read(&String::from_utf8_lossy(directive))
        {
            files.directive(operands);
        }
    }
    files.all()
}

/// Whether inline assembly, or one of several statements, reads memory.
fn reads_perhaps(processor: Processor, statement: &str) -> bool {
    statement.split(';').any(|part| {
        !matches!(
            processor.does(part.rsplit(": ").next().unwrap_or(part)),
            Does::Nothing
        )
    })
}

/// Where the reader is.
#[derive(Default)]
struct Now {
    function: u32,
    name: Option<String>,
    run: u32,
    loc: Option<Loc>,
    /// What is wanted of the line.
    wanted: Vec<usize>,
    /// Operand of the prefetch that is the instruction before.
    prefetched: Option<super::operand::Operand>,
}

impl Now {
    /// Another function begins: its first instruction is at no line until one is given.
    fn leave(&mut self) {
        self.run += 1;
        self.loc = None;
        self.wanted.clear();
        self.prefetched = None;
    }
}

impl Unit {
    /// Remembers what is wanted in a file that may be another one.
    fn learn(&mut self, written: &str, of_file: &InFile) {
        let all = of_file.values().flatten();
        let unsure = all.clone().filter(|(_, same)| same.doubt().is_some());
        self.unsure.extend(unsure.map(|(index, _)| *index));
        let phrases = all.filter_map(|(_, same)| same.doubt());
        for doubt in phrases.map(|phrase| format!("{written}: {phrase}")) {
            if !self.doubts.contains(&doubt) {
                self.doubts.push(doubt);
            }
        }
    }

    fn note(
        &mut self,
        at: usize,
        now: &Now,
        files: &Files,
        does: Does<'_>,
        prefetched: Option<&super::operand::Operand>,
    ) {
        self.with_code.extend(&now.wanted);
        let Some(loc) = now.loc else { return };
        let (load, fetched) = match does {
            Does::Loads {
                text,
                operand,
                width,
            } => {
                let fetched = prefetched == Some(&operand);
                (
                    Ok(Load {
                        text: text.to_owned(),
                        operand,
                        width,
                    }),
                    fetched,
                )
            }
            Does::Keeps(kept) => (Err(kept), false),
            Does::PrefetchesOwn(_) | Does::Nothing => return,
        };
        for index in &now.wanted {
            self.of_wanted
                .entry(*index)
                .or_default()
                .push(self.found.len());
        }
        self.found.push(Found {
            at,
            line: loc.line,
            file: files.written(loc.file).unwrap_or_default().to_owned(),
            function: now.name.clone(),
            fetched,
            candidate: Candidate {
                function: now.function,
                run: now.run,
                column: loc.column,
                load,
            },
        });
    }
}
