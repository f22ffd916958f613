//! Who looked at the run, and so which nothing is 0 and which is not known.

use crate::{
    access::{Access, Basis, Cpu},
    event::Tally,
    statistic::Needs,
};

/// Sources that observed a run.
#[expect(
    clippy::struct_excessive_bools,
    reason = "any of them may have been there, beside any other"
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// The timer.
    pub timer: bool,
    /// A PMU.
    pub pmu: bool,
    /// An emulator.
    pub emulator: bool,
    /// Windows of data breakpoints.
    pub windows: bool,
}

impl Looked {
    /// An access tells who saw it.
    pub(crate) fn saw(&mut self, access: &Access) {
        match access.basis {
            Basis::Stalled | Basis::Decoded | Basis::Harvested => self.timer = true,
            Basis::Sampled => self.pmu = true,
            Basis::Emulated => self.emulator = true,
            Basis::Trapped => self.windows = true,
        }
    }

    /// Why a statistic that needs somebody means nothing here; `None` where it does.
    pub(crate) fn reason(self, needs: Needs) -> Option<&'static str> {
        match needs {
            Needs::Timer if !self.timer => Some("the timer did not sample this run"),
            Needs::Samples if !self.timer && !self.pmu => Some("nobody sampled this run"),
            Needs::Emulator if !self.emulator => {
                Some("no emulator saw this run (record --source emulate)")
            }
            Needs::Windows if !self.windows => Some("no data breakpoints were set in this run"),
            _ => None,
        }
    }
}

/// Why samples may be missing where there are none, of one CPU or of any; `None` where all arrived.
pub(crate) fn missing(tally: &Tally, cpu: Option<Cpu>) -> Option<&'static str> {
    let any = |counts: &std::collections::BTreeMap<Cpu, u64>| match cpu {
        Some(cpu) => counts.get(&cpu).is_some_and(|n| *n > 0),
        None => counts.values().any(|n| *n > 0),
    };
    if any(&tally.blind_ns) {
        Some("nothing arrived, and a CPU was not sampled for some of the run")
    } else if any(&tally.lost) {
        Some("nothing arrived, and samples were lost in the run")
    } else {
        None
    }
}

/// Slices in which a window was open.
#[derive(Clone, Debug, Default)]
pub(crate) struct WindowSlices(Vec<(u32, u32)>);

impl WindowSlices {
    /// A window was open from the first to the last of these.
    pub(crate) fn open(&mut self, first: u32, last: u32) {
        if let Some((_, end)) = self.0.last_mut()
            && first <= end.saturating_add(1)
        {
            *end = last.max(*end);
            return;
        }
        self.0.push((first, last));
    }

    /// Whether there was none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one was open in any part of this.
    pub(crate) fn covers(&self, slice: u32) -> bool {
        let after = self.0.partition_point(|(first, _)| *first <= slice);
        after > 0 && self.0[after - 1].1 >= slice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_cover_the_slices_that_they_are_in_and_no_others() {
        let mut windows = WindowSlices::default();
        windows.open(2, 3);
        windows.open(3, 4);
        windows.open(9, 9);
        let covered: Vec<u32> = (0..12).filter(|slice| windows.covers(*slice)).collect();
        assert_eq!(covered, [2, 3, 4, 9]);
    }
}
