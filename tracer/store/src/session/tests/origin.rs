//! Every part says where it is from, to readers that do not know us.

use std::{collections::BTreeMap, fs};

use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::*;
use crate::{
    event::{FileStamp, path_text},
    session::{schema::TABLES, seal},
};

/// The footer's entries of every part, by path within the session.
fn footers(session: &Path) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut footers = BTreeMap::new();
    for table in TABLES {
        for entry in fs::read_dir(session.join(table.name)).expect("a folder for each table") {
            let path = entry.expect("listed").path();
            let part = fs::read(&path).expect("just listed");
            seal::check(&part).expect("sealed");
            let file = SerializedFileReader::new(Bytes::from(part)).expect("a part");
            let entries = file.metadata().file_metadata().key_value_metadata();
            let entries = entries.into_iter().flatten();
            let entries = entries.map(|e| (e.key.clone(), e.value.clone().unwrap_or_default()));
            let part = path.file_name().unwrap_or_default().to_string_lossy();
            footers.insert(format!("{}/{part}", table.name), entries.collect());
        }
    }
    footers
}

fn written(meta: Meta) -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("a.coh");
    let mut writer =
        SessionWriter::create(&path, meta.clone(), &segment_per_batch()).expect("a new session");
    for n in 1..3 {
        writer.append(&batch(n)).expect("room for a batch");
    }
    writer.finish(meta).expect("room for the rest");
    (directory, path)
}

#[test]
fn every_part_of_every_table_names_its_host_boot_version_and_start() {
    let (_directory, path) = written(Meta {
        host: Some("build-7".to_owned()),
        boot_id: Some("0b8f2c52-7e2d-4d0c-a3c1-2f0d4b6a9e11".to_owned()),
        started_unix_ns: Some(1_700_000_000_123_456_789),
        ..Meta::new()
    });
    let footers = footers(&path);
    assert_eq!(footers.len(), 2 * TABLES.len(), "{footers:#?}");
    for (part, footer) in footers {
        let says = |key: &str| footer.get(key).map(String::as_str);
        assert_eq!(says("cohtrace.host"), Some("build-7"), "{part}");
        let boot_id = Some("0b8f2c52-7e2d-4d0c-a3c1-2f0d4b6a9e11");
        assert_eq!(says("cohtrace.boot_id"), boot_id, "{part}");
        let version = SCHEMA_VERSION.to_string();
        assert_eq!(says("cohtrace.schema_version"), Some(&*version), "{part}");
        let started = Some("1700000000123456789");
        assert_eq!(says("cohtrace.started_unix_ns"), started, "{part}");
    }
    let (whole, caveats) = read(&path).expect("it reads");
    assert_eq!(whole, joined(&[batch(1), batch(2)]));
    assert_eq!(caveats, [""; 0]);
}

#[test]
fn what_is_not_known_of_a_host_is_absent_and_not_empty() {
    let (_directory, path) = written(Meta::new());
    for (part, footer) in footers(&path) {
        for key in [
            "cohtrace.host",
            "cohtrace.boot_id",
            "cohtrace.started_unix_ns",
        ] {
            assert!(!footer.contains_key(key), "{part}: {footer:?}");
        }
        assert!(footer.contains_key("cohtrace.schema_version"), "{part}");
    }
    read(&path).expect("nothing of it is needed to read");
}

#[test]
fn a_host_whose_name_looks_like_the_seal_is_only_a_name() {
    let (_directory, path) = written(Meta {
        host: Some(seal::UNSEALED.to_owned()),
        boot_id: Some("x".repeat(5000)),
        ..Meta::new()
    });
    assert_eq!(
        footers(&path)["accesses/part-00000.parquet"]["cohtrace.host"],
        seal::UNSEALED
    );
    let (whole, _) = read(&path).expect("the seal is where it was");
    assert_eq!(whole, joined(&[batch(1), batch(2)]));
}

fn of_host(host: &str, started_unix_ns: u64) -> (tempfile::TempDir, std::path::PathBuf) {
    written(Meta {
        host: Some(host.to_owned()),
        started_unix_ns: Some(started_unix_ns),
        ..Meta::new()
    })
}

#[test]
fn parts_beside_the_meta_of_another_recording_are_refused() {
    let (_one, path) = of_host("build-7", 1);
    for (host, started, reads) in [
        ("build-7", 1, true),
        ("build-8", 1, false),
        ("build-7", 2, false),
    ] {
        let (_other, other) = of_host(host, started);
        fs::copy(other.join("meta.json"), path.join("meta.json")).expect("room");
        let found = read(&path).map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(found.is_ok(), reads, "{host} {started}: {found:?}");
        if let Err(error) = found {
            assert!(error.contains("part-00000.parquet"), "{error}");
            assert!(error.contains("of another recording"), "{error}");
        }
    }
}

#[test]
fn what_a_mapped_file_was_is_kept_and_so_is_every_byte_of_its_name() {
    let mut with_files = batch(1);
    for (n, context) in with_files.context.iter_mut().enumerate() {
        if let ContextKind::Mapping { mapping, .. } = &mut context.kind {
            *mapping = Arc::new(Mapping {
                name: path_text::text(b"/tmp/\xff\x80/app"),
                build_id: None,
                stamp: Some(FileStamp {
                    bytes: n as u64,
                    modified_ns: 1_700_000_000_000_000_001,
                    changed_ns: u64::MAX,
                }),
                ..Mapping::clone(mapping)
            });
        }
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("a.coh");
    let mut writer =
        SessionWriter::create(&path, Meta::new(), &segment_per_batch()).expect("a new session");
    writer.append(&with_files).expect("room");
    writer.finish(Meta::new()).expect("room");
    let (whole, _) = read(&path).expect("it reads");
    assert_eq!(whole, joined(&[with_files]));
}
