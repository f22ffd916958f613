//! Who uses which bytes of one object, from the rows of all lines that it is on.

use std::collections::BTreeSet;

use super::model::Use;
use crate::{
    access::LineKey,
    report::model::{AccessRow, Thread},
};

/// Uses listed for one member.
const MOST_USES: usize = 8;

/// Bytes of the object, and who uses them.
pub(super) struct Used {
    pub(super) start: u64,
    pub(super) end: u64,
    /// As the report names it, the object's name taken off.
    path: Option<String>,
    row: AccessRow,
}

/// All uses of an object of `size` bytes that starts at `position` of its place's numbering.
#[derive(Default)]
pub(super) struct Uses(Vec<Used>);

impl Uses {
    /// Adds the rows of a line, those that touch the object.
    pub(super) fn add(
        &mut self,
        line: LineKey,
        rows: &[AccessRow],
        (position, size): (u64, u64),
        name: Option<&str>,
    ) {
        // Which member a row of unknown bytes uses is not known either.
        for row in rows.iter().filter(|row| row.within.is_none()) {
            let first = line.0.position().saturating_add(u64::from(row.offset));
            let last = first.saturating_add(u64::from(row.size.max(1)));
            let (first, last) = (first.max(position), last.min(position.saturating_add(size)));
            if first >= last {
                continue;
            }
            let field = row.field.as_deref();
            self.0.push(Used {
                start: first - position,
                end: last - position,
                path: field.map(|field| {
                    let part = name.and_then(|name| field.strip_prefix(name));
                    part.unwrap_or(field).to_owned()
                }),
                row: row.clone(),
            });
        }
    }

    fn within(&self, start: u64, end: u64) -> impl Iterator<Item = &Used> {
        self.0
            .iter()
            .filter(move |used| used.start < end && used.end > start)
    }

    /// Indices of the elements of an array that are used, in order.
    pub(super) fn elements(&self, base: u64, stride: u64, end: u64, most: usize) -> Vec<u64> {
        let mut found = BTreeSet::new();
        if stride == 0 {
            return Vec::new();
        }
        for used in self.within(base, end) {
            let first = used.start.saturating_sub(base) / stride;
            let last = (used.end.min(end) - 1).saturating_sub(base) / stride;
            found.extend((first..=last).take(most));
        }
        found.into_iter().take(most).collect()
    }

    /// What is done to a member. Where several share the bytes (`shared_place`), a use that names one of them is
    /// that one's alone.
    pub(super) fn of(&self, start: u64, end: u64, path: &str, shared_place: bool) -> Vec<Use> {
        let meant = |used: &&Used| match &used.path {
            Some(named) if shared_place && is_one_member(named) => named == path,
            _ => true,
        };
        sum(self.within(start, end).filter(meant).map(|used| &used.row))
    }

    /// What touches bytes that no member has, and nothing else.
    pub(super) fn in_hole(&self, start: u64, end: u64) -> Vec<Use> {
        let alone = |used: &&Used| used.start >= start && used.end <= end;
        let rows = self.0.iter().filter(alone);
        sum(rows.map(|used| &used.row))
    }

    /// Threads that touch any of the bytes, and whether some store there and there are others.
    pub(super) fn threads(&self, start: u64, end: u64) -> (Vec<Thread>, bool) {
        let mut threads: Vec<Thread> = Vec::new();
        let mut stored = false;
        for used in self.within(start, end) {
            stored |= used.row.op.stores();
            for thread in &used.row.threads {
                if !threads
                    .iter()
                    .any(|known| (known.pid, known.tid) == (thread.pid, thread.tid))
                {
                    threads.push(thread.clone());
                }
            }
        }
        threads.sort_by_key(|thread| (thread.pid, thread.tid));
        let shared = stored && threads.len() > 1;
        (threads, shared)
    }
}

/// One use for all rows of the same threads and direction, costliest first.
fn sum<'a>(rows: impl Iterator<Item = &'a AccessRow>) -> Vec<Use> {
    let mut sums: Vec<Use> = Vec::new();
    for row in rows {
        let same = |sum: &&mut Use| sum.op == row.op && sum.threads == row.threads;
        if let Some(sum) = sums.iter_mut().find(same) {
            sum.cost_share += row.cost_share;
            sum.count += row.count;
            sum.trapped += row.trapped;
        } else {
            sums.push(Use {
                op: row.op,
                threads: row.threads.clone(),
                cost_share: row.cost_share,
                count: row.count,
                trapped: row.trapped,
            });
        }
    }
    sums.sort_by(|a, b| {
        b.cost_share
            .total_cmp(&a.cost_share)
            .then(b.count.cmp(&a.count))
    });
    sums.truncate(MOST_USES);
    sums
}

/// Whether a path is that of one member, not of several (`.a or .b`, `.a to .c`) or of padding.
fn is_one_member(path: &str) -> bool {
    !path.contains(' ')
}
