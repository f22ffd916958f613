//! Parts made to harm, with a good seal: an error or other rows, never a panic, a hang or the memory gone.

use std::fs;

use parquet::errors::ParquetError;

use super::*;
use crate::session::{
    access_table, allocation_table, context_tables,
    error::Damage,
    origin::Origin,
    part_reader::{ColumnSource, read_part, read_sealed_part},
    part_writer::{ColumnSink, write_part},
    parts::{self, Of},
    schema::{
        ACCESSES, Column, Kind, MAPPINGS, MAX_SEGMENT_ROWS, MAX_SEGMENT_TEXT_BYTES, TABLES, TASKS,
        Table,
    },
    window_table,
};

fn take(table: &Table, source: &mut ColumnSource<'_>) -> Result<(), Damage> {
    match table.name {
        "accesses" => drop(access_table::decode(source)?),
        "mappings" => drop(context_tables::decode_mappings(source)?),
        "local_storage" => drop(context_tables::decode_blocks(source)?),
        "memory" => drop(context_tables::decode_memory(source)?),
        "paces" => drop(context_tables::decode_paces(source)?),
        "allocations" => drop(allocation_table::decode(source)?),
        "windows" => drop(window_table::decode(source)?),
        _ => drop(context_tables::decode_tasks(source)?),
    }
    Ok(())
}

/// Decodes a part as a reader would, but for its seal.
fn decode(table: &'static Table, part: Vec<u8>) -> Result<(), Damage> {
    read_sealed_part(table, part, &Origin::default(), |_, source| {
        take(table, source)
    })
}

