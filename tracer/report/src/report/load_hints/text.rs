//! Hints as compilers print: `file:line:col: warning: message`, with notes, so that editors and CI find the places.

use super::{Sources, edits, memory, place, shown, store_kind, store_words, waits};
use crate::{
    hint::{
        file::{Evidence, Expected, HintFile, HintedCode, LoadHint},
        load,
        repeated::Repeated,
        your_code::YourCode,
    },
    names::Language,
    number::{count, grouped, percent},
    report::style::{Role, TextOptions},
};

/// The hints as text, those in code that you build first. With `verbose`, the loads that are left alone follow, with the
/// reason.
pub fn render(
    file: &HintFile,
    sources: &dyn Sources,
    your_code: &YourCode,
    options: TextOptions,
    verbose: bool,
) -> String {
    let mut out = Text {
        printed: String::new(),
        sources,
        options,
    };
    let (yours, elsewhere): (Vec<&LoadHint>, Vec<_>) =
        (file.hints.iter()).partition(|hint| your_code.has_hint(hint));
    let (waiting, hidden): (Vec<&LoadHint>, Vec<_>) =
        (yours.iter()).partition(|hint| waits(store_kind(hint)));
    for hint in &hidden {
        out.hint(hint, &file.evidence);
    }
    if !waiting.is_empty() {
        out.line("");
        out.line("Loads before atomics, compare-and-swaps and fenced stores, where the CPU waits for the line:");
        for hint in &waiting {
            out.hint(hint, &file.evidence);
        }
    }
    if !elsewhere.is_empty() {
        out.line("");
        out.line("Loads that `cohtrace as` does not place: in libraries of the system, in code without source lines, or in loops that would repeat the prefetch:");
        for hint in &elsewhere {
            out.hint(hint, &file.evidence);
        }
    }
    if verbose {
        for left in &file.left {
            let text = format!(
                "this load is left as it is: {} [{}]",
                left.text, left.reason
            );
            out.message(&left.load, "note", &text);
            out.message(
                &left.load,
                "note",
                &expected(&left.expected, &file.evidence),
            );
        }
    }
    out.summary(file, &yours, verbose);
    out.printed
}

struct Text<'a> {
    printed: String,
    sources: &'a dyn Sources,
    options: TextOptions,
}

