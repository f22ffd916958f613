//! Lines of assembly text, as far as a rewriter must understand them.

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line<'t> {
    /// Nothing that matters.
    Other,
    /// `.file`, with its operands.
    File(&'t str),
    /// `.loc`.
    Loc(Loc),
    /// A label that starts a function or an object, not one of the compiler's own.
    Label(&'t str),
    /// One of the compiler's own labels, which may be jumped to.
    Local(&'t str),
    /// `.intel_syntax`, or what else is written in other words than those known here.
    OtherSyntax,
    /// One instruction, alone on its line, without its comment.
    Instruction(&'t str),
    /// An instruction that cannot be told apart from its neighbours.
    ByHand(&'t str),
}

/// A `.loc` directive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Loc {
    pub(super) file: u32,
    pub(super) line: u32,
    /// `None` where the compiler says none.
    pub(super) column: Option<u32>,
}

/// Follows regions that are not to be touched, line by line.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// Depth of `.macro`, `.rept`, `.irp` and `.irpc`.
    repeats: u32,
    in_asm: bool,
    in_comment: bool,
    /// What starts a comment in the middle of a line.
    marks: Marks,
}

/// Comment characters, which differ by processor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Marks {
    /// `#`.
    #[default]
    X86,
    /// `//`.
    A64,
}

impl Reader {
    pub(super) fn new(marks: Marks) -> Reader {
        Reader {
            marks,
            ..Reader::default()
        }
    }

    /// Reads the next line.
    pub(super) fn read<'t>(&mut self, line: &'t str) -> Line<'t> {
        let trimmed = line.trim();
        if self.in_comment || trimmed.contains("/*") {
            return self.commented(trimmed);
        }
        // `#APP` and `#NO_APP` stand around what `asm` statements say.
        if let Some(rest) = trimmed.strip_prefix(['#', '/']) {
            match rest.trim_start_matches(['/', ' ']) {
                "APP" => self.in_asm = true,
                "NO_APP" => self.in_asm = false,
                _ => {}
            }
            return Line::Other;
        }
        let Some((statement, alone)) = statement(trimmed, self.marks) else {
            return Line::Other;
        };
        let first = statement.split_ascii_whitespace().next().unwrap_or("");
        if let Some(directive) = statement.strip_prefix('.')
            && !first.contains(':')
        {
            return self.directive(directive);
        }
        // Nothing, or the value of a symbol.
        if statement.is_empty() || statement.contains('=') && !statement.contains('%') {
            return Line::Other;
        }
        if self.in_asm || self.repeats > 0 {
            return Line::ByHand(statement);
        }
        match label(statement) {
            // Marks of debug information, which nothing jumps to.
            Some((name, "")) if name.starts_with(".LVL") || name.starts_with(".Ltmp") => {
                Line::Other
            }
            Some((name, ""))
                if name.starts_with(".L") || name.starts_with(|c: char| c.is_ascii_digit()) =>
            {
                Line::Local(name)
            }
            Some((name, "")) if alone => Line::Label(name),
            Some(_) => Line::ByHand(statement),
            None if !alone => Line::ByHand(statement),
            None => Line::Instruction(statement),
        }
    }

    fn commented<'t>(&mut self, line: &str) -> Line<'t> {
        let mut rest = line;
        loop {
            let mark = if self.in_comment { "*/" } else { "/*" };
            let Some(at) = rest.find(mark) else {
                return Line::Other;
            };
            self.in_comment = !self.in_comment;
            rest = &rest[at + 2..];
        }
    }

    fn directive<'t>(&mut self, text: &'t str) -> Line<'t> {
        let end = text
            .find(|c: char| c.is_ascii_whitespace())
            .unwrap_or(text.len());
        let (name, operands) = (&text[..end], text[end..].trim());
        match name {
            "macro" | "rept" | "irp" | "irpc" | "rep" => self.repeats += 1,
            "endm" | "endr" => self.repeats = self.repeats.saturating_sub(1),
            _ if self.in_asm || self.repeats > 0 => {}
            "file" => return Line::File(operands),
            "loc" => return loc(operands).map_or(Line::Other, Line::Loc),
            "intel_syntax" | "altmacro" | "code16" | "code16gcc" => return Line::OtherSyntax,
            "att_syntax" if operands == "noprefix" => return Line::OtherSyntax,
            _ => {}
        }
        Line::Other
    }
}

