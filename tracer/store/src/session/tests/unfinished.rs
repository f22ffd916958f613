//! Recorders that were killed, and the segments they leave.

use std::{fs, time::Duration};

use super::*;

fn four() -> Vec<Batch> {
    (0..4).map(batch).collect()
}

#[test]
fn a_killed_recorder_leaves_a_session_that_reads_with_a_caveat() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.coh");
    write_and_die(&path, &four());
    let (back, caveats) = read(&path).expect("reads");
    assert_eq!(back, joined(&four()));
    assert_eq!(
        caveats,
        ["recording did not end normally; the last 2.0 s may be missing"]
    );
    let reader = SessionReader::open(&path).expect("a session");
    assert_eq!(reader.meta().end_ns, Some(3019), "the newest event so far");
    assert_eq!(reader.meta().tally.produced, 44);
}

/// Four batches, of which the second and the last were written while samples of theirs were on their way; those of the
/// second arrived with the third.
fn two_with_samples_on_their_way() -> Vec<Batch> {
    let mut batches = four();
    batches[1].tally.produced += 5;
    batches[2].tally.produced -= 5;
    batches[3].tally.produced += 3;
    batches
}

#[test]
fn samples_that_were_on_their_way_to_a_killed_recorder_are_told_and_the_others_add_up() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.coh");
    write_and_die(&path, &two_with_samples_on_their_way());
    let (back, caveats) = read(&path).expect("reads");
    assert_eq!(back, joined(&four()));
    let text = "3 further samples were taken, and had not arrived when the last of the recording was written";
    assert_eq!(caveats[1..], [text]);
}

#[test]
fn samples_that_never_arrived_at_a_recorder_that_ended_normally_stay_a_difference() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.coh");
    write(
        &path,
        &two_with_samples_on_their_way(),
        &segment_per_batch(),
    )
    .expect("written");
    let (back, caveats) = read(&path).expect("reads");
    assert_eq!(back.tally.produced, 47);
    assert_eq!(back.tally.samples + back.tally.lost_total(), 44);
    assert_eq!(caveats, Vec::<String>::new());
}

#[test]
fn a_finished_recorder_leaves_a_session_that_reads_without_a_caveat() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.coh");
    write(&path, &four(), &segment_per_batch()).expect("written");
    assert_eq!(read(&path).expect("reads"), (joined(&four()), vec![]));
}

#[test]
fn a_caveat_known_from_the_start_does_not_hide_that_the_recorder_was_killed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.coh");
    let mut meta = Meta::new();
    meta.caveats = vec!["kernel code is not named".to_owned()];
    drop(SessionWriter::create(&path, meta, &WriterOptions::default()).expect("a new session"));
    let (back, caveats) = read(&path).expect("reads");
    assert!(back.is_empty());
    assert_eq!(caveats.len(), 2, "{caveats:?}");
}

#[test]
fn rows_wait_for_a_segment_until_its_time_is_over() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.coh");
    let segments = |path: &Path| {
        SessionReader::open(path)
            .expect("a session")
            .meta()
            .segments
    };
    let options = WriterOptions {
        segment_time: Duration::from_millis(60),
        ..WriterOptions::default()
    };
    let mut writer = SessionWriter::create(&path, Meta::new(), &options).expect("a new session");
    writer.append(&batch(0)).expect("room");
    assert_eq!((segments(&path), writer.buffered_rows()), (0, 28));
    std::thread::sleep(Duration::from_millis(70));
    writer.append(&Batch::default()).expect("room");
    assert_eq!((segments(&path), writer.buffered_rows()), (1, 0));
}

/// The order of renames: context of a segment may be there without its accesses, never the reverse.
#[test]
fn context_of_a_segment_that_was_never_whole_is_left_out() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.coh");
    write_and_die(&path, &four());
    fs::remove_file(path.join("accesses/part-00003.parquet")).expect("was there");
    let (back, caveats) = read(&path).expect("reads");
    assert_eq!(back, joined(&four()[..3]));
    assert_eq!(caveats.len(), 2, "{caveats:?}");
    assert!(
        caveats[1].starts_with("the last segment (3) is left out"),
        "{caveats:?}"
    );
}

#[test]
fn a_damaged_last_segment_is_a_caveat_if_unfinished_and_an_error_if_finished() {
    let directory = tempfile::tempdir().expect("a directory");
    let (unfinished, finished) = (
        directory.path().join("u.coh"),
        directory.path().join("f.coh"),
    );
    write_and_die(&unfinished, &four());
    write(&finished, &four(), &segment_per_batch()).expect("written");
    for path in [&unfinished, &finished] {
        let part = path.join("tasks/part-00003.parquet");
        let bytes = fs::read(&part).expect("a part");
        fs::write(&part, &bytes[..bytes.len() / 2]).expect("room");
    }
    let (back, caveats) = read(&unfinished).expect("reads");
    assert_eq!(back, joined(&four()[..3]));
    assert!(
        caveats[1].contains("tasks/part-00003.parquet"),
        "{caveats:?}"
    );
    let error = read(&finished)
        .expect_err("a finished session is whole")
        .to_string();
    assert!(
        error.contains("tasks/part-00003.parquet is damaged"),
        "{error}"
    );
}

#[test]
fn an_unfinished_file_of_a_killed_recorder_is_not_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.coh");
    write_and_die(&path, &four());
    fs::write(
        path.join("accesses/.part-00004.parquet.unfinished"),
        b"PAR1",
    )
    .expect("room");
    let (back, caveats) = read(&path).expect("reads");
    assert_eq!(back, joined(&four()));
    assert_eq!(caveats.len(), 1, "{caveats:?}");
}
