//! What came of hints: by the log of a build, and by the built program.

use std::{collections::BTreeSet, fs, path::Path, process::ExitCode, sync::Arc};

use anyhow::{Context as _, Result, bail};
use symbolizer::{Frame, Module, NoDebugFiles};

use super::{
    super::{args::AsArgs, output},
    read_hints,
};
use crate::{
    decode::{Before, CodeRead, reads},
    hint::{
        assembly::{Checked, Lines, PlacedRead, hinted_place, summary as sum_up},
        file::{CallPlace, HintFile},
    },
    report::number::count,
};

/// Code between two loads of one place up to which they may be of one stretch, bytes.
const MOST_BETWEEN: u64 = 4096;

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
    let lines = Lines::new(&hints);
    let mut files = BTreeSet::new();
    let found = placed(&module, &lines, reads(code_bytes, text.start), &mut files);
    if found.is_empty() && !has_lines(&module, text.start..text.end) {
        bail!(
            "{}: no source lines: compile with -g, and do not strip",
            program.display()
        );
    }
    let checked = lines.check(&found);
    let elsewhere = lines.elsewhere(&files);
    let here = hints.hints.len() - elsewhere.len();
    let placed = checked.iter().filter(|checked| checked.is_placed()).count();
    // A file of hints for other modules alone is not this program's.
    let missing = match here {
        0 => hints.hints.len(),
        here => here - placed,
    };
    output::write_stdout(&said(&hints, &checked, &elsewhere, missing))?;
    Ok(code_of(args, missing))
}

fn code_of(args: &AsArgs, missing: usize) -> ExitCode {
    code(args.check && missing > 0)
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
        let have = loads
            .iter()
            .filter(|load| load.before == Before::FetchesOwn)
            .count();
        lines.push(format!(
            "{at}: {have} of {} loads have a prefetchw in front",
            loads.len()
        ));
        for load in loads {
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
    lines.push(match (missing, here) {
        (0, _) => "every hint for the program's code is in it".to_owned(),
        (_, 0) => "no hint is for this program".to_owned(),
        (missing, here) => format!("{missing} of {here} hints are not there, or not everywhere"),
    });
    lines.join("\n") + "\n"
}
