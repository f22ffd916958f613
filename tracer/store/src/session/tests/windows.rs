//! Watch windows: with their accesses or not at all, in good order, and absent from sessions of version 1.

use std::fs;

use super::{
    hostile::{check, zeros_but},
    *,
};
use crate::session::{
    error::Damage,
    origin::Origin,
    part_reader::read_part,
    part_writer::{ColumnSink, write_part},
    schema::{ACCESSES, Column, Kind, MAPPINGS, MAX_SEGMENT_WINDOWS, TABLES, Table, WINDOWS},
};

/// Windows of which the columns in `given` are as given, the others 0 or null.
fn row(given: &'static [(&'static str, u64)]) -> Vec<u8> {
    let value = |name: &str| given.iter().find(|(given, _)| *given == name);
    let part = write_part(
        &WINDOWS,
        2,
        &Origin::default(),
        "{}".to_owned(),
        |sink: &mut ColumnSink<'_>| {
            for Column {
                name, kind, null, ..
            } in WINDOWS.columns
            {
                let given = value(name).map(|(_, value)| *value);
                let second = given.unwrap_or(u64::from(*name == "seq"));
                let short = given.map(|value| value as u32);
                match (kind, null) {
                    (Kind::Bool, _) => sink.bools(name, [false, second != 0].into_iter())?,
                    (Kind::U64, false) => sink.u64s(name, [0, second].into_iter())?,
                    (Kind::U64, true) => sink.optional_u64s(name, [None, given].into_iter())?,
                    (_, false) => sink.u32s(name, [0, second as u32].into_iter())?,
                    (_, true) => sink.optional_u32s(name, [None, short].into_iter())?,
                }
            }
            Ok(())
        },
    );
    part.expect("a part")
}

/// Columns as [`row`] wants them, and what reading says.
type Case = (&'static [(&'static str, u64)], &'static str);

#[test]
fn values_that_no_window_has_are_named_with_column_and_row() {
    let cases: &[Case] = &[
        (&[("breadth", 1)], "read"),
        (&[("breadth", 2)], "row 1 has breadth 2"),
        (&[("ended_by", 4)], "read"),
        (&[("ended_by", 5)], "row 1 has ended_by 5"),
        (&[("open_ns", 5), ("end_ns", 5)], "read"),
        (&[("open_ns", 5), ("end_ns", 4)], "row 1 has end_ns 4"),
        (&[("seq", 2)], "row 1 has seq 2"),
        (&[("batch", 7)], "read"),
        (
            &[("batch", u64::MAX)],
            "row 1 has batch 18446744073709551615",
        ),
        (&[("addr0", 16), ("pid0", 9), ("len0", 8)], "read"),
        (
            &[("addr0", 12), ("pid0", 9), ("len0", 8)],
            "row 1 has addr0 12",
        ),
        (&[("addr0", 12), ("pid0", 9), ("len0", 4)], "read"),
        (
            &[("addr0", 0), ("pid0", 9), ("len0", 0)],
            "row 1 has len0 0",
        ),
        (
            &[("addr0", 0), ("pid0", 9), ("len0", 3)],
            "row 1 has len0 3",
        ),
        (
            &[("addr0", 0), ("pid0", 9), ("len0", 16)],
            "row 1 has len0 16",
        ),
        (
            &[("addr0", 0), ("pid0", 9), ("len0", 264)],
            "row 1 has len0 264",
        ),
        (&[("addr0", 16), ("pid0", 9)], "row 1 has addr0 16"),
        (&[("addr0", 16), ("len0", 8)], "row 1 has addr0 16"),
        (&[("pid0", 9), ("len0", 8)], "row 1 has pid0 9"),
        (&[("len0", 8)], "row 1 has len0 8"),
        // The second word without the first.
        (
            &[("addr1", 16), ("pid1", 9), ("len1", 8)],
            "row 1 has addr1 16",
        ),
        (&[("unresolved_no_module", 0)], "read"),
    ];
    for (given, expected) in cases {
        let expected = match *expected {
            "read" => "read".to_owned(),
            value => format!("{value}, which means nothing"),
        };
        check(&WINDOWS, row(given), &expected);
    }
}

