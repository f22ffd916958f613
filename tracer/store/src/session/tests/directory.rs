//! The directory: modes, what is replaced, what is refused.

use std::{fs, os::unix::fs::PermissionsExt};

use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("exists").permissions().mode() & 0o777
}

fn create(path: &Path, force: bool) -> Result<SessionWriter, SessionError> {
    let options = WriterOptions {
        force,
        ..WriterOptions::default()
    };
    SessionWriter::create(path, Meta::new(), &options)
}

#[test]
fn only_the_owner_can_read_a_session() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.coh");
    write(&path, &[batch(0)], &WriterOptions::default()).expect("written");
    for folder in [
        "",
        "accesses",
        "mappings",
        "tasks",
        "local_storage",
        "memory",
        "windows",
        "allocations",
    ] {
        assert_eq!(mode(&path.join(folder)), 0o700, "{folder}");
    }
    for file in [
        "meta.json",
        "accesses/part-00000.parquet",
        "mappings/part-00000.parquet",
        "tasks/part-00000.parquet",
        "local_storage/part-00000.parquet",
        "memory/part-00000.parquet",
        "windows/part-00000.parquet",
        "allocations/part-00000.parquet",
    ] {
        assert_eq!(mode(&path.join(file)), 0o600, "{file}");
    }
}

#[test]
fn an_existing_session_stays_unless_forced() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.coh");
    write(&path, &[batch(0)], &WriterOptions::default()).expect("written");
    let error = create(&path, false).expect_err("taken").to_string();
    assert!(error.contains("--force"), "{error}");
    assert_eq!(read(&path).expect("still reads").0, batch(0));

    create(&path, true)
        .and_then(|writer| writer.finish(Meta::new()))
        .expect("replaced");
    assert!(read(&path).expect("reads").0.is_empty());
}

#[test]
fn force_replaces_nothing_but_a_session() {
    let directory = tempfile::tempdir().expect("a directory");
    let check = |name: &str, reason: &str| {
        let path = directory.path().join(name);
        let error = create(&path, true).expect_err(name).to_string();
        assert!(error.contains(reason), "{error}");
        assert!(path.exists(), "{name}");
    };
    fs::write(directory.path().join("file"), "text").expect("room");
    check("file", "is no directory");
    fs::create_dir(directory.path().join("empty")).expect("room");
    check("empty", "has no meta.json of a session");
    fs::create_dir(directory.path().join("other")).expect("room");
    fs::write(
        directory.path().join("other/meta.json"),
        "{\"format\":\"x\"}",
    )
    .expect("room");
    check("other", "has no meta.json of a session");
    let shared = directory.path().join("shared.coh");
    write(&shared, &[batch(0)], &WriterOptions::default()).expect("written");
    fs::write(shared.join("tasks/notes.txt"), "mine").expect("room");
    check("shared.coh", "tasks/notes.txt is not ours");
    std::os::unix::fs::symlink(&shared, directory.path().join("link")).expect("room");
    check("link", "is no directory");
}

#[test]
fn what_is_no_session_is_said_to_be_none() {
    let directory = tempfile::tempdir().expect("a directory");
    let check = |name: &str, message: &str| {
        let error = read(&directory.path().join(name))
            .expect_err(name)
            .to_string();
        assert!(error.contains(message), "{error}");
    };
    check("absent", "there is nothing of that name");
    fs::write(directory.path().join("file"), "text").expect("room");
    check("file", "it is no directory");
    fs::create_dir(directory.path().join("empty")).expect("room");
    check("empty", "it has no meta.json");
    let meta = |text: &str| {
        fs::create_dir_all(directory.path().join("m")).expect("room");
        fs::write(directory.path().join("m/meta.json"), text).expect("room");
    };
    meta("[]");
    check("m", "its meta.json is not ours");
    meta("{\"format\": \"cohtrace");
    check("m", "meta.json is damaged");
    meta("{\"format\": \"cohtrace session\", \"schema_version\": 0}");
    check("m", "schema_version is not a version");
    meta("{\"format\": \"cohtrace session\", \"schema_version\": 1}");
    check("m", "missing field");
    meta(&"[".repeat(100_000));
    check("m", "meta.json is damaged");
}

#[test]
fn a_session_of_a_later_schema_is_refused_by_both_versions() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.coh");
    write(&path, &[batch(0)], &WriterOptions::default()).expect("written");
    let file = path.join("meta.json");
    let text = fs::read_to_string(&file).expect("a meta");
    let newer = text
        .replace(
            &format!("\"schema_version\": {SCHEMA_VERSION}"),
            &format!("\"schema_version\": {}", SCHEMA_VERSION + 1),
        )
        .replace("\"tool_version\": \"", "\"tool_version\": \"9.9.");
    assert_ne!(text, newer);
    fs::write(&file, newer).expect("room");
    let error = read(&path).expect_err("newer").to_string();
    let later = SCHEMA_VERSION + 1;
    let says = format!("schema {later} (written by cohtrace 9.9.");
    assert!(error.contains(&says), "{error}");
    let reads = format!("reads up to {SCHEMA_VERSION}:");
    assert!(error.contains(&reads), "{error}");
}
