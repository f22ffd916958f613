//! Sizes of accesses, which are those of the instructions in the recorded build.

use std::{fs, io::Cursor, path::Path, process::Command};

use super::{layouts::COMMON, *};
use crate::module::ModuleStore;
use crate::perf_format::fields::ByteOrder;

const BUILD_ID: [u8; 20] = [0x5a; 20];

/// `mov eax, [rdi]`, `mov rax, [rdi]` and what no other file has.
const CODE: [u8; 11] = [
    0x8b, 0x07, 0x48, 0x8b, 0x07, 0x0f, 0x0b, 0x5a, 0xa5, 0x5a, 0xa5,
];

/// A library with that code; where in the file it is.
fn library(root: &Path) -> u64 {
    let bytes: Vec<String> = CODE.iter().map(|byte| format!("{byte:#x}")).collect();
    let source = root.join("code.s");
    let text = format!(".text\n.globl code\ncode: .byte {}\n", bytes.join(", "));
    fs::write(&source, text).unwrap();
    let path = root.join("code.so");
    let id = "5a".repeat(BUILD_ID.len());
    let built = Command::new("cc")
        .args(["-shared", "-nostdlib", "-o"])
        .arg(&path)
        .arg(format!("-Wl,--build-id=0x{id}"))
        .arg(&source)
        .status();
    assert!(built.unwrap().success(), "cc builds a library");
    let file = fs::read(path).unwrap();
    let at = file.windows(CODE.len()).position(|bytes| bytes == CODE);
    at.unwrap() as u64
}

#[test]
fn sizes_are_those_of_the_instructions_where_the_recorded_build_is_here() {
    const BASE: u64 = 0x7f12_0000_0000;
    let root = tempfile::tempdir().unwrap();
    let at = library(root.path());
    let sizes = |build_id: [u8; 20], misc: u16, arch: &str| {
        let mut recording = Recording::new(ByteOrder::Little, vec![TestEvent::new(COMMON)]);
        recording.text_feature(6, arch);
        let page = at & !0xfff;
        let mut mapping = recording.words();
        mapping.u32(100).u32(100).all(&[BASE + page, 0x1000, page]);
        mapping
            .raw(&[20, 0, 0, 0])
            .raw(&build_id)
            .u32(5)
            .u32(2)
            .name("/code.so");
        let body = mapping.bytes;
        recording.about(0, (10, 2 | 1 << 14), &body, &TestSample::load(0));
        // Both instructions, the invalid one behind them, and no code at all.
        for (n, ip) in [at, at + 2, at + 5, 0x10_0000].into_iter().enumerate() {
            let sample = TestSample {
                ip: BASE + ip,
                misc,
                ..TestSample::load(n as u64 + 1)
            };
            recording.sample(0, &sample);
        }
        let modules = ModuleStore::new(root.path().to_owned(), false).recorded_elsewhere();
        let file = PerfData::open(Cursor::new(recording.file())).unwrap();
        let mut file = file.with_modules(modules.into());
        let (mut all, mut batch) = (Vec::new(), Batch::default());
        while file.next_batch(&mut batch).unwrap() {
            all.extend(batch.accesses.drain(..).map(|access| access.size));
            batch.clear();
        }
        all
    };
    let exact = 2 | 1 << 14;
    assert_eq!(sizes(BUILD_ID, exact, "x86_64"), [4, 8, 0, 0]);
    let unknown = [0; 4];
    assert_eq!(sizes([1; 20], exact, "x86_64"), unknown, "another build");
    assert_eq!(
        sizes(BUILD_ID, 2, "x86_64"),
        unknown,
        "a later instruction, perhaps"
    );
    assert_eq!(
        sizes(BUILD_ID, exact, "aarch64"),
        unknown,
        "other instructions"
    );
}
