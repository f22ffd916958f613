//! Debug files apart from the program: found, refused, compressed.

use cohtrace_skips::skipped;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use symbolizer::{Bounds, Bytes, DebugFiles, DebugRequest, Missing};

use crate::toolchain::{Built, build, line_of, parse, parse_with};

/// A cupboard of debug files, which writes down what it was asked.
#[derive(Default, Clone)]
struct Cupboard {
    by_id: HashMap<Vec<u8>, Vec<u8>>,
    by_name: HashMap<String, Vec<u8>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl DebugFiles for Cupboard {
    fn find(&self, request: &DebugRequest<'_>) -> Option<Bytes> {
        self.asked.lock().unwrap().push(format!("{request:?}"));
        let found = match request {
            DebugRequest::BuildId(id) => self.by_id.get(*id),
            DebugRequest::DebugLink { file_name, .. } => self.by_name.get(*file_name),
            _ => None,
        };
        found.map(|bytes| -> Bytes { Arc::new(bytes.clone()) })
    }
}

/// `program.debug` with everything, `stripped` without, `linked` with a link to the former.
fn split(flags: &[&str]) -> Built {
    let mut all = vec!["-g", "-O2"];
    all.extend(flags);
    let built = build("cc", "data.c", &all).unwrap();
    built.run(
        "objcopy",
        &["--only-keep-debug", "program", "program.debug"],
    );
    built.run("objcopy", &["--strip-all", "program", "stripped"]);
    built.run(
        "objcopy",
        &["--add-gnu-debuglink=program.debug", "stripped", "linked"],
    );
    built
}

fn cupboard(built: &Built) -> Cupboard {
    let id = parse(built.bytes()).build_id().map(<[u8]>::to_vec);
    Cupboard {
        by_id: id
            .into_iter()
            .map(|id| (id, built.read("program.debug")))
            .collect(),
        by_name: HashMap::from([("program.debug".to_owned(), built.read("program.debug"))]),
        asked: Arc::default(),
    }
}

/// All that the debug file knows is there, all that the program itself knows too.
fn answers_fully(label: &str, built: &Built, bytes: Vec<u8>, cupboard: Cupboard) {
    let module = parse_with(bytes, cupboard);
    let whole = built.module();
    let (start, size) = built.symbol("worker");
    for address in start..start + size {
        assert_eq!(module.frames(address), whole.frames(address), "{label}");
    }
    assert_eq!(module.function(start), whole.function(start), "{label}");
    let (address, _) = built.symbol("everything");
    assert_eq!(module.object(address), whole.object(address), "{label}");
    let call = line_of("data.c", "// LINE call");
    let lines = (start..start + size).flat_map(|address| module.frames(address).frames);
    assert!(
        lines.into_iter().any(|frame| frame.line == Some(call)),
        "{label}"
    );
}

#[test]
fn a_debug_file_is_found_by_build_id_first() {
    let built = split(&[]);
    let cupboard = cupboard(&built);
    answers_fully("build-id", &built, built.read("linked"), cupboard.clone());
    let asked = cupboard.asked.lock().unwrap();
    assert_eq!(
        asked.len(),
        1,
        "one request is enough, and it is remembered: {asked:?}"
    );
    assert!(asked[0].starts_with("BuildId"), "{asked:?}");
}

#[test]
fn a_debug_file_is_found_by_its_link_where_there_is_no_build_id() {
    let built = split(&["-Wl,--build-id=none"]);
    let cupboard = cupboard(&built);
    answers_fully("link", &built, built.read("linked"), cupboard.clone());
    assert!(cupboard.asked.lock().unwrap()[0].starts_with("DebugLink"));
}

#[test]
fn compressed_sections_read_as_plain_ones() {
    let mut compressions = vec!["zlib", "zlib-gnu", "zlib-gabi"];
    let built = split(&[]);
    let zstd = std::process::Command::new("objcopy")
        .args(["--compress-debug-sections=zstd", "program.debug", "probe"])
        .current_dir(&built.directory)
        .output()
        .unwrap();
    if zstd.status.success() {
        compressions.push("zstd");
    } else {
        skipped("this objcopy cannot compress with zstd");
    }
    for compression in compressions {
        let flag = format!("--compress-debug-sections={compression}");
        built.run("objcopy", &[&flag, "program", "compressed"]);
        answers_fully(
            compression,
            &built,
            built.read("compressed"),
            Cupboard::default(),
        );
    }
}

#[test]
fn a_debug_file_of_another_build_is_refused() {
    let built = split(&[]);
    let other = split(&["-O1"]);
    let id = parse(built.bytes()).build_id().unwrap().to_vec();
    let wrong = Cupboard {
        by_id: HashMap::from([(id, other.read("program.debug"))]),
        ..Cupboard::default()
    };
    let module = parse_with(built.read("stripped"), wrong);
    let (start, _) = built.symbol("worker");
    assert_eq!(module.frames(start).missing, Some(Missing::BuildIdMismatch));
    let (address, _) = built.symbol("everything");
    assert_eq!(module.object(address), Err(Missing::BuildIdMismatch));
}

#[test]
fn a_linked_file_with_another_checksum_is_refused() {
    let built = split(&["-Wl,--build-id=none"]);
    let mut changed = built.read("program.debug");
    let last = changed.len() - 1;
    changed[last] ^= 1;
    let by_name = HashMap::from([("program.debug".to_owned(), changed)]);
    let module = parse_with(
        built.read("linked"),
        Cupboard {
            by_name,
            ..Cupboard::default()
        },
    );
    let (start, _) = built.symbol("worker");
    assert_eq!(
        module.frames(start).missing,
        Some(Missing::ChecksumMismatch)
    );
}

#[test]
fn what_is_no_debug_file_at_all_is_said_to_be_damaged() {
    let built = split(&[]);
    let id = parse(built.bytes()).build_id().unwrap().to_vec();
    let by_id = HashMap::from([(id, b"not a debug file".to_vec())]);
    let module = parse_with(
        built.read("stripped"),
        Cupboard {
            by_id,
            ..Cupboard::default()
        },
    );
    let (start, _) = built.symbol("worker");
    assert_eq!(module.frames(start).missing, Some(Missing::Malformed));
}

#[test]
fn a_stripped_file_alone_says_what_to_do() {
    let built = split(&[]);
    let module = parse(built.read("stripped"));
    let (start, _) = built.symbol("worker");
    let code = module.frames(start);
    assert_eq!(
        (code.frames.len(), code.missing),
        (0, Some(Missing::NoDebugInfo))
    );
    assert!(Missing::NoDebugInfo.to_string().contains("-g"));
    // Without debug info, a symbol still names and sizes an object.
    built.run("objcopy", &["--strip-debug", "program", "symbols-only"]);
    let module = parse(built.read("symbols-only"));
    let (address, size) = built.symbol("everything");
    let object = module.object(address + 8).unwrap();
    assert_eq!(
        (object.name.as_str(), object.size),
        ("everything", Some(size))
    );
    assert_eq!(
        (object.ty, object.missing),
        (None, Some(Missing::NoDebugInfo))
    );
}

#[test]
fn without_section_headers_functions_are_bounded_by_the_unwinders_table() {
    let built = split(&[]);
    let (start, size) = built.symbol("worker");
    let mut bytes = built.read("stripped");
    // e_shoff, e_shnum and e_shstrndx of the ELF header: no sections any more.
    bytes[0x28..0x30].fill(0);
    bytes[0x3c..0x40].fill(0);
    let bounds = |bytes: Vec<u8>| {
        let function = parse(bytes).function(start + 1)?;
        Some((function.start, function.end, function.bounds))
    };
    let expected = Some((start, start + size, Bounds::UnwindEntry));
    assert_eq!(bounds(bytes.clone()), expected);
    // Twin: without the program header of the table nothing is left. PT_GNU_EH_FRAME is 0x6474e550.
    let table = bytes
        .windows(4)
        .position(|word| word == 0x6474_e550_u32.to_le_bytes())
        .unwrap();
    bytes[table..table + 4].fill(0);
    assert_eq!(bounds(bytes), None);
}
