//! `log`: the request log of a session's watch windows, as SWIFT prints it.

use std::{fmt::Write as _, process::ExitCode};

use anyhow::{Result, bail};

use super::{
    args::{LogArgs, LogOrder},
    output,
    report::line_size,
};
use crate::{
    access::Basis,
    analysis::{Trapped, WindowAccesses},
    coherence::{RequestRow, sort_by_line},
    event::Batch,
    session::SessionReader,
    space::AddressSpaces,
};

/// Rows printed at once: a long log flows, and stops when its reader does.
const ROWS: usize = 4096;

/// Prints the log.
pub fn run(args: &LogArgs) -> Result<ExitCode> {
    let mut reader = SessionReader::open(&args.session)?;
    let mut spaces = AddressSpaces::default();
    let line_size = line_size(args.line_size);
    let mut waiting = WindowAccesses::new(line_size, usize::MAX);
    let mut batch = Batch::default();
    let mut kept: Vec<RequestRow> = Vec::new();
    let mut known = false;
    let mut out = String::new();
    let mut rows = 0;
    let mut number = 0;
    while reader.next_batch(&mut batch)? {
        for due in batch.in_order() {
            // Every access: the spaces are numbered by them too, and the keys of lines say the number.
            let Some((access, space, place)) = spaces.follow(due) else {
                continue;
            };
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
            let key = order.line.map(|line| line.to_string());
            let wanted = key.is_some_and(|key| args.line.is_empty() || args.line.contains(&key));
            let mut requests = order.requests(line_size);
            for row in &mut requests {
                // A number is of the whole log, whatever is printed of it.
                row.number = number;
                number += 1;
            }
            if !wanted {
                continue;
            }
            known = true;
            if args.sort == LogOrder::Line {
                kept.extend(requests);
                continue;
            }
            rows += requests.len();
            for row in requests {
                let _ = writeln!(out, "{row}");
            }
            if rows >= ROWS {
                output::write_stdout(&out)?;
                out.clear();
                rows = 0;
            }
        }
        batch.clear();
    }
    if !known && !args.line.is_empty() {
        bail!(
            "{}: no watch window on {}; `cohtrace report --json` says the key of each line",
            args.session.display(),
            args.line.join(", ")
        );
    }
    sort_by_line(&mut kept);
    for row in kept {
        let _ = writeln!(out, "{row}");
    }
    output::write_stdout(&out)?;
    Ok(ExitCode::SUCCESS)
}
