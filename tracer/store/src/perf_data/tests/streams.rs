//! Order, rounds, compression, pipes.

use super::{layouts::COMMON, *};
use crate::perf_format::fields::ByteOrder;
use crate::perf_format::sample_type as field;

fn recording() -> Recording {
    Recording::new(ByteOrder::Little, vec![TestEvent::new(COMMON)])
}

fn times(read: &Read) -> Vec<u64> {
    read.all
        .accesses
        .iter()
        .map(|access| access.time_ns - 1_000_000)
        .collect()
}

#[test]
fn rings_are_merged_by_time() {
    let mut file = recording();
    for round in [[10, 30, 50, 20, 40], [60, 80, 45, 55, 70]] {
        for n in round {
            file.sample(0, &TestSample::load(n));
        }
        file.end_round();
    }
    let read = read(&file.file()).unwrap();
    assert_eq!(times(&read), [10, 20, 30, 40, 45, 50, 55, 60, 70, 80]);
    assert!(!says(&read, "out of order"));
}

#[test]
fn late_records_are_counted_and_one_wrong_clock_reading_is_told() {
    let mut file = recording();
    file.sample(0, &TestSample::load(100))
        .end_round()
        .end_round();
    file.sample(0, &TestSample::load(200))
        .end_round()
        .end_round();
    file.sample(0, &TestSample::load(5));
    let found = read(&file.file()).unwrap();
    assert_eq!(times(&found), [100, 200, 200]);
    assert!(says(&found, "1 records came out of order"));
    let mut file = recording();
    for n in [1, u64::MAX / 2, 2, 3] {
        file.sample(0, &TestSample::load(n % 1000)).end_round();
    }
    assert_eq!(read(&file.file()).unwrap().all.accesses.len(), 4);
}

#[test]
fn compressed_records_hold_the_same_as_plain_ones() {
    let make = || {
        let mut file = recording();
        for n in 0..200 {
            file.sample(0, &TestSample::load(n));
        }
        file
    };
    let plain = read(&make().file()).unwrap();
    assert_eq!(plain.all.accesses.len(), 200);
    for kind in [81, 83] {
        let mut packed = make();
        packed.compressed(kind);
        for bytes in [packed.file(), packed.pipe()] {
            let read = read(&bytes).unwrap();
            assert_eq!(read.all, plain.all, "{kind}");
            assert_eq!(read.description.cut_short, None);
        }
    }
}

#[test]
fn compressed_records_that_cannot_be_unpacked_end_the_recording_there() {
    let mut file = recording();
    file.sample(0, &TestSample::load(1));
    file.record(81, 0, &[0xff; 64]);
    file.sample(0, &TestSample::load(2));
    let read = read(&file.file()).unwrap();
    assert_eq!(times(&read), [1]);
    let why = read.description.cut_short.clone().unwrap();
    assert!(why.contains("compressed records end at byte"), "{why}");
    assert!(says(&read, "The recording is not whole"));
}

#[test]
fn a_pipe_is_read_without_going_back() {
    let mut file = recording();
    file.sample(0, &TestSample::load(1));
    let bytes = file.pipe();
    let mut pipe = PerfData::from_pipe(&bytes[..]).unwrap();
    let mut batch = Batch::default();
    assert!(pipe.next_batch(&mut batch).unwrap());
    assert_eq!(batch.accesses.len(), 1);
    let refused = PerfData::from_pipe(&file.file()[..]).err();
    assert!(matches!(refused, Some(PerfDataError::FileInPipe)));
}

#[test]
fn what_follows_a_record_is_no_record() {
    let mut file = recording();
    // Tracing data and another hardware's trace, whose bytes look like records.
    let body = file.words().u32(12).u32(0).bytes.clone();
    file.record(66, 0, &body).bytes(&[9; 16]);
    let body = file.words().u64(24).all(&[0; 4]).bytes.clone();
    file.record(71, 0, &body).bytes(&[9; 24]);
    file.sample(0, &TestSample::load(1));
    let read = read(&file.pipe()).unwrap();
    assert_eq!(times(&read), [1]);
    assert!(says(&read, "24 bytes of hardware traces"));
}

#[test]
fn a_recorder_that_was_killed_left_what_it_had() {
    let mut file = recording();
    for n in 0..5 {
        file.sample(0, &TestSample::load(n));
    }
    let mut bytes = file.file();
    // The length of the records, which is written last.
    bytes[48..56].fill(0);
    let read = read(&bytes).unwrap();
    assert_eq!(times(&read), [0, 1, 2, 3, 4]);
    assert!(says(&read, "The recording was not finished"));
}

#[test]
fn an_access_that_perf_inject_gave_several_events_is_one_access() {
    let event = |id| TestEvent {
        kind: 0,
        ..TestEvent::new(COMMON | field::IDENTIFIER).id(id)
    };
    let mut file = Recording::new(ByteOrder::Little, vec![event(1), event(2)]);
    let at = |id, n| TestSample {
        id,
        ..TestSample::load(n)
    };
    for (event, sample) in [
        (0, at(1, 5)),
        (1, at(2, 5)),
        // Another address, and the same event twice.
        (1, at(2, 6)),
        (1, at(2, 6)),
    ] {
        file.sample(event, &sample);
    }
    let read = read(&file.file()).unwrap();
    assert_eq!(times(&read), [5, 6, 6]);
    assert!(says(
        &read,
        "1 samples are of accesses that a sample of another event"
    ));
}

#[test]
fn held_back_sampling_is_told() {
    let mut file = Recording::new(
        ByteOrder::Little,
        vec![TestEvent::new(COMMON | field::IDENTIFIER).id(3)],
    );
    let body = file.words().all(&[1, 2, 3]).bytes.clone();
    file.about(0, (5, 0), &body, &TestSample::load(0));
    assert!(says(
        &read(&file.file()).unwrap(),
        "held sampling back 1 times"
    ));
}