#[test]
fn windows_of_batches_that_go_backwards_are_refused_by_row() {
    let part = zeros_but(&WINDOWS, 3, "batch", |sink| {
        sink.u64s("batch", [4, 5, 4].into_iter())
    });
    check(&WINDOWS, part, "row 2 has batch 4, which means nothing");
}

#[test]
fn more_windows_than_a_segment_holds_are_refused() {
    let part = zeros_but(&WINDOWS, MAX_SEGMENT_WINDOWS + 1, "", |_| Ok(()));
    check(
        &WINDOWS,
        part,
        "it announces 65537 rows, a segment has at most 65536",
    );
}

#[test]
fn windows_that_no_reader_would_take_are_not_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let written = |name: &str, window: Window| {
        let windows = vec![window];
        let batch = Batch {
            windows,
            ..batch(0)
        };
        let path = directory.path().join(name);
        let written = write(&path, &[batch], &WriterOptions::default());
        written.map_err(|error| error.to_string())
    };
    let four = window(4);
    assert_eq!(four.words.len(), 4);
    assert_eq!(written("four", four.clone()), Ok(()));
    let word = four.words[0];
    let five = Window {
        words: vec![word; 5],
        ..four.clone()
    };
    let odd = Window {
        words: vec![WatchedWord { len: 3, ..word }],
        ..four.clone()
    };
    let backwards = Window {
        end_ns: four.open_ns - 1,
        ..four
    };
    for (name, window) in [("five", five), ("odd", odd), ("backwards", backwards)] {
        let error = written(name, window).expect_err(name);
        assert!(error.contains("window 4 has words or times"), "{error}");
    }
}

#[test]
fn windows_whose_counts_overflow_are_damage() {
    let directory = tempfile::tempdir().expect("a directory");
    let read = |name: &str, hits: [u64; 2]| {
        let path = directory.path().join(name);
        let batches = hits.map(|hits| Batch {
            windows: vec![Window {
                hits,
                lost: 0,
                inferred: 0,
                cost_ns: 0,
                unresolved: std::collections::BTreeMap::new(),
                end_ns: 0,
                open_ns: 0,
                ..window(0)
            }],
            ..Batch::default()
        });
        let options = WriterOptions {
            segment_rows: 1,
            ..WriterOptions::default()
        };
        write(&path, &batches, &options).expect("written");
        read(&path).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(read("most", [u64::MAX, 0]), Ok(()));
    let error = read("more", [u64::MAX, 1]).expect_err("overflows");
    assert!(
        error.contains("windows/part-00001.parquet is damaged: its counts overflow"),
        "{error}"
    );
}

/// Killed between any two renames: the last segment has neither windows nor accesses, or both.
#[test]
fn no_window_is_read_without_its_accesses_and_no_access_without_its_windows() {
    for written in 0..TABLES.len() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("s.coh");
        let two = [batch(0), batch(1)];
        write_and_die(&path, &two);
        for table in &TABLES[written..] {
            fs::remove_file(path.join(table.name).join("part-00001.parquet")).expect("was there");
        }
        let meta = fs::read_to_string(path.join("meta.json")).expect("a meta");
        let before = meta.replace("\"segments\": 2", "\"segments\": 1");
        assert_ne!(meta, before);
        fs::write(path.join("meta.json"), before).expect("room");
        let (back, _) = read(&path).expect("reads");
        assert_eq!(back, batch(0), "{written} parts of segment 1");
    }
    let last = TABLES.last().map(|table| table.name);
    assert_eq!(last, Some(ACCESSES.name), "the order in which parts appear");
}

