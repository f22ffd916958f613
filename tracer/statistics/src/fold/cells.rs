//! Amounts by key, slice and statistic.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    Event, Key, MOST_CELLS, Options, Refusal, Slices,
    access::Tid,
    slices::round_up,
    statistic::{Amount, Statistic, Sums},
};

/// Where an event belongs, besides the whole: the number of its key, and its slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) key: Option<u32>,
    pub(super) slice: u32,
}

/// Number of the row for everything.
pub(super) const ALL: u32 = 0;

/// A row is a key and a slice; only those are kept in which something was.
pub(super) struct Cells {
    statistics: Vec<&'static dyn Statistic>,
    slices: Slices,
    last_slice: u32,
    /// Keys will be put together: they count by what is kept, not by the table that they would be.
    to_be_named: bool,
    keys: FxHashMap<Key, u32>,
    /// By number of the key and slice: which row of `amounts`.
    rows: FxHashMap<(u32, u32), usize>,
    amounts: Vec<Amount>,
    /// By row: whether a sample was in it.
    sampled: Vec<bool>,
    /// By key: of the whole run.
    totals: Vec<Amount>,
    /// Who was counted, where different ones are: statistic, key, slice or none for the whole run, thread.
    counted: FxHashSet<(usize, u32, Option<u32>, Tid)>,
}

impl Cells {
    pub(super) fn new(options: &Options) -> Result<Cells, Refusal> {
        let mut cells = Cells {
            statistics: options.statistics.clone(),
            slices: options.slices,
            last_slice: options.slices.known_count().unwrap_or(1).saturating_sub(1),
            to_be_named: options.per.is_by_name(),
            keys: FxHashMap::default(),
            rows: FxHashMap::default(),
            amounts: Vec::new(),
            sampled: Vec::new(),
            totals: Vec::new(),
            counted: FxHashSet::default(),
        };
        cells.key(Key::All);
        cells.check()?;
        Ok(cells)
    }

    /// Where an event of a key belongs.
    pub(super) fn at(&mut self, key: Option<Key>, slice: u32) -> Result<At, Refusal> {
        let keys = self.keys.len();
        let key = key.map(|key| self.key(key));
        let later = slice > self.last_slice;
        self.last_slice = self.last_slice.max(slice);
        if later || self.keys.len() > keys || self.to_be_named {
            self.check()?;
        }
        Ok(At { key, slice })
    }

    fn key(&mut self, key: Key) -> u32 {
        let next = self.keys.len() as u32;
        let number = *self.keys.entry(key).or_insert(next);
        if number == next {
            let row = std::iter::repeat_n(Amount::default(), self.statistics.len());
            self.totals.extend(row);
        }
        number
    }

    fn check(&self) -> Result<(), Refusal> {
        let of_slice = self.statistics.len() as u64 * self.keys.len() as u64;
        let slices = u64::from(self.last_slice) + 1;
        // Different threads are kept one by one.
        let kept = of_slice
            .saturating_mul(slices)
            .max(self.counted.len() as u64);
        if kept <= MOST_CELLS {
            return Ok(());
        }
        let most_slices = MOST_CELLS / of_slice.max(1);
        let run_ns = (self.slices.duration_ns())
            .unwrap_or_else(|| slices.saturating_mul(self.slices.interval_ns().unwrap_or(1)));
        let would_do = most_slices > 0 && slices > most_slices;
        Err(Refusal::TooManyValues {
            most: MOST_CELLS,
            statistics: self.statistics.len() as u64,
            keys: self.keys.len() as u64,
            slices,
            interval_ns: would_do.then(|| round_up(run_ns.div_ceil(most_slices))),
        })
    }

    /// Counts an event of a thread for the whole and for its key.
    pub(super) fn add(&mut self, at: At, tid: Tid, event: &Event<'_>) {
        let width = self.statistics.len();
        // Most events count for few statistics: a row is looked for when it is needed, and once.
        let mut rows = [(Some(ALL), None), (at.key, None)];
        for column in 0..width {
            let statistic = self.statistics[column];
            let Some(amount) = statistic.counts(event) else {
                continue;
            };
            let different = statistic.sums() == Sums::Different;
            for (key, row) in &mut rows {
                let Some(key) = *key else {
                    continue;
                };
                if !different || self.is_new(column, key, Some(at.slice), tid) {
                    let row = *row.get_or_insert_with(|| self.row(key, at.slice));
                    add_to(&mut self.amounts, row * width + column, amount);
                }
                if !different || self.is_new(column, key, None, tid) {
                    let at = key as usize * width + column;
                    add_to(&mut self.totals, at, amount);
                }
            }
        }
    }

