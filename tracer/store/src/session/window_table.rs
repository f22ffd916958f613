//! Watch windows as columns and back.

use parquet::errors::ParquetError;

use super::{error::Damage, part_reader::ColumnSource, part_writer::ColumnSink};
use crate::{
    access::Pid,
    event::{Breadth, Unresolved, WatchedWord, Window, WindowEnd},
};

/// The columns of each watched word: address, process, length.
const WORDS: [[&str; 3]; 4] = [
    ["addr0", "pid0", "len0"],
    ["addr1", "pid1", "len1"],
    ["addr2", "pid2", "len2"],
    ["addr3", "pid3", "len3"],
];

/// Gives all columns. `first` is the number of the first window; `batches` has one batch number per row.
pub(super) fn encode(
    windows: &[Window],
    first: u64,
    batches: &[u64],
    sink: &mut ColumnSink<'_>,
) -> Result<(), ParquetError> {
    if let Some(window) = windows.iter().find(|window| !is_storable(window)) {
        // No reader would take it.
        let text = format!("window {} has words or times that cannot be", window.number);
        return Err(ParquetError::General(text));
    }
    let rows = || windows.iter();
    sink.u64s("seq", (first..).take(windows.len()))?;
    sink.u64s("batch", batches.iter().copied())?;
    sink.u64s("number", rows().map(|row| row.number))?;
    sink.u64s("open_ns", rows().map(|row| row.open_ns))?;
    sink.u64s("end_ns", rows().map(|row| row.end_ns))?;
    sink.u64s("hits", rows().map(|row| row.hits))?;
    sink.u64s("lost", rows().map(|row| row.lost))?;
    sink.u64s("inferred", rows().map(|row| row.inferred))?;
    sink.u64s("cost_ns", rows().map(|row| row.cost_ns))?;
    sink.bools("everyone", rows().map(|row| row.everyone))?;
    sink.u32s("breadth", rows().map(|row| breadth_code(row.breadth)))?;
    sink.u32s("ended_by", rows().map(|row| end_code(row.end)))?;
    for (at, [addr, pid, len]) in WORDS.into_iter().enumerate() {
        let words = || rows().map(move |row| row.words.get(at));
        sink.optional_u64s(addr, words().map(|word| word.map(|word| word.addr)))?;
        sink.optional_u32s(pid, words().map(|word| word.map(|word| word.pid.0)))?;
        sink.optional_u32s(
            len,
            words().map(|word| word.map(|word| u32::from(word.len))),
        )?;
    }
    for reason in Unresolved::ALL {
        let counts = rows().map(|row| row.unresolved.get(&reason).copied());
        sink.optional_u64s(column_of(reason), counts)?;
    }
    Ok(())
}

/// Reads all columns: the number of the first window, the windows, and the batch number of each.
pub(super) fn decode(
    source: &mut ColumnSource<'_>,
) -> Result<(u64, Vec<Window>, Vec<u64>), Damage> {
    let first = source.first_seq()?;
    let batches = source.batches()?;
    let mut windows: Vec<Window> = source.u64s("number")?.into_iter().map(empty).collect();
    for (row, value) in windows.iter_mut().zip(source.u64s("open_ns")?) {
        row.open_ns = value;
    }
    for (n, (row, value)) in windows.iter_mut().zip(source.u64s("end_ns")?).enumerate() {
        if value < row.open_ns {
            return Err(Damage::value("end_ns", n, value));
        }
        row.end_ns = value;
    }
    for (row, value) in windows.iter_mut().zip(source.u64s("hits")?) {
        row.hits = value;
    }
    for (row, value) in windows.iter_mut().zip(source.u64s("lost")?) {
        row.lost = value;
    }
    for (row, value) in windows.iter_mut().zip(source.u64s("inferred")?) {
        row.inferred = value;
    }
    for (row, value) in windows.iter_mut().zip(source.u64s("cost_ns")?) {
        row.cost_ns = value;
    }
    for (row, value) in windows.iter_mut().zip(source.bools("everyone")?) {
        row.everyone = value;
    }
    for (n, (row, value)) in windows.iter_mut().zip(source.u32s("breadth")?).enumerate() {
        row.breadth = breadth_of(value).ok_or_else(|| Damage::value("breadth", n, value))?;
    }
    for (n, (row, value)) in windows.iter_mut().zip(source.u32s("ended_by")?).enumerate() {
        row.end = end_of(value).ok_or_else(|| Damage::value("ended_by", n, value))?;
    }
    for (at, columns) in WORDS.into_iter().enumerate() {
        decode_words(source, columns, at, &mut windows)?;
    }
    for reason in Unresolved::ALL {
        let counts = source.optional_u64s(column_of(reason))?;
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

fn empty(number: u64) -> Window {
    Window {
        number,
        open_ns: 0,
        end_ns: 0,
        words: Vec::new(),
        hits: 0,
        lost: 0,
        unresolved: std::collections::BTreeMap::new(),
        inferred: 0,
        cost_ns: 0,
        everyone: false,
        breadth: Breadth::Cpus,
        end: WindowEnd::Hits,
    }
}

/// The column that counts a reason. A match, so that a new reason does not compile without its column.
fn column_of(reason: Unresolved) -> &'static str {
    match reason {
        Unresolved::NoMemoryOperand => "unresolved_no_memory_operand",
        Unresolved::NoMapping => "unresolved_no_mapping",
        Unresolved::NoModule => "unresolved_no_module",
        Unresolved::NoFunction => "unresolved_no_function",
        Unresolved::NotAnInstruction => "unresolved_not_an_instruction",
        Unresolved::AmbiguousPath => "unresolved_ambiguous_path",
        Unresolved::RegisterOverwritten => "unresolved_register_overwritten",
        Unresolved::SegmentUnknown => "unresolved_segment_unknown",
        Unresolved::KernelText => "unresolved_kernel_text",
        Unresolved::Code32Bit => "unresolved_code_32_bit",
        Unresolved::NoCoveringAccess => "unresolved_no_covering_access",
        Unresolved::NoDataAddress => "unresolved_no_data_address",
        Unresolved::FullBarrier => "unresolved_full_barrier",
    }
}

fn breadth_code(breadth: Breadth) -> u32 {
    match breadth {
        Breadth::Cpus => 0,
        Breadth::Threads => 1,
    }
}

fn breadth_of(code: u32) -> Option<Breadth> {
    [Breadth::Cpus, Breadth::Threads]
        .into_iter()
        .find(|breadth| breadth_code(*breadth) == code)
}

fn end_code(end: WindowEnd) -> u32 {
    match end {
        WindowEnd::Hits => 0,
        WindowEnd::Time => 1,
        WindowEnd::Asked => 2,
        WindowEnd::Gone => 3,
        WindowEnd::CpusChanged => 4,
    }
}

fn end_of(code: u32) -> Option<WindowEnd> {
    [
        WindowEnd::Hits,
        WindowEnd::Time,
        WindowEnd::Asked,
        WindowEnd::Gone,
        WindowEnd::CpusChanged,
    ]
    .into_iter()
    .find(|end| end_code(*end) == code)
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