#[test]
fn windows_of_a_batch_in_pieces_come_after_all_its_accesses() {
    let directory = tempfile::tempdir().expect("a directory");
    for segment_rows in [1, 6, 7, 10, 21, 22] {
        let path = directory.path().join(format!("{segment_rows}.coh"));
        let large = Batch {
            windows: (0..5).map(window).collect(),
            ..batch(1)
        };
        let options = WriterOptions {
            segment_rows,
            ..WriterOptions::default()
        };
        write(&path, std::slice::from_ref(&large), &options).expect("written");
        let mut reader = SessionReader::open(&path).expect("a session");
        let (mut accesses, mut pieces) = (0, 0);
        let mut piece = Batch::default();
        while reader.next_batch(&mut piece).expect("undamaged") {
            pieces += 1;
            accesses += piece.accesses.len();
            assert!(piece.windows.is_empty() || accesses == large.accesses.len());
            let rows = piece.accesses.len() + piece.context.len() + piece.windows.len();
            let rows = rows + piece.allocations.len();
            assert!(rows <= segment_rows, "{rows} of {segment_rows}");
        }
        assert_eq!(pieces, 32usize.div_ceil(segment_rows));
        assert_eq!(read(&path).expect("reads").0, large);
    }
}

#[test]
fn more_windows_than_a_segment_holds_are_cut_and_come_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.coh");
    let large = Batch {
        windows: vec![window(3); MAX_SEGMENT_WINDOWS + 1],
        ..batch(0)
    };
    write(
        &path,
        std::slice::from_ref(&large),
        &WriterOptions::default(),
    )
    .expect("written");
    assert!(read(&path).expect("reads").0 == large);
    assert!(path.join("windows/part-00001.parquet").exists());
    assert!(!path.join("windows/part-00002.parquet").exists());
}

/// Makes of a session without these tables what an older version wrote: no table, no count of it in parts and
/// tallies, another number.
fn to_version(version: u32, path: &Path, tables: &[&str]) {
    for table in tables {
        fs::remove_dir(path.join(table)).expect("an empty folder");
    }
    let meta = path.join("meta.json");
    let text = fs::read_to_string(&meta).expect("a meta");
    let mut old: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    old["schema_version"] = version.into();
    let tally = old["tally"].as_object_mut().expect("a tally");
    tally.remove("heap").expect("counts of the heap");
    fs::write(&meta, old.to_string()).expect("room");
    for entry in fs::read_dir(path.join("accesses")).expect("a folder") {
        let part = entry.expect("an entry").path();
        let bytes = fs::read(&part).expect("a part");
        fs::write(&part, without_counts(bytes, tables)).expect("room");
    }
    for entry in fs::read_dir(path.join("mappings")).expect("a folder") {
        let part = entry.expect("an entry").path();
        let bytes = fs::read(&part).expect("a part");
        fs::write(&part, without_build_ids(bytes)).expect("room");
    }
}

/// The part with the same rows, without what recordings of other machines say of files.
fn without_build_ids(part: Vec<u8>) -> Vec<u8> {
    let old_columns = &MAPPINGS.columns[..MAPPINGS.columns.len() - MAPPINGS.added[0]];
    let mut texts = Vec::new();
    let (facts, numbers) = read_part(&MAPPINGS, part, &Origin::default(), |facts, source| {
        let mut numbers = Vec::new();
        for column in old_columns {
            let values = match column.kind {
                Kind::U64 => source.u64s(column.name)?,
                Kind::Bool => source
                    .bools(column.name)?
                    .into_iter()
                    .map(u64::from)
                    .collect(),
                Kind::Text => {
                    texts = source.texts(column.name)?;
                    Vec::new()
                }
                _ => source
                    .u32s(column.name)?
                    .into_iter()
                    .map(u64::from)
                    .collect(),
            };
            numbers.push(values);
        }
        Ok::<_, Damage>((facts.to_owned(), numbers))
    })
    .expect("as written");
    let table: &'static Table = Box::leak(Box::new(Table {
        columns: old_columns,
        ..MAPPINGS
    }));
    write_part(table, texts.len(), &Origin::default(), facts, |sink| {
        for (column, values) in old_columns.iter().zip(&numbers) {
            let values = values.iter().copied();
            match column.kind {
                Kind::U64 => sink.u64s(column.name, values)?,
                Kind::Bool => sink.bools(column.name, values.map(|value| value == 1))?,
                Kind::Text => sink.texts(column.name, texts.iter().map(String::as_str))?,
                _ => sink.u32s(column.name, values.map(|value| value as u32))?,
            }
        }
        Ok(())
    })
    .expect("a part")
}

