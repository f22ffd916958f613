//! `log`: the request log of a session, as SWIFT prints it: of its watch windows, or of a whole emulated run.

use std::{fmt::Write as _, io::IsTerminal as _, process::ExitCode};

use anyhow::{Result, bail};

use super::{
    args::{LogArgs, LogOrder},
    output,
    reading::Reading,
    report::line_size,
};
use crate::{
    access::{Basis, LineKey},
    analysis::{RequestLog, Trapped, WindowAccesses},
    coherence::{RequestRow, sort_by_line},
    event::Batch,
    space::AddressSpaces,
};

/// Rows printed at once: a long log flows, and stops when its reader does.
const ROWS: usize = 4096;

/// Prints the log.
pub(super) fn run(args: &LogArgs) -> Result<ExitCode> {
    output::check(None)?;
    let line_size = line_size(args.line_size);
    let mut reading = Reading::open(
        &args.session,
        line_size,
        "reading",
        // Rows would come in between.
        args.quiet || std::io::stdout().is_terminal(),
    )?;
    let mut spaces = AddressSpaces::default();
    let mut waiting = WindowAccesses::new(line_size, usize::MAX);
    // Whether a line is wanted is found out once.
    let mut emulated: RequestLog<bool> = RequestLog::new(line_size);
    let asked_for = |key: LineKey| args.line.is_empty() || args.line.contains(&key.to_string());
    let mut batch = Batch::default();
    let mut printer = Printer::new(args.sort);
    let mut known = false;
    let mut number = 0;
    while reading.next_batch(&mut batch)? {
        for due in batch.in_order() {
            // Every access: the spaces are numbered by them too, and the keys of lines say the number.
            let Some((access, space, place)) = spaces.follow(due) else {
                continue;
            };
            if access.basis == Basis::Emulated {
                let mut printed = Ok(());
                emulated.observe(access, place, asked_for, |mut row, wanted| {
                    row.number = number;
                    number += 1;
                    if *wanted && printed.is_ok() {
                        known = true;
                        printed = printer.put(row);
                    }
                });
                printed?;
            }
            if access.basis == Basis::Trapped {
                waiting.push(Trapped {
                    access: *access,
                    place,
                    space,
                });
            }
        }
        for window in &batch.windows {
            let order = waiting.close(window, |word| spaces.place(word.pid, word.addr).1);
            let wanted = order.line.is_some_and(asked_for);
            known |= wanted;
            for mut row in order.requests(line_size) {
                // A number is of the whole log, whatever is printed of it.
                row.number = number;
                number += 1;
                if wanted {
                    printer.put(row)?;
                }
            }
        }
        batch.clear();
    }
    if !known && !args.line.is_empty() {
        bail!(
            "{}: no watch window on {}, nor an emulated access; `cohtrace report --json` says the key of each line",
            args.session.display(),
            args.line.join(", ")
        );
    }
    printer.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Prints rows as they come, or sorted at the end.
struct Printer {
    sort: LogOrder,
    kept: Vec<RequestRow>,
    out: String,
    rows: usize,
}

impl Printer {
    fn new(sort: LogOrder) -> Printer {
        Printer {
            sort,
            kept: Vec::new(),
            out: String::new(),
            rows: 0,
        }
    }

    fn put(&mut self, row: RequestRow) -> Result<()> {
        if self.sort == LogOrder::Line {
            self.kept.push(row);
            return Ok(());
        }
        let _ = writeln!(self.out, "{row}");
        self.rows += 1;
        if self.rows == ROWS {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        output::write_stdout(&self.out)?;
        self.out.clear();
        self.rows = 0;
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        let mut kept = std::mem::take(&mut self.kept);
        sort_by_line(&mut kept);
        self.sort = LogOrder::Request;
        for row in kept {
            self.put(row)?;
        }
        self.write()
    }
}
