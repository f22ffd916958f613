//! Restart latency of lines in a state, measured: chains of loads with growing dependent work.

use cohtrace_platform::sys::line_loops::{Block, WORKS};

use crate::{
    knee::{Knee, Worked, knee},
    spread::Spread,
};

/// Blocks without work are timed this many times as often: where there is no fill, nothing else tells so.
const WITHOUT_WORK: usize = 4;

/// What was measured of each amount of work, ticks of the time stamp counter per line.
#[derive(Clone, Debug)]
pub struct Chains {
    rows: Vec<(u32, Spread)>,
}

impl Default for Chains {
    fn default() -> Chains {
        let more = std::iter::repeat_n(0, WITHOUT_WORK - 1);
        let works = more.chain(WORKS);
        Chains {
            rows: works.map(|work| (work, Spread::default())).collect(),
        }
    }
}

impl Chains {
    /// Times each amount of work once, by `watched`, which is given how to, brings the block into its state before, and says
    /// what it took where that is to be kept.
    pub fn time(
        &mut self,
        block: &Block,
        mut watched: impl FnMut(&dyn Fn() -> Option<u64>) -> Option<u64>,
    ) {
        for (work, spread) in &mut self.rows {
            let ticks = watched(&|| block.chained_with_work(*work));
            if let Some(ticks) = ticks.filter(|_| !block.is_empty()) {
                spread.record(ticks as f64 / block.len() as f64);
            }
        }
    }

    /// Adds what others measured.
    pub fn add(&mut self, others: &Chains) {
        for ((_, spread), (_, more)) in self.rows.iter_mut().zip(&others.rows) {
            spread.add(more);
        }
    }

    /// Blocks timed.
    pub fn count(&self) -> u64 {
        self.rows.iter().map(|(_, spread)| spread.count()).sum()
    }

    /// The knee in ticks, if an addition takes so many; `None` where too little was measured.
    pub fn knee(&self, addition_ticks: f64) -> Option<Knee> {
        let point = |(work, spread): &(u32, Spread)| {
            Some(Worked {
                work: f64::from(*work) * addition_ticks,
                time: spread.median()?,
            })
        };
        knee(&self.rows.iter().filter_map(point).collect::<Vec<_>>())
    }
}