/// The part with the same rows, without what PMUs measure, and a footer that does not count rows of these tables, nor anything of heaps.
fn without_counts(part: Vec<u8>, tables: &[&str]) -> Vec<u8> {
    let old_columns = &ACCESSES.columns[..ACCESSES.columns.len() - ACCESSES.added[0]];
    let (old, columns) = read_part(&ACCESSES, part, &Origin::default(), |facts, source| {
        let mut old: serde_json::Value = serde_json::from_str(facts).expect("JSON");
        let whole = old["whole"].as_object_mut().expect("the counts");
        for table in tables {
            assert_eq!(whole.remove(*table), Some(0.into()));
        }
        let tally = whole["tally"].as_object_mut().expect("a tally");
        tally.remove("heap").expect("counts of the heap");
        let old = old.to_string();
        let mut columns = Vec::new();
        for column in old_columns {
            columns.push(match column.kind {
                Kind::U64 => source.u64s(column.name)?,
                Kind::Bool => source
                    .bools(column.name)?
                    .into_iter()
                    .map(u64::from)
                    .collect(),
                _ => source
                    .u32s(column.name)?
                    .into_iter()
                    .map(u64::from)
                    .collect(),
            });
        }
        Ok::<_, Damage>((old, columns))
    })
    .expect("as written");
    let table: &'static Table = Box::leak(Box::new(Table {
        columns: old_columns,
        ..ACCESSES
    }));
    write_part(table, columns[0].len(), &Origin::default(), old, |sink| {
        for (column, values) in old_columns.iter().zip(&columns) {
            let values = values.iter().copied();
            match column.kind {
                Kind::U64 => sink.u64s(column.name, values)?,
                Kind::Bool => sink.bools(column.name, values.map(|value| value == 1))?,
                _ => sink.u32s(column.name, values.map(|value| value as u32))?,
            }
        }
        Ok(())
    })
    .expect("a part")
}

#[test]
fn sessions_of_earlier_versions_read_as_they_did_and_have_no_rows_of_later_tables() {
    for (version, tables) in [
        (
            1,
            &["windows", "local_storage", "memory", "allocations"][..],
        ),
        (2, &["local_storage", "memory", "allocations"]),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("s.coh");
        let batches = [0, 1].map(|n| {
            let mut batch = super::allocations::batch_without(n);
            if version < 2 {
                batch.windows.clear();
            }
            let is_later = |event: &Context| {
                let kind = &event.kind;
                matches!(
                    kind,
                    ContextKind::LocalStorage { .. }
                        | ContextKind::Memory { .. }
                        | ContextKind::Pace(_)
                )
            };
            batch.context.retain(|event| !is_later(event));
            batch
        });
        write(&path, &batches, &WriterOptions::default()).expect("written");
        to_version(version, &path, tables);
        let (back, caveats) = read(&path).expect("reads");
        assert_eq!(back, joined(&batches));
        assert_eq!(caveats, Vec::<String>::new());
        let reader = SessionReader::open(&path).expect("a session");
        assert_eq!(
            reader.meta().schema_version,
            SCHEMA_VERSION,
            "in today's shape"
        );
    }
}