/// The line without its comment, and whether it holds one statement only. `None` where a string is open.
fn statement(line: &str, marks: Marks) -> Option<(&str, bool)> {
    let (mut quoted, mut escaped, mut alone, mut end) = (false, false, true, line.len());
    let bytes = line.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        if quoted {
            quoted = escaped || byte != b'"';
            escaped = byte == b'\\' && !escaped;
            continue;
        }
        let comment = match marks {
            Marks::X86 => byte == b'#',
            Marks::A64 => byte == b'/' && bytes.get(at + 1) == Some(&b'/'),
        };
        if comment {
            end = at;
            break;
        }
        quoted = byte == b'"';
        alone &= byte != b';';
    }
    (!quoted).then(|| (line[..end].trim_end(), alone))
}

/// A label at the start, and what follows it. A segment (`%fs:0`) is none.
fn label(statement: &str) -> Option<(&str, &str)> {
    let at = statement.find(':')?;
    let name = &statement[..at];
    let plain = !name.is_empty()
        && !name.contains(|c: char| c.is_ascii_whitespace() || matches!(c, '%' | ',' | '(' | '['));
    let quoted = name.starts_with('"') && name.ends_with('"');
    (plain || quoted).then(|| (name, statement[at + 1..].trim()))
}

fn loc(operands: &str) -> Option<Loc> {
    let mut words = operands.split_ascii_whitespace();
    let file = words.next()?.parse().ok()?;
    let line = words.next()?.parse().ok()?;
    let column = words.next().and_then(|word| word.parse().ok());
    Some(Loc {
        file,
        line,
        column: column.filter(|column| *column != 0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Line<'_> {
        Reader::default().read(line)
    }

    fn at(file: u32, line: u32, column: Option<u32>) -> Line<'static> {
        Line::Loc(Loc { file, line, column })
    }

    #[test]
    fn lines_of_both_compilers_are_read() {
        assert_eq!(
            one("\t.loc 1 7 14 is_stmt 0 view .LVU3"),
            at(1, 7, Some(14))
        );
        assert_eq!(
            one("\t.loc\t0 5 10 prologue_end   # t.c:5:10"),
            at(0, 5, Some(10))
        );
        assert_eq!(one("\t.loc 1 7 0"), at(1, 7, None));
        assert_eq!(one("\t.loc 1 7"), at(1, 7, None));
        assert_eq!(one("\t.file 1 \"t.c\""), Line::File("1 \"t.c\""));
        assert_eq!(
            one("\tmovq\t8(%rdi), %rax # 8-byte Reload"),
            Line::Instruction("movq\t8(%rdi), %rax")
        );
        assert_eq!(one("twice:          # @twice"), Line::Label("twice"));
        assert_eq!(one("\"a b\":"), Line::Label("\"a b\""));
        assert_eq!(one(".LBB0_2:"), Line::Local(".LBB0_2"));
        assert_eq!(one("1:"), Line::Local("1"));
        for other in [
            "",
            "# %bb.0:",
            ".LVL3:",
            "\t.cfi_startproc",
            "\t.loc",
            "\t.loc x 1",
            ".string \"#;:\"",
        ] {
            assert_eq!(one(other), Line::Other, "{other:?}");
        }
    }

    #[test]
    fn what_shares_a_line_is_kept_as_it_is() {
        assert_eq!(
            one("foo: movq (%rax), %rbx"),
            Line::ByHand("foo: movq (%rax), %rbx")
        );
        assert_eq!(one("nop; nop"), Line::ByHand("nop; nop"));
        assert_eq!(
            one("movq %fs:40, %rax"),
            Line::Instruction("movq %fs:40, %rax")
        );
    }

    #[test]
    fn inline_assembly_macros_and_comments_are_regions() {
        let text = "#APP\n# 3 \"t.c\" 1\nmovq (%rax), %rbx\n.intel_syntax noprefix\n#NO_APP\nnop\n\
                    .macro m\nnop\n.rept 2\nnop\n.endr\nnop\n.endm\nnop\n/* movq\n nop\n*/\nnop";
        let mut reader = Reader::default();
        let kinds: String = text
            .lines()
            .map(|line| match reader.read(line) {
                Line::Instruction(_) => 'i',
                Line::ByHand(_) => 'h',
                Line::OtherSyntax => 'x',
                _ => '.',
            })
            .collect();
        assert_eq!(kinds, "..h..i.h.h.h.i...i");
    }

    #[test]
    fn other_syntaxes_are_told() {
        assert_eq!(one(".intel_syntax noprefix"), Line::OtherSyntax);
        assert_eq!(one("\t.att_syntax noprefix"), Line::OtherSyntax);
        assert_eq!(one("\t.att_syntax prefix"), Line::Other);
    }
}
