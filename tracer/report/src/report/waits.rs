//! What CPUs did while they waited for a line, if they did not stand at the accessing instruction: sentences.

use super::{access_text::threads_words, model::AccessRow, pairs::place};
use crate::number::percent;

/// Sentences on rows of one line.
pub(super) fn sentences(rows: &[AccessRow]) -> Vec<String> {
    let mut out = Vec::new();
    out.extend(at_barrier(rows));
    out.extend(spinning(rows));
    out
}

fn at_barrier(rows: &[AccessRow]) -> Option<String> {
    let share: f64 = rows.iter().map(|row| row.at_barrier_share).sum();
    (share > 0.0).then(|| {
        format!(
            "For {} of the time the CPU waits at the full barrier behind the store (`mfence`, or a locked instruction): \
             it goes on when the store has its line.",
            percent(share)
        )
    })
}

/// The row that spins most, and who ends its wait.
fn spinning(rows: &[AccessRow]) -> Option<String> {
    let share: f64 = rows.iter().map(|row| row.spinning_share).sum();
    let waiting = (rows.iter()).max_by(|a, b| a.spinning_share.total_cmp(&b.spinning_share))?;
    if waiting.spinning_share <= 0.0 {
        return None;
    }
    let spins = format!(
        "Threads spin for it {} of the time: {} at {}",
        percent(share),
        who(waiting, "waits", "wait"),
        place(&waiting.code)
    );
    Some(match storing(rows, waiting) {
        Some(row) => format!(
            "{spins} until {} at {}.",
            who(row, "stores", "store"),
            place(&row.code)
        ),
        None => format!("{spins}; no store to what it reads was seen."),
    })
}

/// The store to what the row reads that was seen most, rather one by threads that do not wait there.
fn storing<'a>(rows: &'a [AccessRow], waiting: &AccessRow) -> Option<&'a AccessRow> {
    let end = |row: &AccessRow| u16::from(row.offset) + row.size;
    let meets = |row: &&AccessRow| {
        let overlap = u16::from(row.offset) < end(waiting) && u16::from(waiting.offset) < end(row);
        overlap || (row.field.is_some() && row.field == waiting.field)
    };
    let stores = rows.iter().filter(|row| row.op.stores());
    let is_another = |row: &AccessRow| {
        let waits = |tid| waiting.threads.iter().any(|thread| thread.tid == tid);
        row.threads.iter().any(|thread| !waits(thread.tid))
    };
    stores
        .filter(meets)
        .filter(|row| is_another(row) || row.threads.len() > 1 || waiting.threads.len() > 1)
        .max_by_key(|row| (is_another(row), row.count + row.trapped))
}

/// `consumer 4711 waits`, `2 x worker wait`.
fn who(row: &AccessRow, one: &str, several: &str) -> String {
    let verb = if row.threads.len() == 1 { one } else { several };
    format!("{} {verb}", threads_words(&row.threads))
}
