//! Which trapped accesses belong to which window: they come before it, in order of time.
//!
//! ```text
//!   accesses   x  a  a b a  s b a │ a        x before the window was armed: outside
//!   window        [ open ... end ]│          s to another line: still inside, for the line to tell
//!                                 │          a after the end: waits for the next window
//!                                 └ the window's record comes here, or later
//! ```

use std::collections::VecDeque;

use super::window_order::{Trapped, request_log};
use crate::{
    access::{LineKey, LineSize, Place},
    coherence::RequestRow,
    event::{WatchedWord, Window},
};

/// Accesses that wait for their window.
#[derive(Clone, Debug)]
pub struct WindowAccesses {
    line_size: LineSize,
    bound: usize,
    waiting: VecDeque<Trapped>,
    /// Time of the newest access that found no room.
    dropped_ns: Option<u64>,
}

/// A window with its accesses.
#[derive(Clone, Debug)]
pub struct WindowOrder {
    /// The watched line; `None` for a window of no words.
    pub line: Option<LineKey>,
    /// The accesses with `open_ns <= time_ns <= end_ns`, in order; strays to other lines among them.
    pub inside: Vec<Trapped>,
    /// Accesses from before the window, which belong to none.
    pub outside: Vec<Trapped>,
    /// No access of the window was dropped for want of room.
    pub whole: bool,
}

impl WindowAccesses {
    /// At most `bound` accesses wait; beyond it they are dropped.
    pub fn new(line_size: LineSize, bound: usize) -> WindowAccesses {
        WindowAccesses {
            line_size,
            bound,
            waiting: VecDeque::new(),
            dropped_ns: None,
        }
    }

    /// Keeps an access until its window comes; false when there is no room for it.
    pub fn push(&mut self, trapped: Trapped) -> bool {
        let room = self.waiting.len() < self.bound;
        if room {
            self.waiting.push_back(trapped);
        } else {
            self.dropped_ns = self.dropped_ns.max(Some(trapped.access.time_ns));
        }
        room
    }

    /// Accesses that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The accesses of a window that is over; they have all been pushed. `place_of` tells the place of a
    /// watched word, and is asked only when no access of the window tells it: by the time a window's record
    /// comes, its process may be gone.
    pub fn close(
        &mut self,
        window: &Window,
        place_of: impl FnOnce(WatchedWord) -> Place,
    ) -> WindowOrder {
        let mut inside = Vec::new();
        let mut outside = Vec::new();
        while let Some(next) = self.waiting.pop_front() {
            if next.access.time_ns > window.end_ns {
                self.waiting.push_front(next);
                break;
            }
            if next.access.time_ns < window.open_ns {
                outside.push(next);
            } else {
                inside.push(next);
            }
        }
        let told = inside
            .iter()
            .find_map(|trapped| place_of_word(trapped, window));
        let place = told.or_else(|| window.words.first().map(|word| place_of(*word)));
        WindowOrder {
            line: place.map(|place| place.line(self.line_size)),
            inside,
            outside,
            whole: self.dropped_ns.is_none_or(|at| at < window.open_ns),
        }
    }
}

impl WindowOrder {
    /// The window's request log, by the directory protocol from an Idle line. A row's number is that of its
    /// access among the window's; targets and lines are positions in the place's numbering.
    pub fn requests(&self, line_size: LineSize) -> Vec<RequestRow> {
        let Some(line) = self.line else {
            return Vec::new();
        };
        request_log(&self.inside, line, line_size)
    }
}

/// The place of a word that the access touches.
fn place_of_word(trapped: &Trapped, window: &Window) -> Option<Place> {
    let access = &trapped.access;
    let end = access.addr.saturating_add(u64::from(access.size).max(1));
    let touched = |word: &&WatchedWord| {
        let word_end = word.addr.saturating_add(u64::from(word.len));
        let its = window.everyone || word.pid == access.pid;
        its && access.addr < word_end && word.addr < end
    };
    let word = window.words.iter().find(touched)?;
    let position = trapped.place.position();
    let position = position.wrapping_add(word.addr.wrapping_sub(access.addr));
    Some(trapped.place.at(position))
}
