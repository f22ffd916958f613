//! What came of hints: by the log of a build, and by the built program.

use std::{collections::BTreeSet, fs, path::Path, process::ExitCode, sync::Arc};

use anyhow::{Context as _, Result, bail};
use symbolizer::{Frame, Module, NoDebugFiles};

use super::{
    super::{args::AsArgs, output},
    disk::Disk,
    read_hints,
};
use crate::{
    decode::{Before, CodeRead, FunctionCode, fetches, reads},
    hint::{
        assembly::{
            Checked, Compared, Lines, MachineFunction, Place, PlacedRead, Standing, hinted_place,
            summary as sum_up,
        },
        digest::digits,
        file::{CallPlace, HintFile},
    },
    number::count,
    printable::printable,
};

/// Code between two loads of one place up to which they may be of one stretch, bytes.
const MOST_BETWEEN: u64 = 4096;
/// Files of hints that are printed beside the program's.
const MOST_PATHS: usize = 20;

/// Prints what a build's log says.
pub(super) fn summary(log: &Path, args: &AsArgs) -> Result<ExitCode> {
    let hints = read_hints(&args.hints)?;
    let bytes = fs::read(log).with_context(|| format!("reading {}", log.display()))?;
    let summary = sum_up(&String::from_utf8_lossy(&bytes), &hints);
    output::write_stdout(&summary.text)?;
    Ok(code(args.check && summary.missing > 0))
}

fn code(missing: bool) -> ExitCode {
    if missing {
        ExitCode::from(1)
    } else {
        ExitCode::SUCCESS
    }
}

/// Prints what a program's code says.
pub(super) fn verify(program: &Path, args: &AsArgs) -> Result<ExitCode> {
    let hints = read_hints(&args.hints)?;
    let named = || program.display().to_string();
    let bytes = fs::read(program).with_context(|| format!("reading {}", program.display()))?;
    // e_machine of the ELF header.
    if bytes
        .get(18..20)
        .is_some_and(|machine| machine != 62_u16.to_le_bytes())
    {
        bail!(
            "{}: no x86-64 program, and no other is read back",
            program.display()
        );
    }
    let module = Module::parse(Arc::new(bytes), Box::new(NoDebugFiles)).with_context(named)?;
    let text = module
        .section_range(".text")
        .with_context(|| format!("{}: no code", program.display()))?;
    let code_bytes = module
        .code(text.start, text.end)
        .with_context(|| format!("{}: no code in the file", program.display()))?;
    let built = fs::metadata(program).and_then(|metadata| metadata.modified());
    let place = Place {
        directory: "",
        maps: &args.map,
        tree: &Disk::before(built.ok()),
        everywhere: args.everywhere,
    };
    let sources = module.source_files().into_iter();
    let sources: Vec<_> = sources
        .map(|file| (file.path.to_string(), file.md5.map(digits)))
        .collect();
    let lines = Lines::new(&hints, &sources, &place);
    let mut files = BTreeSet::new();
    let found = placed(&module, &lines, reads(code_bytes, text.start), &mut files);
    if found.is_empty() && !has_lines(&module, text.start..text.end) {
        bail!(
            "{}: no source lines: compile with -g, and do not strip",
            program.display()
        );
    }
    let function = |address: u64| {
        let function = module.function(address)?;
        let bytes = module.code(function.start, function.end)?;
        Some(MachineFunction {
            code: FunctionCode::decode(function.start, bytes),
            fetches: fetches(bytes, function.start),
        })
    };
    let checked = lines.check(&found, &function);
    let elsewhere = lines.elsewhere(&files);
    let here = hints.hints.len() - elsewhere.len();
    let placed = checked.iter().filter(|checked| checked.is_placed()).count();
    let left_out = checked
        .iter()
        .filter(|checked| checked.is_left_out())
        .count();
    // A file of hints for other modules alone is not this program's.
    let missing = match here {
        0 => hints.hints.len(),
        here => here - placed - left_out,
    };
    let mut text = said(&hints, &checked, &elsewhere, missing, left_out);
    let nothing = placed == 0 && missing > 0;
    let more = lines
        .doubts()
        .into_iter()
        .chain(paths(&lines.not_here(), nothing));
    for line in more {
        text += &printable(&line, false);
        text.push('\n');
    }
    output::write_stdout(&text)?;
    // A build that no hint has reached is no success, whether somebody checks or not.
    Ok(code(nothing || args.check && missing > 0))
}

/// The hints' paths beside the program's where they may be the same, and where nothing is placed, all of them.
fn paths(not_here: &[Compared], nothing: bool) -> Vec<String> {
    let shown = (not_here.iter()).filter(|file| nothing || !file.built.is_empty());
    let all: Vec<String> = shown.map(|file| format!("  {}", file.phrase())).collect();
    let mut lines = Vec::new();
    if !all.is_empty() {
        lines.push("files of the hints that are not known to be the program's:".to_owned());
        lines.extend(all.iter().take(MOST_PATHS).cloned());
    }
    if all.len() > MOST_PATHS {
        lines.push(format!("  and {} more", all.len() - MOST_PATHS));
    }
    lines
}

/// Whether any instruction has a line; asked of some places only.
fn has_lines(module: &Module, text: std::ops::Range<u64>) -> bool {
    let step = ((text.end - text.start) / 4096).max(1) as usize;
    text.step_by(step)
        .any(|address| innermost(module, address).is_some())
}

