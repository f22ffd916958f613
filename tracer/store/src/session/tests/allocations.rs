//! Events of heaps: whole or refused, cut in the order of time, and absent from sessions of version 2.

use std::fs;

use super::*;
use crate::session::{
    allocation_table,
    error::Damage,
    origin::Origin,
    part_reader::read_sealed_part,
    part_writer::{ColumnSink, write_part},
    schema::ALLOCATIONS,
};

/// [`batch`] as one without a heap has it.
pub(super) fn batch_without(n: u64) -> Batch {
    let whole = batch(n);
    Batch {
        allocations: Vec::new(),
        tally: Tally {
            heap: HeapTally::default(),
            ..whole.tally
        },
        ..whole
    }
}

/// What reading says of one event with these columns.
fn check(
    kind: u32,
    addr: Option<u64>,
    size: Option<u64>,
    stack: Option<&'static str>,
) -> Result<(), String> {
    let part = write_part(
        &ALLOCATIONS,
        1,
        &Origin::default(),
        "{}".to_owned(),
        |sink: &mut ColumnSink<'_>| {
            sink.u64s("seq", [0].into_iter())?;
            sink.u64s("batch", [0].into_iter())?;
            sink.u64s("time_ns", [7].into_iter())?;
            sink.u32s("kind", [kind].into_iter())?;
            sink.u32s("pid", [1].into_iter())?;
            sink.u32s("tid", [1].into_iter())?;
            sink.optional_u64s("addr", [addr].into_iter())?;
            sink.optional_u64s("size", [size].into_iter())?;
            sink.optional_texts("stack", [stack].into_iter())
        },
    );
    read_sealed_part(
        &ALLOCATIONS,
        part.expect("a part"),
        &Origin::default(),
        |_, source| allocation_table::decode(source).map(|_| ()),
    )
    .map_err(|error: Damage| error.to_string())
}

#[test]
fn an_event_has_the_columns_of_its_kind_and_no_others() {
    assert_eq!(check(0, Some(1), Some(1), Some("a;b")), Ok(()));
    assert_eq!(check(0, Some(1), Some(1), Some("")), Ok(()));
    assert_eq!(check(1, Some(1), None, None), Ok(()));
    assert_eq!(check(2, None, None, None), Ok(()));
    assert_eq!(check(3, None, None, None), Ok(()));
    assert_eq!(check(4, Some(1), Some(1), Some("a;b")), Ok(()));
    assert_eq!(check(5, Some(1), Some(1), None), Ok(()));
    for sight in 6..=9 {
        assert_eq!(check(sight, None, None, None), Ok(()));
    }
    for (kind, addr, size, stack) in [
        (0, Some(1), Some(0), Some("a")),
        (0, Some(1), None, Some("a")),
        (0, None, Some(1), Some("a")),
        (0, Some(1), Some(1), None),
        (1, Some(1), Some(1), None),
        (1, None, None, None),
        (2, Some(1), None, None),
        (3, None, None, Some("a")),
        (4, None, None, None),
        (4, Some(1), Some(0), Some("a")),
        (4, Some(1), Some(1), None),
        (5, Some(1), Some(0), None),
        (5, Some(1), None, None),
        (6, Some(1), None, None),
        (10, None, None, None),
    ] {
        let error = check(kind, addr, size, stack).expect_err("refused");
        assert!(
            error.starts_with(&format!("row 0 has kind {kind}")),
            "{error}"
        );
    }
    let error = check(0, Some(1), Some(1), Some("a;;b")).expect_err("refused");
    assert!(error.contains("call stack"), "{error}");
}

#[test]
fn an_allocation_that_no_reader_would_take_is_not_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut none = batch(0);
    none.allocations[0].kind = AllocationKind::Allocated {
        addr: 1,
        size: 0,
        stack: Arc::from([]),
    };
    let path = directory.path().join("s.coh");
    let error = write(&path, &[none], &WriterOptions::default()).expect_err("refused");
    assert!(error.to_string().contains("0 bytes"), "{error}");
}

#[test]
fn stacks_of_a_batch_in_pieces_stay_before_the_accesses_they_apply_to() {
    let directory = tempfile::tempdir().expect("a directory");
    for segment_rows in [1, 4, 7, 22] {
        let path = directory.path().join(format!("{segment_rows}.coh"));
        let options = WriterOptions {
            segment_rows,
            ..WriterOptions::default()
        };
        write(&path, &[batch(0), batch(1)], &options).expect("written");
        assert!(
            fs::exists(path.join("allocations/part-00000.parquet")).expect("asked")
                || segment_rows < 7
        );
        let mut reader = SessionReader::open(&path).expect("a session");
        let (mut newest, mut piece) = (0, Batch::default());
        while reader.next_batch(&mut piece).expect("undamaged") {
            let first = piece
                .allocations
                .first()
                .map_or(u64::MAX, |event| event.time_ns);
            assert!(
                newest <= first,
                "an access of {newest} came before an event of {first}"
            );
            newest = piece
                .accesses
                .last()
                .map_or(newest, |access| access.time_ns);
        }
        assert_eq!(read(&path).expect("reads").0, joined(&[batch(0), batch(1)]));
    }
}
