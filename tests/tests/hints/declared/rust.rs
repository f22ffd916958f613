//! Rust.

use std::{fmt::Write as _, fs, path::Path, process::Command};

use cohtrace::hint::AdviceKind;

use super::{BASE, Built, By, Numbers, Used, assert_sane, code, has};
use crate::hints::succeed;

/// Fields: types, and values that a static can have.
const FIELDS: [(&str, &str); 34] = [
    ("u64", "0"),
    ("u8", "0"),
    ("bool", "false"),
    ("char", "'a'"),
    ("u128", "0"),
    ("AtomicU64", "AtomicU64::new(0)"),
    ("AtomicBool", "AtomicBool::new(false)"),
    ("AtomicPtr<u8>", "AtomicPtr::new(std::ptr::null_mut())"),
    ("Vec<u64>", "Vec::new()"),
    ("String", "String::new()"),
    ("Option<Box<Own>>", "None"),
    ("Option<u32>", "None"),
    ("Option<Arc<Mutex<u64>>>", "None"),
    ("RwLock<Own>", "RwLock::new(Own(0, 0))"),
    ("Option<HashMap<u64, String>>", "None"),
    ("Option<HashSet<u32>>", "None"),
    ("BTreeMap<u8, Vec<u8>>", "BTreeMap::new()"),
    ("VecDeque<u8>", "VecDeque::new()"),
    ("Cell<u32>", "Cell::new(0)"),
    ("RefCell<u8>", "RefCell::new(0)"),
    ("UnsafeCell<u64>", "UnsafeCell::new(0)"),
    ("Option<Rc<u8>>", "None"),
    ("Duration", "Duration::ZERO"),
    ("(u64, u32)", "(0, 0)"),
    ("[u16; 4]", "[0; 4]"),
    ("[[u8; 3]; 2]", "[[0; 3]; 2]"),
    ("fn(u64) -> u64", "same"),
    ("*mut Own", "std::ptr::null_mut()"),
    ("deep::Slot", "deep::Slot { n: 0, m: Own(0, 0) }"),
    ("Kind", "Kind::B"),
    ("OnceLock<u8>", "OnceLock::new()"),
    ("MaybeUninit<[u8; 16]>", "MaybeUninit::uninit()"),
    ("[u8; 70]", "[0; 70]"),
    ("&'static str", "\"\""),
];

/// Structs made up for one run.
const STRUCTS: usize = 40;

const PRELUDE: &str = "#![allow(dead_code, unused_imports)]\n\
    use std::{cell::*, collections::*, mem::{MaybeUninit, offset_of, size_of}, rc::Rc, sync::{atomic::*, Arc, Mutex, OnceLock, RwLock}, time::Duration};\n\
    pub mod deep { pub struct Slot { pub n: u64, pub m: super::Own } }\n\
    pub struct Own(pub u32, pub u16);\npub enum Kind { A(u64), B }\nfn same(x: u64) -> u64 { x }\n";

fn build(directory: &Path, name: &str, source: &str, more: &[&str]) {
    fs::write(directory.join(name), source).expect("it is ours");
    let mut command = Command::new("rustc");
    command
        .current_dir(directory)
        .args(["--edition=2024", "-g", "--crate-name=made"]);
    succeed(command.args(more).arg(name));
}

#[test]
fn structs_of_rust_are_changed_as_promised() {
    if !has("rustc", "--version") {
        return;
    }
    let mut numbers = Numbers(0x5eed_0004);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let structs: Vec<Vec<(&str, &str)>> = (0..STRUCTS)
        .map(|_| {
            (0..2 + numbers.below(9))
                .map(|_| *numbers.pick(&FIELDS))
                .collect()
        })
        .collect();
    let mut source = PRELUDE.to_owned();
    for (n, fields) in structs.iter().enumerate() {
        let listed = |of: fn(&(&'static str, &'static str)) -> &'static str| {
            let fields = (0..)
                .zip(fields)
                .map(|(m, field)| format!("m{m}: {}", of(field)));
            fields.collect::<Vec<String>>().join(", ")
        };
        writeln!(
            source,
            "pub struct Made{n} {{ {} }}\n#[unsafe(no_mangle)] pub static mut OBJECT{n}: Made{n} = Made{n} {{ {} }};",
            listed(|field| field.0),
            listed(|field| field.1)
        )
        .expect("a String takes all");
    }
    build(
        directory.path(),
        "plain.rs",
        &source,
        &["--crate-type=cdylib", "-o", "plain.so"],
    );
    let built = Built::at(&directory.path().join("plain.so"), BASE);

    let mut changed = PRELUDE.to_owned();
    let mut moved = 0;
    for (n, fields) in structs.iter().enumerate() {
        let object = built.variable(&format!("OBJECT{n}"), BASE);
        let used = Used::draw(object, &mut numbers);
        let advice = used.advice();
        assert_sane(
            &advice.text,
            &["_Alignas", "alignas", "aligned_alloc", "CacheLinePad"],
        );
        if advice.kind != AdviceKind::SeparateFields {
            continue;
        }
        moved += 1;
        let written = code(&advice.text);
        let stored = |m: &usize| matches!(used.by.get(&format!("m{m}")), Some(By::Writer(_)));
        let alone = |m: &usize| {
            let by = used.by.get(&format!("m{m}"));
            used.by.values().filter(|other| Some(*other) == by).count() == 1
        };
        let crowded = advice.text.contains("into a struct of their own");
        let mut members = Vec::new();
        let mut wrapped = 0;
        for (m, (field, _)) in fields.iter().enumerate() {
            if !stored(&m) {
                members.push(format!("m{m}: {field},"));
                continue;
            }
            assert!(crowded || alone(&m), "{}", advice.text);
            let shown = written
                .iter()
                .find(|line| line.starts_with(&format!("m{m}: Line<")));
            wrapped += usize::from(shown.is_some());
            members.push(
                shown
                    .cloned()
                    .unwrap_or_else(|| format!("m{m}: Line<{field}>,")),
            );
        }
        let in_words = advice.text.contains("Wrap the type of");
        assert_eq!(wrapped == 0, in_words, "{}", advice.text);
        writeln!(
            changed,
            "mod made{n} {{ use super::*;\n{}\npub struct Made{n} {{\n    {}\n}}",
            written[0],
            members.join("\n    ")
        )
        .expect("a String takes all");
        // Of several fields that one thread uses, a struct of their own would be less: each has a line here.
        if !crowded {
            let size = used.proposal().expect("the advice has a plan").new_size;
            writeln!(
                changed,
                "const _: () = assert!(size_of::<Made{n}>() <= {size});"
            )
            .expect("a String takes all");
        }
        for m in (0..fields.len()).filter(stored) {
            writeln!(
                changed,
                "const _: () = assert!(offset_of!(Made{n}, m{m}) % 64 == 0);"
            )
            .expect("a String takes all");
        }
        changed.push_str("}\n");
    }
    assert!(moved > STRUCTS / 8, "only {moved} structs were changed");
    // Types of the crate are `crate::` where they are not the module's own.
    let changed = changed.replace("mod made", "pub mod made");
    build(
        directory.path(),
        "changed.rs",
        &changed,
        &["--crate-type=lib", "--emit=metadata"],
    );
}
