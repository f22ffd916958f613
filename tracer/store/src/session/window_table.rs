//! Watch windows as columns and back.

use parquet::errors::ParquetError;

use super::{
    error::Damage,
    part_reader::ColumnSource,
    part_writer::ColumnSink,
    schema::{Column, Placed, Run, WINDOWS, decode_windows, encode_windows},
};
use crate::{
    access::Pid,
    event::{Unresolved, WatchedWord, Window},
};

/// The columns of each watched word (address, process, length), then those of each reason, which are last.
const WORDS_AND_REASONS: &[Column] = {
    let others = WINDOWS.columns.len() - 4 * 3 - Unresolved::ALL.len();
    let columns = WINDOWS.columns.split_at(others).1;
    // So that a new reason does not compile without its column.
    assert!(matches!(columns[0].name.as_bytes(), b"addr0"));
    columns
};
const WORDS: &[[Column; 3]] = WORDS_AND_REASONS.split_at(4 * 3).0.as_chunks().0;

/// Gives all columns.
pub(super) fn encode(
    windows: &[Placed<&Window>],
    sink: &mut ColumnSink<'_>,
) -> Result<(), ParquetError> {
    let rows = || windows.iter().map(|placed| placed.row);
    if let Some(window) = rows().find(|window| !is_storable(window)) {
        // No reader would take it.
        let text = format!("window {} has words or times that cannot be", window.number);
        return Err(ParquetError::General(text));
    }
    encode_windows(windows, sink)?;
    for (at, [addr, pid, len]) in WORDS.iter().enumerate() {
        let words = || rows().map(move |row| row.words.get(at));
        sink.optional_u64s(addr.name, words().map(|word| word.map(|word| word.addr)))?;
        sink.optional_u32s(pid.name, words().map(|word| word.map(|word| word.pid.0)))?;
        let lens = words().map(|word| word.map(|word| u32::from(word.len)));
        sink.optional_u32s(len.name, lens)?;
    }
    for reason in Unresolved::ALL {
        let counts = rows().map(|row| row.unresolved.get(&reason).copied());
        sink.optional_u64s(column_of(reason), counts)?;
    }
    Ok(())
}

/// Reads all columns.
pub(super) fn decode(source: &mut ColumnSource<'_>) -> Result<Run<Window>, Damage> {
    let (first, mut windows, batches) = decode_windows(source)?;
    for (at, columns) in WORDS.iter().enumerate() {
        decode_words(source, columns.map(|column| column.name), at, &mut windows)?;
    }
    for reason in Unresolved::ALL {
        let counts = source.present::<i64>(column_of(reason))?;
        for (row, count) in windows.iter_mut().zip(counts) {
            row.unresolved.extend(count.map(|count| (reason, count)));
        }
    }
    Ok((first, windows, batches))
}

/// Gives each window its word `at`, if it has so many.
fn decode_words(
    source: &mut ColumnSource<'_>,
    [addr, pid, len]: [&'static str; 3],
    at: usize,
    windows: &mut [Window],
) -> Result<(), Damage> {
    let values = source.optional_u64s(addr)?.into_iter();
    let values = values
        .zip(source.optional_u32s(pid)?)
        .zip(source.optional_u32s(len)?);
    for (n, (row, value)) in windows.iter_mut().zip(values).enumerate() {
        let word = match value {
            ((None, None), None) => continue,
            ((Some(address), Some(process)), Some(bytes)) => WatchedWord {
                pid: Pid(process),
                addr: address,
                len: u8::try_from(bytes).map_err(|_| Damage::value(len, n, bytes))?,
            },
            // A word has all three; which of them is wrong cannot be told.
            ((Some(address), _), _) => return Err(Damage::value(addr, n, address)),
            ((None, Some(process)), _) => return Err(Damage::value(pid, n, process)),
            ((None, None), Some(bytes)) => return Err(Damage::value(len, n, bytes)),
        };
        if !is_watchable_len(word.len) {
            return Err(Damage::value(len, n, word.len));
        }
        // Nor is there a word after one that is absent.
        if !is_watchable(word) || row.words.len() != at {
            return Err(Damage::value(addr, n, word.addr));
        }
        row.words.push(word);
    }
    Ok(())
}

/// Counts and time of a window added up; `None` when that overflows.
pub(super) fn total(window: &Window) -> Option<u64> {
    let open_ns = window.end_ns.checked_sub(window.open_ns)?;
    let single = [
        window.hits,
        window.lost,
        window.inferred,
        window.cost_ns,
        open_ns,
    ];
    let counts = window.unresolved.values();
    counts
        .chain(&single)
        .try_fold(0u64, |sum, n| sum.checked_add(*n))
}

fn is_storable(window: &Window) -> bool {
    window.words.len() <= WORDS.len()
        && window.words.iter().all(|word| is_watchable(*word))
        && window.open_ns <= window.end_ns
}

fn is_watchable(word: WatchedWord) -> bool {
    is_watchable_len(word.len) && word.addr.is_multiple_of(u64::from(word.len))
}

/// Lengths of breakpoint registers.
fn is_watchable_len(len: u8) -> bool {
    matches!(len, 1 | 2 | 4 | 8)
}

/// The column that counts a reason.
fn column_of(reason: Unresolved) -> &'static str {
    WORDS_AND_REASONS[4 * 3 + reason as usize].name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::schema::WINDOWS;

    #[test]
    fn every_reason_is_counted_in_the_column_of_its_stable_name() {
        for reason in Unresolved::ALL {
            let column = column_of(reason);
            assert_eq!(column, format!("unresolved_{}", reason.name()));
            assert!(WINDOWS.columns.iter().any(|c| c.name == column), "{column}");
        }
    }
}
