//! Breaks prose into lines. Lines of a text that start with four spaces are code and keep their shape.

use super::{printable::columns, shorten};

/// The text in lines of at most `width` columns, none of them indented except code.
/// A word longer than a line loses its middle.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut out = Vec::new();
    for paragraph in text.lines() {
        if paragraph.starts_with("    ") {
            out.push(shorten::end(paragraph, width));
            continue;
        }
        let mut line = String::new();
        let mut used = 0;
        for word in paragraph.split_whitespace() {
            let word = shorten::middle(word, width);
            let wide = columns(&word);
            if used > 0 && used + 1 + wide > width {
                out.push(std::mem::take(&mut line));
                used = 0;
            }
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(&word);
            used += wide;
        }
        out.push(line);
    }
    out
}

/// The wrapped text with `label` before the first line and as much space before the others.
pub(super) fn labelled(label: &str, text: &str, width: usize) -> Vec<String> {
    let indent = columns(label);
    let lines = wrap(text, width.saturating_sub(indent).max(1));
    lines
        .into_iter()
        .enumerate()
        .map(|(n, line)| {
            if n == 0 {
                format!("{label}{line}")
            } else {
                format!("{}{line}", " ".repeat(indent))
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_broken_at_spaces() {
        assert_eq!(wrap("one two three four", 9), ["one two", "three", "four"]);
    }

    #[test]
    fn code_keeps_its_indentation() {
        assert_eq!(
            wrap("put\n    alignas(64) int  x;", 40),
            ["put", "    alignas(64) int  x;"]
        );
    }

    #[test]
    fn a_word_longer_than_the_line_loses_its_middle() {
        assert_eq!(wrap("an_endless_word_without_end", 12), ["an_..out_end"]);
    }

    #[test]
    fn labels_stand_before_the_first_line_only() {
        assert_eq!(labelled("fix  ", "one two", 9), ["fix  one", "     two"]);
    }
}