/// The part of accesses as an older version wrote it, which lacks so many of the last columns.
fn without_last_columns(part: Vec<u8>, lacks: usize) -> Vec<u8> {
    let old_columns = &ACCESSES.columns[..ACCESSES.columns.len() - lacks];
    let (facts, columns) = read_part(&ACCESSES, part, &Origin::default(), |facts, source| {
        let mut columns = Vec::new();
        for column in old_columns {
            let values: Vec<Option<u64>> = match (column.null, column.kind) {
                (true, Kind::U64) => source.optional_u64s(column.name)?,
                (true, _) => {
                    let values = source.optional_u32s(column.name)?.into_iter();
                    values.map(|value| value.map(u64::from)).collect()
                }
                (false, Kind::U64) => source.u64s(column.name)?.into_iter().map(Some).collect(),
                (false, Kind::Bool) => {
                    let values = source.bools(column.name)?.into_iter();
                    values.map(|value| Some(value.into())).collect()
                }
                (false, _) => {
                    let values = source.u32s(column.name)?.into_iter();
                    values.map(|value| Some(value.into())).collect()
                }
            };
            columns.push(values);
        }
        Ok::<_, Damage>((facts.to_owned(), columns))
    })
    .expect("as written");
    let table: &'static Table = Box::leak(Box::new(Table {
        columns: old_columns,
        added: &[],
        ..ACCESSES
    }));
    write_part(table, columns[0].len(), &Origin::default(), facts, |sink| {
        for (column, values) in old_columns.iter().zip(&columns) {
            let optional = values.iter().copied();
            let present = values.iter().flatten().copied();
            match (column.null, column.kind) {
                (true, Kind::U64) => sink.optional_u64s(column.name, optional)?,
                (true, _) => {
                    let values = optional.map(|value| value.map(|value| value as u32));
                    sink.optional_u32s(column.name, values)?;
                }
                (false, Kind::U64) => sink.u64s(column.name, present)?,
                (false, Kind::Bool) => sink.bools(column.name, present.map(|value| value == 1))?,
                (false, _) => sink.u32s(column.name, present.map(|value| value as u32))?,
            }
        }
        Ok(())
    })
    .expect("a part")
}

#[test]
fn what_an_older_session_does_not_say_of_an_access_is_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    for (version, lacks) in [(4, 4), (5, 3)] {
        let path = directory.path().join(format!("{version}.coh"));
        let mut written = batch(0);
        for (n, access) in (1u8..).zip(&mut written.accesses) {
            access.measured.repeats = n.into();
            access.measured.latency_cycles = std::num::NonZeroU32::new(n.into());
            access.within = n;
            access.wait = Wait::ALL[usize::from(n % 3)];
            access.instead = n;
        }
        write(
            &path,
            std::slice::from_ref(&written),
            &WriterOptions::default(),
        )
        .expect("written");
        assert_eq!(read(&path).expect("reads").0.accesses, written.accesses);
        let part = path.join("accesses/part-00000.parquet");
        let old = without_last_columns(fs::read(&part).expect("a part"), lacks);
        fs::write(&part, old).expect("room");
        let meta = path.join("meta.json");
        let text = fs::read_to_string(&meta).expect("a meta");
        let today = format!("\"schema_version\": {SCHEMA_VERSION}");
        let text = text.replace(&today, &format!("\"schema_version\": {version}"));
        fs::write(&meta, text).expect("room");
        let (back, caveats) = read(&path).expect("reads");
        for access in &mut written.accesses {
            if version < 5 {
                access.measured.repeats = 0;
            }
            (access.within, access.wait, access.instead) = (0, Wait::AtInstruction, 0);
        }
        assert_eq!(back.accesses, written.accesses);
        assert_eq!(caveats, Vec::<String>::new());
    }
}

#[test]
fn windows_that_a_segment_does_not_count_are_noticed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.coh");
    write(&path, &[batch(0)], &WriterOptions::default()).expect("written");
    let windows = fs::read(path.join("windows/part-00000.parquet")).expect("a part");
    let none = Batch {
        windows: Vec::new(),
        ..batch(0)
    };
    let without = directory.path().join("w.coh");
    write(&without, &[none], &WriterOptions::default()).expect("written");
    assert!(read(&without).is_ok());
    fs::write(without.join("windows/part-00000.parquet"), windows).expect("room");
    let error = read(&without).expect_err("noticed").to_string();
    assert!(
        error.contains("windows/part-00000.parquet") && error.contains("no such part"),
        "{error}"
    );
}