/// The source place of an instruction, the calls that were inlined there, and the start of its function.
fn innermost(module: &Module, address: u64) -> Option<(Frame, Vec<Frame>, u64)> {
    let code = module.frames(address);
    let function = address - code.offset_in_symbol.unwrap_or(address);
    let mut frames = code.frames.into_iter();
    let frame = frames.next()?;
    let is_placed = frame.file.is_some() && frame.line.is_some();
    is_placed.then(|| (frame, frames.collect(), function))
}

fn call_place(frame: &Frame) -> CallPlace {
    CallPlace {
        file: frame.file.as_deref().map(str::to_owned),
        line: frame.line,
        column: frame.column,
    }
}

/// The reading instructions at the hints' lines; and the source files of all.
fn placed(
    module: &Module,
    lines: &Lines,
    reads: Vec<CodeRead>,
    files: &mut BTreeSet<String>,
) -> Vec<PlacedRead> {
    let mut found: Vec<PlacedRead> = Vec::new();
    let (mut function, mut run) = (0, 0);
    let mut last: Option<(u64, u64)> = None;
    for read in reads {
        let Some((frame, calls, start)) = innermost(module, read.address) else {
            continue;
        };
        let (Some(file), Some(line)) = (frame.file, frame.line) else {
            continue;
        };
        if !files.contains(&*file) {
            files.insert(file.to_string());
        }
        if !lines.holds(&file, line) {
            continue;
        }
        let place = (&*file, line, frame.column);
        let together = last.is_some_and(|(address, of)| {
            of == start && is_one_run(module, address, read.address, place)
        });
        function += u32::from(last.is_none_or(|(_, of)| of != start));
        run += u32::from(!together);
        last = Some((read.address, start));
        found.push(PlacedRead {
            function,
            run,
            file: file.to_string(),
            line,
            column: frame.column,
            inlined_at: calls.iter().map(call_place).collect(),
            read,
        });
    }
    found
}

/// Whether all code from one address to the other is of this place.
fn is_one_run(module: &Module, from: u64, to: u64, place: (&str, u32, Option<u32>)) -> bool {
    let same = |address: u64| {
        innermost(module, address).is_some_and(|(frame, ..)| {
            (frame.file.as_deref(), frame.line, frame.column)
                == (Some(place.0), Some(place.1), place.2)
        })
    };
    to - from <= MOST_BETWEEN && (from..to).all(same)
}

fn said(
    hints: &HintFile,
    checked: &[Checked],
    elsewhere: &BTreeSet<usize>,
    missing: usize,
    left_out: usize,
) -> String {
    let mut lines = Vec::new();
    let mut reads_only = false;
    for (index, hint) in hints.hints.iter().enumerate() {
        if elsewhere.contains(&index) {
            continue;
        }
        let at = format!("{} {}", hint.id, hinted_place(&hint.load));
        let Some(checked) = checked.iter().find(|checked| checked.hint == index) else {
            lines.push(format!(
                "{at}: not looked for: the hint names no source line"
            ));
            continue;
        };
        let loads = match &checked.loads {
            Err(refusal) => {
                lines.push(format!("{at}: {}", refusal.phrase()));
                continue;
            }
            Ok(loads) => loads,
        };
        let have = loads.iter().filter(|load| load.is_fetched()).count();
        lines.push(format!(
            "{at}: {have} of {} loads have a prefetchw in front",
            loads.len()
        ));
        for load in loads {
            if let Some(standing) = load.repeated {
                let what = match standing {
                    Standing::BeforeLoop => "has it before its loop".to_owned(),
                    Standing::NotBeforeLoop => "has none before its loop".to_owned(),
                    Standing::LeftOut(repeated) => format!("is left out: {}", repeated.phrase()),
                };
                lines.push(format!("  {:#x}: {} {what}", load.address, load.operand));
                continue;
            }
            match &load.before {
                Before::FetchesOwn => {}
                Before::Fetches(name) => {
                    reads_only = true;
                    lines.push(format!(
                        "  {:#x}: {} has a {name}, which fetches for reading",
                        load.address, load.operand
                    ));
                }
                Before::Nothing => {
                    lines.push(format!("  {:#x}: {} has none", load.address, load.operand));
                }
            }
        }
    }
    if reads_only {
        lines.push(
            "__builtin_prefetch(address, 1) gives prefetchw with -mprfchw only, or with an -march that has it".to_owned(),
        );
    }
    if !elsewhere.is_empty() {
        lines.push(format!(
            "{} for source files that this program has no code of (libraries, other programs): not looked for",
            count(elsewhere.len() as u64, "hint is", "hints are")
        ));
    }
    let here = hints.hints.len() - elsewhere.len();
    if left_out > 0 {
        lines.push(format!(
            "{} left out, whose prefetch would be repeated for one line (--everywhere places it)",
            count(left_out as u64, "hint is", "hints are")
        ));
    }
    lines.push(match (missing, here) {
        (0, _) if left_out > 0 => "every other hint for the program's code is in it".to_owned(),
        (0, _) => "every hint for the program's code is in it".to_owned(),
        (_, 0) => "no hint is for this program".to_owned(),
        (missing, here) => format!("{missing} of {here} hints are not there, or not everywhere"),
    });
    let lines = lines.iter().map(|line| printable(line, false));
    lines.fold(String::new(), |text, line| text + &line + "\n")
}