    /// A sample was here.
    pub(super) fn mark_sampled(&mut self, at: At) {
        for key in std::iter::once(ALL).chain(at.key) {
            let row = self.row(key, at.slice);
            if let Some(sampled) = self.sampled.get_mut(row) {
                *sampled = true;
            }
        }
    }

    fn is_new(&mut self, column: usize, key: u32, slice: Option<u32>, tid: Tid) -> bool {
        self.counted.insert((column, key, slice, tid))
    }

    fn row(&mut self, key: u32, slice: u32) -> usize {
        let next = self.sampled.len();
        let row = *self.rows.entry((key, slice)).or_insert(next);
        if row == next {
            self.sampled.push(false);
            let row = std::iter::repeat_n(Amount::default(), self.statistics.len());
            self.amounts.extend(row);
        }
        row
    }

    /// As [`Refusal::TooManyValues`] says, of the keys that there are at the end.
    pub(super) fn check_table(&mut self) -> Result<(), Refusal> {
        self.to_be_named = false;
        self.check()
    }

    /// Keys that are to be another key become it, and what was counted for them adds up.
    pub(super) fn merge(&mut self, names: &FxHashMap<Key, Key>) {
        let old = std::mem::take(&mut self.keys);
        let (rows, amounts) = (
            std::mem::take(&mut self.rows),
            std::mem::take(&mut self.amounts),
        );
        let sampled = std::mem::take(&mut self.sampled);
        let totals = std::mem::take(&mut self.totals);
        let counted = std::mem::take(&mut self.counted);
        let width = self.statistics.len();
        let mut numbers = vec![ALL; old.len()];
        let mut in_order: Vec<(Key, u32)> = old.into_iter().collect();
        in_order.sort_unstable_by_key(|(_, number)| *number);
        for (key, number) in in_order {
            let new = self.key(names.get(&key).copied().unwrap_or(key));
            if let Some(place) = numbers.get_mut(number as usize) {
                *place = new;
            }
            let of_key = totals.iter().skip(number as usize * width).take(width);
            for (column, amount) in of_key.enumerate() {
                self.add_up(new as usize * width + column, *amount, column, true);
            }
        }
        let number = |key: u32| numbers.get(key as usize).copied().unwrap_or(ALL);
        for ((key, slice), row) in rows {
            let new = self.row(number(key), slice);
            if let (Some(here), Some(true)) = (self.sampled.get_mut(new), sampled.get(row)) {
                *here = true;
            }
            let of_row = amounts.iter().skip(row * width).take(width);
            for (column, amount) in of_row.enumerate() {
                self.add_up(new * width + column, *amount, column, false);
            }
        }
        for (column, key, slice, tid) in counted {
            let key = number(key);
            if self.is_new(column, key, slice, tid) {
                if let Some(slice) = slice {
                    let at = self.row(key, slice) * width + column;
                    add_to(&mut self.amounts, at, Amount::count(1));
                } else {
                    let at = key as usize * width + column;
                    add_to(&mut self.totals, at, Amount::count(1));
                }
            }
        }
    }

    /// Different ones do not add up: they are counted again.
    fn add_up(&mut self, at: usize, amount: Amount, column: usize, total: bool) {
        let statistic = self.statistics.get(column);
        if statistic.is_some_and(|statistic| statistic.sums() != Sums::Different) {
            let amounts = if total {
                &mut self.totals
            } else {
                &mut self.amounts
            };
            add_to(amounts, at, amount);
        }
    }

    /// Keys with their numbers, in order.
    pub(super) fn keys(&self) -> Vec<(Key, u32)> {
        let mut keys: Vec<(Key, u32)> = self.keys.iter().map(|(k, n)| (*k, *n)).collect();
        keys.sort_unstable();
        keys
    }

    /// Slices of each key.
    pub(super) fn slice_count(&self) -> u32 {
        self.last_slice.saturating_add(1)
    }

    /// What a statistic counted in a slice, and whether a sample was there; `None` where nothing was at all.
    pub(super) fn get(&self, key: u32, slice: u32, column: usize) -> Option<(Amount, bool)> {
        let row = *self.rows.get(&(key, slice))?;
        let amount = self.amounts.get(row * self.statistics.len() + column)?;
        Some((*amount, self.sampled.get(row).copied().unwrap_or(false)))
    }

    /// What a statistic counted in the whole run.
    pub(super) fn total(&self, key: u32, column: usize) -> Amount {
        let at = key as usize * self.statistics.len() + column;
        self.totals.get(at).copied().unwrap_or_default()
    }

    /// Statistics by column.
    pub(super) fn statistics(&self) -> &[&'static dyn Statistic] {
        &self.statistics
    }
}

fn add_to(amounts: &mut [Amount], at: usize, amount: Amount) {
    if let Some(sum) = amounts.get_mut(at) {
        sum.add(amount);
    }
}