fn parts() -> [(&'static Table, Vec<u8>); 8] {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.coh");
    let batches: Vec<Batch> = (0..8).map(batch).collect();
    write(&path, &batches, &WriterOptions::default()).expect("written");
    let part = |table: &Table| fs::read(path.join(table.name).join("part-00000.parquet"));
    TABLES.map(|table| (table, part(table).expect("a part")))
}

/// What became of changed parts.
#[derive(Debug, Default)]
struct Outcomes {
    unnoticed: u32,
    claims: u32,
    panics: u32,
    others: u32,
}

impl Outcomes {
    fn count(&mut self, outcome: &Result<(), Damage>) {
        match outcome {
            Ok(()) => self.unnoticed += 1,
            Err(Damage::Claim { .. }) => self.claims += 1,
            Err(Damage::Panicked) => self.panics += 1,
            Err(_) => self.others += 1,
        }
    }
}

/// Every byte changed in several ways, and every cut, with the seal not looked at. About one in a thousand makes
/// the parquet crate panic, which the reader contains; its messages are part of the test's output.
#[test]
fn no_changed_byte_and_no_cut_gets_past_the_reader_as_a_panic() {
    for (table, part) in parts() {
        assert!(decode(table, part.clone()).is_ok());
        let mut outcomes = Outcomes::default();
        for at in 0..part.len() {
            for mask in [0x01, 0x10, 0x80, 0xff] {
                let mut changed = part.clone();
                changed[at] ^= mask;
                outcomes.count(&decode(table, changed));
            }
            outcomes.count(&decode(table, part[..at].to_vec()));
        }
        println!("{}: {outcomes:?}", table.name);
        assert!(outcomes.claims > 0, "headers were reached: {outcomes:?}");
        assert!(
            outcomes.others > 1000,
            "footer and pages were reached: {outcomes:?}"
        );
    }
}

/// A well-formed, sealed part of zeros (texts empty, nullable columns null), except `column`, which `fill`
/// gives.
pub(super) fn zeros_but(
    table: &'static Table,
    rows: usize,
    column: &str,
    fill: impl Fn(&mut ColumnSink<'_>) -> Result<(), ParquetError>,
) -> Vec<u8> {
    let part = write_part(table, rows, &Origin::default(), "{}".to_owned(), |sink| {
        for Column {
            name, kind, null, ..
        } in table.columns
        {
            match (kind, null) {
                _ if *name == column => fill(sink)?,
                (Kind::Bool, _) => sink.bools(name, std::iter::repeat_n(false, rows))?,
                (Kind::U64, false) if *name == "seq" => sink.u64s(name, 0..rows as u64)?,
                (Kind::U64, false) => sink.u64s(name, std::iter::repeat_n(0, rows))?,
                (Kind::U64, true) => sink.optional_u64s(name, std::iter::repeat_n(None, rows))?,
                (Kind::Text, false) => sink.texts(name, std::iter::repeat_n("", rows))?,
                (Kind::Text, true) => sink.optional_texts(name, std::iter::repeat_n(None, rows))?,
                (_, false) => sink.u32s(name, std::iter::repeat_n(0, rows))?,
                (_, true) => sink.optional_u32s(name, std::iter::repeat_n(None, rows))?,
            }
        }
        Ok(())
    });
    part.expect("a part")
}

pub(super) fn check(table: &'static Table, part: Vec<u8>, expected: &str) {
    let result = read_part(table, part, &Origin::default(), |_, source| {
        take(table, source)
    });
    match result {
        Ok(()) => assert_eq!("read", expected),
        Err(damage) => assert_eq!(damage.to_string(), expected),
    }
}

#[test]
fn values_out_of_range_are_named_with_column_and_row() {
    let access = |column: &'static str, value: u32| {
        zeros_but(&ACCESSES, 3, column, move |sink| {
            sink.u32s(column, [0, 0, value].into_iter())
        })
    };
    check(&ACCESSES, access("op", 5), "read");
    check(
        &ACCESSES,
        access("op", 6),
        "row 2 has op 6, which means nothing",
    );
    check(&ACCESSES, access("basis", 5), "read");
    check(
        &ACCESSES,
        access("basis", 6),
        "row 2 has basis 6, which means nothing",
    );
    check(&ACCESSES, access("size", 65535), "read");
    check(
        &ACCESSES,
        access("size", 65536),
        "row 2 has size 65536, which means nothing",
    );
    let seq = |sink: &mut ColumnSink<'_>| sink.u64s("seq", [0, 1, 3].into_iter());
    let gap = zeros_but(&ACCESSES, 3, "seq", seq);
    check(&ACCESSES, gap, "row 2 has seq 3, which means nothing");
}

#[test]
fn a_task_of_a_kind_has_the_columns_of_that_kind_and_no_others() {
    let kind = |value: u32| {
        zeros_but(&TASKS, 1, "kind", move |sink| {
            sink.u32s("kind", std::iter::once(value))
        })
    };
    check(&TASKS, kind(3), "read");
    for value in [0, 1, 2, 4, 5, u32::MAX] {
        let message = format!("row 0 has kind {value}, which means nothing");
        check(&TASKS, kind(value), &message);
    }
}

#[test]
fn names_that_unpack_to_more_than_a_segment_holds_are_refused() {
    let name = "n".repeat(1 << 20);
    let names = |count: usize| {
        let name = &name;
        zeros_but(&MAPPINGS, count, "name", move |sink| {
            sink.texts("name", std::iter::repeat_n(name.as_str(), count))
        })
    };
    let most = MAX_SEGMENT_TEXT_BYTES >> 20;
    check(&MAPPINGS, names(most), "read");
    let bomb = names(most + 1);
    assert!(bomb.len() < 1 << 20, "it is small: {} bytes", bomb.len());
    check(&MAPPINGS, bomb, "its names exceed 33554432 bytes");
}

#[test]
fn more_rows_than_a_segment_holds_are_refused() {
    let rows = MAX_SEGMENT_ROWS + 1;
    let part = zeros_but(&TASKS, rows, "kind", |sink| {
        sink.u32s("kind", std::iter::repeat_n(3, rows))
    });
    check(
        &TASKS,
        part,
        "it announces 1048577 rows, a segment has at most 1048576",
    );
}

#[test]
fn other_columns_are_refused_by_name() {
    static FEWER: Table = Table {
        name: "tasks",
        max_rows: MAX_SEGMENT_ROWS,
        added: &[],
        columns: TASKS.columns.split_at(9).0,
    };
    static OTHER_TYPE: Table = Table {
        name: "tasks",
        max_rows: MAX_SEGMENT_ROWS,
        added: &[],
        columns: &[Column {
            kind: Kind::U32,
            ..TASKS.columns[0]
        }],
    };
    let part = zeros_but(&FEWER, 1, "", |_| Ok(()));
    check(
        &TASKS,
        part,
        "its columns are not those of table tasks: 9 columns instead of 10",
    );
    let part = zeros_but(&OTHER_TYPE, 1, "", |_| Ok(()));
    check(
        &TASKS,
        part,
        "its columns are not those of table tasks: seq has another type",
    );
    let part = zeros_but(&MAPPINGS, 1, "", |_| Ok(()));
    check(
        &TASKS,
        part,
        "its columns are not those of table tasks: pid where kind should be",
    );
}

#[test]
fn a_part_of_other_counts_than_its_footer_says_is_refused() {
    let facts = |text: &str| {
        let part = write_part(
            &ACCESSES,
            0,
            &Origin::default(),
            text.to_owned(),
            |_| Ok(()),
        )
        .expect("a part");
        parts::decode_accesses(
            part,
            Of {
                origin: &Origin::default(),
                segment: 0,
            },
        )
        .map(|decoded| decoded.whole.tasks)
        .map_err(|damage| damage.to_string())
    };
    let tally = serde_json::to_string(&crate::session::TallyRecord::default()).expect("text");
    let whole = |accesses: u64| {
        format!(
            "{{\"segment\":0,\"whole\":{{\"accesses\":{accesses},\"mappings\":0,\"tasks\":7,\"tally\":{tally}}}}}"
        )
    };
    assert_eq!(facts(&whole(0)), Ok(7));
    assert_eq!(
        facts(&whole(5)),
        Err("it has 0 rows of accesses, 5 expected".to_owned())
    );
    assert_eq!(
        facts("{\"segment\":0}"),
        Err("its footer does not count its segment".to_owned())
    );
    assert!(facts("{").is_err());
}
