//! Aligned text of 100 columns: sections of labelled rows, and commands that stay fit to paste.

use std::fmt::Write;

use crate::printable::printable;

/// Columns of a line.
const WIDTH: usize = 100;
/// Column where values start.
const VALUE_COLUMN: usize = 24;

/// Whether to use ANSI colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// Text only.
    Plain,
    /// For a terminal.
    Colour,
}

/// Tone of a row's first word.
#[derive(Clone, Copy)]
pub(super) enum Tone {
    Good,
    Bad,
    Doubtful,
}

/// A page under construction.
pub(super) struct Page {
    text: String,
    paint: Paint,
}

impl Page {
    pub(super) fn new(paint: Paint) -> Self {
        Page {
            text: String::new(),
            paint,
        }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }

    /// The page's first line.
    pub(super) fn title(&mut self, title: &str) {
        for line in wrap(title, WIDTH) {
            let _ = writeln!(self.text, "{line}");
        }
    }

    /// Starts a section.
    pub(super) fn section(&mut self, name: &str) {
        let name = self.painted(name, "1");
        let _ = writeln!(self.text, "\n{name}");
    }

    /// A label and its value, wrapped in its column; `level` indents the label.
    pub(super) fn row(&mut self, level: usize, label: &str, value: &str) {
        self.lines(level, label, &wrap(value, WIDTH - VALUE_COLUMN));
    }

    /// A row whose value starts with a word in colour.
    pub(super) fn verdict(&mut self, label: &str, tone: Tone, word: &str, rest: &str) {
        let mut lines = wrap(&format!("{word}{rest}"), WIDTH - VALUE_COLUMN);
        let colour = match tone {
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Doubtful => "33",
        };
        // Wrapped before it is painted: escapes have no width.
        if let Some(first) = lines.first_mut()
            && let Some(tail) = first.strip_prefix(word)
        {
            *first = self.painted(word, colour) + tail;
        }
        self.lines(1, label, &lines);
    }

    /// Lines for the shell, each broken so that it can still be pasted.
    pub(super) fn commands(&mut self, level: usize, label: &str, commands: &[String]) {
        let width = WIDTH - VALUE_COLUMN;
        let lines: Vec<String> = commands
            .iter()
            .flat_map(|line| wrap_command(&printable(line, false), width))
            .collect();
        if !lines.is_empty() {
            self.lines(level, label, &lines);
        }
    }

    fn lines(&mut self, level: usize, label: &str, lines: &[String]) {
        let mut label = format!("{}{}", "  ".repeat(level), printable(label, false));
        if label.chars().count() >= VALUE_COLUMN {
            let _ = writeln!(self.text, "{label}");
            label.clear();
        }
        for line in lines {
            let _ = writeln!(self.text, "{label:VALUE_COLUMN$}{line}");
            label.clear();
        }
    }

    fn painted(&self, text: &str, code: &str) -> String {
        match self.paint {
            Paint::Plain => text.to_owned(),
            Paint::Colour => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}

/// Breaks at spaces; a longer word has a line of its own. What comes from files is made safe to print.
fn wrap(text: &str, width: usize) -> Vec<String> {
    fill(printable(text, false).split_whitespace(), width)
}

fn fill<'t>(words: impl Iterator<Item = &'t str>, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Breaks a command between its words with a backslash, and a comment into comments. A comment behind
/// a command that does not fit goes before it: a backslash behind a comment would be part of it.
fn wrap_command(line: &str, width: usize) -> Vec<String> {
    if line.chars().count() <= width {
        return vec![line.to_owned()];
    }
    if let Some(comment) = line.strip_prefix("# ") {
        let lines = wrap(comment, width - 2);
        return lines.into_iter().map(|line| format!("# {line}")).collect();
    }
    if let Some((command, comment)) = line.split_once("  # ") {
        let mut lines = wrap_command(&format!("# {comment}"), width);
        lines.extend(wrap_command(command, width));
        return lines;
    }
    let mut lines = fill(shell_words(line).into_iter(), width - 2);
    let last = lines.len().saturating_sub(1);
    for line in &mut lines[..last] {
        line.push_str(" \\");
    }
    lines
}

/// Cuts at spaces outside quotes.
fn shell_words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (None | Some('"'), '\\') => escaped = true,
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, ' ') => {
                words.push(&line[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    words.push(&line[start..]);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_command_is_one_command_when_pasted() {
        let line = "sudo setcap a,b,c+ep \"$(command -v cohtrace)\" 'it is' one\\ word";
        let lines = wrap_command(line, 30);
        assert_eq!(
            lines,
            [
                "sudo setcap a,b,c+ep \\",
                "\"$(command -v cohtrace)\" \\",
                "'it is' one\\ word",
            ]
        );
        assert_eq!(lines.join("\n").replace("\\\n", ""), line);
    }

    #[test]
    fn what_files_say_cannot_act_on_a_terminal() {
        let mut page = Page::new(Paint::Plain);
        page.title("Linux \u{202e}6");
        page.row(1, "PMU\x1b[2J", "ibs\x1b]0;x\x07");
        page.commands(2, "fix", &["sudo /tmp/\u{9b}31m/cohtrace".to_owned()]);
        let text = page.finish();
        let hostile = |c: char| c != '\n' && crate::printable::is_hostile(c);
        assert!(!text.chars().any(hostile), "{text:?}");
        assert!(
            text.contains("PMU\\x1b[2J") && text.contains("\\u{202e}6"),
            "{text}"
        );
    }

    #[test]
    fn a_comment_stays_a_comment_on_every_line() {
        assert_eq!(
            wrap_command("# boot another kernel, please", 16),
            ["# boot another", "# kernel, please"]
        );
        assert_eq!(
            wrap_command("sudo cohtrace doctor  # as all", 24),
            ["# as all", "sudo cohtrace doctor"]
        );
    }

    #[test]
    fn colour_changes_nothing_but_escapes() {
        let render = |paint| {
            let mut page = Page::new(paint);
            page.section("Sources");
            page.verdict("timer", Tone::Good, "ok", &": word".repeat(40));
            page.finish()
        };
        let coloured = render(Paint::Colour);
        assert!(coloured.contains("\x1b[32mok\x1b[0m"));
        let stripped = coloured
            .replace("\x1b[32m", "")
            .replace("\x1b[1m", "")
            .replace("\x1b[0m", "");
        assert_eq!(stripped, render(Paint::Plain));
    }
}
