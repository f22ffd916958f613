//! The one line that moves while we watch; only on a terminal.

use std::{
    io::{IsTerminal, Write},
    time::{Duration, Instant},
};

/// Between two redraws.
const REDRAW: Duration = Duration::from_millis(250);
/// Columns a line may take: one less than the narrowest common terminal, so that it never wraps.
const COLUMNS: usize = 79;

/// Draws progress on standard error.
pub struct Progress {
    shown: bool,
    drawn: bool,
    last: Instant,
}

impl Progress {
    /// Nothing is drawn when standard error is no terminal, or with `quiet`.
    pub fn new(quiet: bool) -> Progress {
        let shown = !quiet && std::io::stderr().is_terminal();
        Progress {
            shown,
            drawn: false,
            last: Instant::now(),
        }
    }

    /// Redraws when it is time to; `line` is only made then.
    pub fn update(&mut self, line: impl FnOnce() -> String) {
        if !self.shown || self.last.elapsed() < REDRAW {
            return;
        }
        let text: String = line()
            .chars()
            .filter(|c| !c.is_control())
            .take(COLUMNS)
            .collect();
        // A terminal that went away is no reason to stop.
        let _ = write!(std::io::stderr(), "\r\x1b[K{text}");
        let _ = std::io::stderr().flush();
        self.drawn = true;
        self.last = Instant::now();
    }

    /// Clears the line before something else is printed.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
