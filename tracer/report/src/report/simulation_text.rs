//! The tables of SWIFT section 5.2 as text: messages, messages for loads, misses, before and after.

use super::{
    shorten,
    simulation::{
        Machine, ScenarioCounts, SessionRole, SimulatedSession, SimulationReport, TopInstruction,
    },
    style::Role,
    table::{Column, layout},
    text::{Lines, TextOptions, WIDTH},
};
use crate::access::CostUnit;
use crate::number::{count, grouped};

/// A table: its title, and the number that it is of.
type Table = (&'static str, fn(&ScenarioCounts) -> u64);

/// As the paper numbers them.
const TABLES: [Table; 3] = [
    (
        "Application transactions: messages that serve requests (SWIFT table 4)",
        |counts| counts.transactions,
    ),
    (
        "Transactions that serve loads, loads with bias included (table 5)",
        |counts| counts.load_transactions,
    ),
    ("Misses of the last level (table 6)", |counts| {
        counts.l3_misses
    }),
];

/// Prints everything.
pub fn render(report: &SimulationReport, options: TextOptions) -> String {
    let mut out = Lines {
        text: String::new(),
        options,
        unit: CostUnit::Transactions,
    };
    out.prose("", &machine(&report.machine));
    if let Some(after) = &report.after {
        let text =
            format!("Counted from {after} on: what was before changes only where lines are.");
        out.prose("", &options.name(&text));
    }
    for session in &report.sessions {
        out.prose("", &describe(session));
        out.prose("", &headline(session));
    }
    for table in &TABLES {
        out.blank();
        let title = options.paint(Role::Strong, table.0);
        out.line(&title);
        let rows: Vec<Vec<String>> = (report.sessions.iter())
            .flat_map(|session| rows(session, table.1, options))
            .collect();
        for line in layout(&columns(), &rows, WIDTH) {
            out.line(&line);
        }
    }
    for session in &report.sessions {
        top(&mut out, session);
    }
    for session in &report.sessions {
        for caveat in &session.caveats {
            out.blank();
            let caveat = caveat.trim_end_matches('.');
            out.prose("note: ", &format!("{}: {caveat}.", session.name));
        }
    }
    out.text
}

fn machine(machine: &Machine) -> String {
    let mut text = format!(
        "Simulated: {}-byte lines; per processor a second level of {} in {} ways and a third of {} in {} ways, least \
         recently used out first; the directory protocol of SWIFT section 2",
        machine.line_bytes,
        bytes(machine.l2_bytes),
        machine.l2_ways,
        bytes(machine.l3_bytes),
        machine.l3_ways
    );
    if machine.exclusive_on_first_read {
        text.push_str(", with the only copy for the first reader");
    }
    if machine.migratory {
        text.push_str(", with written lines moving to their next reader");
    }
    if machine.relinquish {
        text.push_str(", with no copy left where a written line was read from");
    }
    if machine.log_kept != machine.log_every {
        let (kept, every) = (grouped(machine.log_kept), grouped(machine.log_every));
        text.push_str(&format!(
            "; the filter sees the last {kept} of each {every} requests"
        ));
    }
    text + "."
}

fn bytes(n: u64) -> String {
    match n {
        n if n >= 1 << 20 && n.is_multiple_of(1 << 20) => format!("{} MiB", n >> 20),
        n if n >= 1 << 10 && n.is_multiple_of(1 << 10) => format!("{} KiB", n >> 10),
        n => format!("{n} bytes"),
    }
}

fn describe(session: &SimulatedSession) -> String {
    let executed = &session.executed;
    let hints = &session.hints;
    let from = match session.role {
        SessionRole::Own => "found in it".to_owned(),
        SessionRole::Train => "found in it, and used for the others".to_owned(),
        SessionRole::Given => format!("from {}", hints.from),
    };
    let biased = if executed.biased_loads > 0 {
        format!(", {} of its own with bias", grouped(executed.biased_loads))
    } else {
        String::new()
    };
    let (all, yours) = (hints.all.sum(), hints.your_code.sum());
    let elsewhere = if all == yours {
        String::new()
    } else {
        format!(", {} of them in code that you build", grouped(yours))
    };
    format!(
        "{}: {}, {}{biased}, {}, {}. Hinted, {from}: {} and {}{elsewhere}.",
        session.name,
        count(session.threads, "thread", "threads"),
        count(executed.loads, "load", "loads"),
        count(executed.stores, "store", "stores"),
        count(session.lines, "line", "lines"),
        count(
            hints.all.integer + hints.all.unknown,
            "integer load",
            "integer loads"
        ),
        count(
            hints.all.floating_point,
            "floating-point load",
            "floating-point loads"
        ),
    )
}

/// What a rebuild reaches, and what more there would be.
fn headline(session: &SimulatedSession) -> String {
    let hints = &session.hints;
    let (all, yours) = (hints.all.sum(), hints.your_code.sum());
    let saved = |yours| {
        let [before, _, after] = session.scenarios(yours).map(|counts| counts.transactions);
        let less = if after > before { "more" } else { "fewer" };
        format!(
            "{} messages {less} of {} ({})",
            grouped(before.abs_diff(after)),
            grouped(before),
            improvement(before, after)
        )
    };
    let mut text = format!(
        "A rebuild with the hints in code that you build: {}.",
        saved(true)
    );
    if all > yours {
        let others = count(all - yours, "hint", "hints");
        text += &format!(
            " With {others} too that `cohtrace as` does not place, elsewhere or in loops: {}.",
            saved(false)
        );
    }
    text
}

fn columns() -> [Column; 7] {
    let number = |title| Column::right(title, 8, shorten::end);
    [
        Column::left("session", 8, shorten::middle),
        Column::left("hints in", 9, shorten::end),
        number("unmodified"),
        number("integer hinted"),
        number("improvement"),
        number("int+fp hinted"),
        number("improvement"),
    ]
}

/// With the hints in code that you build, and with all where there are others.
fn rows(
    session: &SimulatedSession,
    of: fn(&ScenarioCounts) -> u64,
    options: TextOptions,
) -> Vec<Vec<String>> {
    let elsewhere = session.hints.all != session.hints.your_code;
    let yours = row(session, true, of, options);
    let all = elsewhere.then(|| row(session, false, of, options));
    std::iter::once(yours).chain(all).collect()
}

fn row(
    session: &SimulatedSession,
    yours: bool,
    of: fn(&ScenarioCounts) -> u64,
    options: TextOptions,
) -> Vec<String> {
    let [unmodified, integer, all] = session.scenarios(yours).map(of);
    let name = match session.role {
        SessionRole::Train => format!("{} (train)", session.name),
        SessionRole::Own | SessionRole::Given => session.name.clone(),
    };
    vec![
        options.name(&name),
        if yours { "your code" } else { "all code" }.to_owned(),
        grouped(unmodified),
        grouped(integer),
        improvement(unmodified, integer),
        grouped(all),
        improvement(unmodified, all),
    ]
}

/// What went away, in percent; what was added is negative. A dash where there was nothing.
fn improvement(before: u64, after: u64) -> String {
    if before == 0 {
        return "-".to_owned();
    }
    let percent = (before as f64 - after as f64) / before as f64 * 100.0;
    // Rounding first: little would else read `-0.0`.
    format!("{:.1} %", (percent * 10.0).round() / 10.0 + 0.0)
}

/// Instructions and lines with most messages.
fn top(out: &mut Lines, session: &SimulatedSession) {
    let options = out.options;
    let number = |title| Column::right(title, 6, shorten::end);
    let reached = session.reached();
    if !session.instructions.is_empty() {
        out.blank();
        let title = format!("Instructions with most transactions in {}", session.name);
        let title = options.paint(Role::Strong, &options.name(&title));
        out.line(&title);
        let table = [
            number("unmodified"),
            number("hinted"),
            number("executions"),
            number("then owned"),
            Column::left("function", 12, shorten::symbol),
            Column::left("source", 12, shorten::path),
        ];
        let rows: Vec<Vec<String>> = (session.instructions.iter())
            .map(|instruction| {
                vec![
                    grouped(at(&instruction.costs.transactions, 0)),
                    grouped(at(&instruction.costs.transactions, reached)),
                    grouped(instruction.executions),
                    grouped(instruction.followed_by_ownership),
                    options.name(instruction.function.as_deref().unwrap_or("?")),
                    options.name(&place(instruction)),
                ]
            })
            .collect();
        for line in layout(&table, &rows, WIDTH) {
            out.line(&line);
        }
    }
    if !session.top_lines.is_empty() {
        out.blank();
        let title = format!("Lines with most transactions in {}", session.name);
        let title = options.paint(Role::Strong, &options.name(&title));
        out.line(&title);
        let table = [
            number("unmodified"),
            number("hinted"),
            number("misses"),
            Column::left("objects", 12, shorten::symbol),
            Column::left("line", 12, shorten::end),
        ];
        let rows: Vec<Vec<String>> = (session.top_lines.iter())
            .map(|line| {
                vec![
                    grouped(at(&line.costs.transactions, 0)),
                    grouped(at(&line.costs.transactions, reached)),
                    grouped(at(&line.costs.l3_misses, 0)),
                    options.name(&line.objects.join(", ")),
                    line.key.to_string(),
                ]
            })
            .collect();
        for line in layout(&table, &rows, WIDTH) {
            out.line(&line);
        }
    }
}

fn at(by_scenario: &[u64], number: usize) -> u64 {
    by_scenario.get(number).copied().unwrap_or(0)
}

/// `radix.c:519`, or the address in its file.
fn place(instruction: &TopInstruction) -> String {
    match (&instruction.file, instruction.line, &instruction.module) {
        (Some(file), Some(line), _) => format!("{file}:{line}"),
        (_, _, Some(module)) => format!("{module}+{}", instruction.ip),
        _ => instruction.ip.to_string(),
    }
}

#[cfg(test)]
mod tests;
