//! Files that are not as they were written: each is an error that names the file.

use std::{fs, time::Duration};

use super::*;

/// Does `damage` to a finished session of four segments and returns what reading says.
fn damaged(damage: impl FnOnce(&Path)) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.coh");
    let batches: Vec<Batch> = (0..4).map(batch).collect();
    write(&path, &batches, &segment_per_batch()).expect("written");
    damage(&path);
    read(&path).expect_err("damage is noticed").to_string()
}

fn check(expected: &[&str], damage: impl FnOnce(&Path)) {
    let message = damaged(damage);
    for text in expected {
        assert!(message.contains(text), "{text:?} is not in {message:?}");
    }
}

fn remove(path: &Path, part: &str) {
    fs::remove_file(path.join(part)).expect("was there");
}

#[test]
fn a_missing_part_is_named_wherever_it_was() {
    for table in [
        "accesses",
        "mappings",
        "tasks",
        "local_storage",
        "memory",
        "windows",
        "allocations",
    ] {
        for number in [0, 2, 3] {
            let part = format!("{table}/part-0000{number}.parquet");
            check(&[&part, "missing"], |path| remove(path, &part));
        }
    }
}

#[test]
fn segments_missing_at_the_end_of_a_finished_session_are_noticed() {
    check(&["accesses/part-00003.parquet", "missing"], |path| {
        for table in [
            "accesses",
            "mappings",
            "tasks",
            "local_storage",
            "memory",
            "windows",
            "allocations",
        ] {
            remove(path, &format!("{table}/part-00003.parquet"));
        }
    });
}

#[test]
fn a_part_in_the_place_of_another_is_noticed() {
    check(
        &["part-00002.parquet", "belongs to another segment"],
        |path| {
            let (one, two) = ("accesses/part-00001.parquet", "accesses/part-00002.parquet");
            fs::copy(path.join(one), path.join(two)).expect("room");
        },
    );
    check(&["mappings/part-00001.parquet", "columns"], |path| {
        let (tasks, mappings) = ("tasks/part-00001.parquet", "mappings/part-00001.parquet");
        fs::copy(path.join(tasks), path.join(mappings)).expect("room");
    });
}

#[test]
fn context_that_its_segment_does_not_count_is_noticed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.coh");
    let mut without_tasks = batch(0);
    without_tasks.context.truncate(1);
    write(
        &path,
        &[without_tasks.clone(), batch(1)],
        &segment_per_batch(),
    )
    .expect("written");
    assert!(read(&path).is_ok());
    let (one, none) = ("tasks/part-00001.parquet", "tasks/part-00000.parquet");
    fs::copy(path.join(one), path.join(none)).expect("room");
    let error = read(&path).expect_err("noticed").to_string();
    assert!(
        error.contains(none) && error.contains("no such part"),
        "{error}"
    );
}

#[test]
fn a_part_that_is_no_file_or_far_too_large_is_refused_unread() {
    let part = "accesses/part-00001.parquet";
    check(&[part, "no regular file"], |path| {
        remove(path, part);
        fs::create_dir(path.join(part)).expect("room");
    });
    check(&[part, "no regular file"], |path| {
        let file = fs::OpenOptions::new().write(true).open(path.join(part));
        file.and_then(|file| file.set_len(1 << 40))
            .expect("a sparse file");
    });
    check(&["meta.json", "no regular file"], |path| {
        let file = fs::OpenOptions::new()
            .write(true)
            .open(path.join("meta.json"));
        file.and_then(|file| file.set_len(1 << 40))
            .expect("a sparse file");
    });
}

#[test]
fn an_empty_part_is_damage() {
    let part = "tasks/part-00001.parquet";
    check(&[part, "checksum is missing"], |path| {
        fs::write(path.join(part), b"").expect("room");
    });
}

#[test]
fn any_flipped_bit_and_any_cut_is_noticed_before_decoding() {
    use crate::session::{error::Damage, origin::Origin, part_reader::read_part, schema::ACCESSES};
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.coh");
    write(&path, &[batch(0)], &WriterOptions::default()).expect("written");
    let part = fs::read(path.join("accesses/part-00000.parquet")).expect("a part");
    let read = |part: Vec<u8>| {
        read_part(&ACCESSES, part, &Origin::default(), |_, source| {
            Ok(source.rows())
        })
    };
    assert!(matches!(read(part.clone()), Ok(19)));
    for at in 0..part.len() {
        let mut flipped = part.clone();
        flipped[at] ^= 1 << (at % 8);
        assert!(matches!(read(flipped), Err(Damage::Seal(_))), "byte {at}");
        assert!(
            matches!(read(part[..at].to_vec()), Err(Damage::Seal(_))),
            "cut to {at}"
        );
    }
}

#[test]
fn after_an_error_the_reader_is_at_its_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.coh");
    let batches: Vec<Batch> = (0..4).map(batch).collect();
    write(&path, &batches, &segment_per_batch()).expect("written");
    remove(&path, "accesses/part-00001.parquet");
    let mut reader = SessionReader::open(&path).expect("a session");
    let mut batch = Batch::default();
    assert!(matches!(reader.next_batch(&mut batch), Ok(true)));
    assert!(reader.next_batch(&mut batch).is_err());
    assert!(matches!(reader.next_batch(&mut batch), Ok(false)));
}

#[test]
fn tallies_whose_sum_overflows_are_damage() {
    let directory = tempfile::tempdir().expect("a directory");
    let counts = |name: &str, produced: &[u64]| {
        let path = directory.path().join(name);
        let options = WriterOptions {
            segment_time: Duration::ZERO,
            ..WriterOptions::default()
        };
        let batches = produced.iter().map(|produced| Batch {
            tally: Tally {
                produced: *produced,
                ..Tally::default()
            },
            ..Batch::default()
        });
        write(&path, &batches.collect::<Vec<_>>(), &options).expect("written");
        path
    };
    let (two, most) = (counts("two.coh", &[1, 1]), counts("most.coh", &[u64::MAX]));
    assert_eq!(read(&two).expect("reads").0.tally.produced, 2);
    assert_eq!(read(&most).expect("reads").0.tally.produced, u64::MAX);
    let part = "accesses/part-00000.parquet";
    fs::copy(most.join(part), two.join(part)).expect("room");
    let error = read(&two).expect_err("overflows").to_string();
    assert!(
        error.contains("accesses/part-00001.parquet is damaged: its tally overflows"),
        "{error}"
    );
}