impl Text<'_> {
    fn line(&mut self, line: &str) {
        self.printed.push_str(line.trim_end());
        self.printed.push('\n');
    }

    fn message(&mut self, code: &HintedCode, level: &str, message: &str) {
        let place = self.options.name(&place(code, self.sources));
        let place = self.options.paint(Role::Strong, &place);
        let role = if level == "warning" {
            Role::Mixed
        } else {
            Role::Quiet
        };
        let level = self.options.paint(role, &format!("{level}:"));
        let message = self.options.name(message);
        self.line(&format!("{place}: {level} {message}"));
    }

    fn hint(&mut self, hint: &LoadHint, evidence: &Evidence) {
        let what = memory(hint).map_or_else(
            || "a line".to_owned(),
            |memory| format!("the line of {memory}"),
        );
        let kind = store_words(store_kind(hint));
        let text = format!(
            "this load fetches {what} to read, and {kind} to it follows: fetch it for ownership [load-hint] ({})",
            hint.id
        );
        self.message(&hint.load, "warning", &text);
        self.source_line(&hint.load);
        for store in &hint.stores {
            let times = count(store.count, "time", "times");
            let text = format!("{} follows here, {times}", store_words(store.kind));
            self.message(&store.code, "note", &text);
        }
        let into = &hint.load.inlined_into;
        if !into.is_empty() {
            let text = format!(
                "the load is in a copy that was inlined into {}",
                into.join(", in ")
            );
            self.message(&hint.load, "note", &text);
        }
        self.message(&hint.load, "note", &expected(&hint.expected, evidence));
        let write = self.how(hint);
        self.message(&hint.load, "note", &write);
    }

    /// What to write.
    fn how(&self, hint: &LoadHint) -> String {
        let file = hint.load.file.as_deref().unwrap_or_default();
        if edits::is_rust(file) {
            return "in Rust, write before it, with the address that is loaded: unsafe { core::arch::asm!(\"prefetchw [{}]\", \
                    in(reg) ADDRESS, options(nostack, preserves_flags, readonly)) }"
                .to_owned();
        }
        if let Some(made) = edits::of_hint(hint, self.sources) {
            return format!("write before it: {}", made.text.trim());
        }
        if let Some(repeated) = Repeated::of(hint).filter(|repeated| !repeated.pays) {
            return format!(
                "if {}; where its address stays the same, fetch it before the loop; cohtrace as does so, and leaves others alone",
                repeated.phrase()
            );
        }
        let language = Language::of_file(file);
        if !matches!(language, None | Some(Language::C | Language::Cpp)) {
            return load::how(language);
        }
        match &hint.load.operand {
            Some(operand) => format!(
                "write __builtin_prefetch(address, 1, 3) before it; in assembly: {} {operand}",
                hint.x86
            ),
            None => "write __builtin_prefetch(address, 1, 3) before it".to_owned(),
        }
    }

    /// The line of the source, with a mark below the column, where the source is here.
    fn source_line(&mut self, code: &HintedCode) {
        let (Some(file), Some(line)) = (&code.file, code.line) else {
            return;
        };
        if self.sources.changed(code).is_some() {
            return;
        }
        let Ok(text) = self.sources.text(file) else {
            return;
        };
        let Some(found) = text.lines().nth((line as usize).saturating_sub(1)) else {
            return;
        };
        let column = code.column.map_or(0, |column| column as usize);
        let before = column.checked_sub(1).and_then(|end| found.get(..end));
        let options = self.options;
        let spread = |text: &str| options.name(&text.replace('\t', "        "));
        let (label, shown) = (format!("{line:>5} | "), spread(found));
        self.line(&format!("{label}{shown}"));
        if let Some(before) = before {
            let mark = self.options.paint(Role::Good, "^");
            let width = spread(before).chars().count();
            self.line(&format!("      | {}{mark}", " ".repeat(width)));
        }
    }

    fn summary(&mut self, file: &HintFile, yours: &[&LoadHint], verbose: bool) {
        if !file.hints.is_empty() {
            self.line("");
        }
        let evidence_of = &file.evidence;
        let hints = saved(
            yours,
            evidence_of.your_code.map(|yours| yours.transactions),
            evidence_of,
        );
        let elsewhere = file.hints.len() - yours.len();
        let hints = match elsewhere {
            0 => hints,
            n => {
                let all: Vec<&LoadHint> = file.hints.iter().collect();
                format!(
                    "In code that you build: {hints}. With {} elsewhere: {}",
                    count(n as u64, "load", "loads"),
                    saved(&all, evidence_of.hinted_transactions, evidence_of)
                )
            }
        };
        let one_off = match evidence_of.one_off {
            Some(one_off) if one_off.loads > 0 => format!(
                ", {} of them one-off, which would save {} messages once",
                grouped(one_off.loads),
                grouped(one_off.saved)
            ),
            _ => String::new(),
        };
        let left = match file.left.len() {
            0 => String::new(),
            n if verbose => format!(
                "; {} left as they are{one_off}",
                count(n as u64, "load", "loads")
            ),
            n => format!(
                "; {} left as they are{one_off} (--verbose lists them)",
                count(n as u64, "load", "loads")
            ),
        };
        self.line(&format!("{hints}{left}."));
        if let Some(after) = &evidence_of.after {
            let text =
                format!("Counted from {after} on: what was before changes only where lines are.");
            self.line(&self.options.name(&text));
        }
        let text = evidence(&file.evidence);
        self.line(&self.options.name(&text));
        let c = |hint: &LoadHint| {
            hint.load
                .file
                .as_deref()
                .is_some_and(crate::hint::edit::is_c)
        };
        if file.hints.iter().any(c) {
            self.line(
                "Trap: on x86-64, gcc and clang make __builtin_prefetch(address, 1) a prefetcht0, which asks for no ownership, \
                 unless told -mprfchw or a -march that has it (broadwell, skylake, znver1 and newer). Look for prefetchw in \
                 the output of objdump -d.",
            );
        }
        for caveat in &file.caveats {
            let caveat = self.options.name(caveat);
            self.line(&format!("{} {caveat}", self.options.bullet()));
        }
        let changed = file.hints.iter().find_map(|hint| {
            let why = self.sources.changed(&hint.load)?;
            Some((shown(hint.load.file.as_deref()?, self.sources), why))
        });
        if let Some((name, why)) = changed {
            let text = format!("Lines of {name} may be others than those that were built: {why}.");
            self.line(&self.options.name(&text));
        }
    }
}

