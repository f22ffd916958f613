//! The one line that moves while we watch; only on a terminal.

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

use super::output;
use crate::{
    printable::{cut, printable},
    sys::terminal,
};

/// Between two redraws.
const REDRAW: Duration = Duration::from_millis(250);
/// Columns of a terminal that does not say how many it has.
const COLUMNS: usize = 80;

/// Draws progress on standard error.
pub(super) struct Progress {
    shown: bool,
    drawn: bool,
    last: Instant,
}

impl Progress {
    /// Nothing is drawn when standard error is no terminal, or with `quiet`.
    pub(super) fn new(quiet: bool) -> Progress {
        let shown = !quiet && io::stderr().is_terminal();
        Progress {
            shown,
            drawn: false,
            last: Instant::now(),
        }
    }

    /// Redraws when it is time to; `line` is only made then, and cut to what the terminal shows of it now.
    pub(super) fn update(&mut self, line: impl FnOnce() -> String) {
        if !self.shown || self.last.elapsed() < REDRAW {
            return;
        }
        let columns = terminal::columns(io::stderr()).unwrap_or(COLUMNS);
        let drawn = drawn(&line(), columns, !output::unicode());
        // A terminal that went away is no reason to stop.
        let _ = io::stderr().write_all(drawn.as_bytes());
        self.drawn = true;
        self.last = Instant::now();
    }

    /// Clears the line before something else is printed.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// The line in place of the one before. The last column stays free, since some terminals wrap when it is written.
fn drawn(line: &str, columns: usize, ascii: bool) -> String {
    let line = printable(line, ascii);
    format!("\r\x1b[K{}", cut(&line, columns.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_the_terminal_and_obeys_nobody() {
        assert_eq!(drawn("1.0 s  10 samples", 9, false), "\r\x1b[K1.0 s  1");
        assert_eq!(drawn("1.0 s", 80, false), "\r\x1b[K1.0 s");
        assert_eq!(drawn("漢字漢", 6, false), "\r\x1b[K漢字");
        assert_eq!(
            drawn("a\x1b[31mb\u{202e}c\nd", 80, false),
            "\r\x1b[Ka\\x1b[31mb\\u{202e}c\\x0ad"
        );
        assert_eq!(drawn("größe", 80, true), "\r\x1b[Kgr\\xf6\\xdfe");
    }
}
