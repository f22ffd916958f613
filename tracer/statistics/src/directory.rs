//! What the directory protocol makes of each access of an emulated run: as the judgement's own directory, so that both
//! count the same messages.

use crate::{
    access::{Access, Cpu, LineKey, LineSize, Place},
    coherence::{Directory, Intent, Lines, Outcome, Protocol},
};

/// Most lines that are followed: 24 bytes each.
const MOST_LINES: usize = 1 << 23;

/// The lines of a run whose every access is seen.
#[derive(Debug)]
pub(crate) struct Directories {
    line_size: LineSize,
    lines: Lines,
    of_line: Vec<Directory>,
    outcomes: Vec<Outcome>,
    untracked: bool,
}

impl Directories {
    /// No line is in any cache.
    pub(crate) fn new(line_size: LineSize) -> Directories {
        Directories {
            line_size,
            lines: Lines::up_to(line_size, MOST_LINES),
            of_line: Vec::new(),
            outcomes: Vec::new(),
            untracked: false,
        }
    }

    /// Serves an access at its place; gives what it took on each line that it touches.
    pub(crate) fn serve(&mut self, access: &Access, place: Place) -> &[Outcome] {
        self.outcomes.clear();
        if let Some(intent) = Intent::of(access.op) {
            for key in lines(access, place, self.line_size) {
                self.serve_line(access.cpu, intent, key);
            }
        }
        &self.outcomes
    }

    /// Whether accesses were left out, on more lines than are followed.
    pub(crate) fn left_out(&self) -> bool {
        self.untracked
    }

    fn serve_line(&mut self, cpu: Cpu, intent: Intent, key: LineKey) {
        let Some(line) = self.lines.line(key) else {
            self.untracked = true;
            return;
        };
        let at = line.id as usize;
        if at >= self.of_line.len() {
            let idle = || Directory::under(Protocol::default());
            self.of_line.resize_with(at + 1, idle);
        }
        if let Some(directory) = self.of_line.get_mut(at) {
            self.outcomes.push(directory.access(cpu, intent));
        }
    }
}

/// The lines that an access touches, or may touch where it is only known to lie within some bytes.
pub(crate) fn lines(
    access: &Access,
    place: Place,
    line_size: LineSize,
) -> impl Iterator<Item = LineKey> {
    let bytes = u64::from(access.size.max(access.within.into())).max(1);
    let last = place.position().saturating_add(bytes - 1);
    let mut next = Some(place);
    std::iter::from_fn(move || {
        let here = next?;
        let key = here.line(line_size);
        let after = key.0.position().checked_add(line_size.bytes());
        next = after
            .filter(|after| *after <= last && place.reaches(*after))
            .map(|after| place.at(after));
        Some(key)
    })
}