/// How many hints, and what they save together: by what they leave of all messages, else by their sum.
fn saved(hints: &[&LoadHint], left: Option<u64>, evidence: &Evidence) -> String {
    let number = count(hints.len() as u64, "load hint", "load hints");
    let net = match left {
        Some(left) => evidence.transactions as i64 - left as i64,
        None => hints
            .iter()
            .fold(0, |sum: i64, hint| sum.saturating_add(hint.expected.net())),
    };
    match (hints.is_empty(), evidence.transactions) {
        (true, _) => number,
        (false, 0) => format!("{number}, expected to save {} messages", signed(net)),
        (false, all) => format!(
            "{number}, expected to save {} of {} messages ({})",
            signed(net),
            grouped(all),
            signed_percent(net as f64 / all as f64)
        ),
    }
}

/// What the session showed of a load and what the hint changes.
fn expected(expected: &Expected, evidence: &Evidence) -> String {
    let Expected {
        executions,
        requests,
        followed_by_store,
        found_idle,
        found_shared,
        found_clean,
        found_dirty,
        readers_hurt,
        saved,
        lost,
    } = *expected;
    let mut text = format!(
        "{} of {} missed, {} of these with the store next; the line was dirty elsewhere {} times, clean elsewhere {}, shared {}, \
         nowhere {}; saves {} messages and adds {}",
        grouped(requests),
        count(executions, "execution", "executions"),
        grouped(followed_by_store),
        grouped(found_dirty),
        grouped(found_clean),
        grouped(found_shared),
        grouped(found_idle),
        grouped(saved),
        grouped(lost),
    );
    if evidence.transactions > 0 {
        let share = expected.net() as f64 / evidence.transactions as f64;
        text.push_str(&format!(" (net {} of all)", signed_percent(share)));
    }
    if readers_hurt > 0 {
        let readers = count(
            readers_hurt,
            "read by another CPU loses",
            "reads by other CPUs lose",
        );
        text.push_str(&format!("; {readers} by it"));
    }
    text
}

fn signed(n: i64) -> String {
    let sign = if n < 0 { "-" } else { "" };
    format!("{sign}{}", grouped(n.unsigned_abs()))
}

fn signed_percent(share: f64) -> String {
    let sign = if share < 0.0 { "-" } else { "" };
    format!("{sign}{}", percent(share.abs()))
}

/// What the hints rest on.
fn evidence(evidence: &Evidence) -> String {
    let sources = if evidence.sources.is_empty() {
        "an unknown source".to_owned()
    } else {
        evidence.sources.join(", ")
    };
    let order = if evidence.complete_order {
        "every access of the program in order"
    } else {
        "the accesses of watch windows only"
    };
    let mut protocol = Vec::new();
    if evidence.protocol.exclusive_on_first_read {
        protocol.push("the first reader owns the line");
    }
    if evidence.protocol.migratory {
        protocol.push("a dirty line is handed over with its ownership");
    }
    if evidence.protocol.relinquish {
        protocol.push("who wrote a line keeps no copy of it when another reads it");
    }
    let protocol = if protocol.is_empty() {
        "a read never brings ownership".to_owned()
    } else {
        protocol.join(", ")
    };
    format!(
        "Evidence: {sources}, {order}, lines of {} bytes; protocol: {protocol}.",
        evidence.line_bytes
    )
}
