//! Places compared with what `llvm-dwarfdump` prints of the same entries.

mod damage;
mod dump;

use cohtrace_skips::skipped_core;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Command,
    sync::Arc,
};

use super::{Place, Register};
use crate::{Module, NoDebugFiles, Untraced};
use dump::{meaning, parse_dump};

/// A compiled program and its module. Nothing if the compiler is not there.
pub(crate) struct Built {
    _directory: tempfile::TempDir,
    pub(crate) path: std::path::PathBuf,
    pub(crate) module: Module,
}

impl Built {
    /// Address of the symbol, as another reader has it.
    fn symbol(&self, name: &str) -> u64 {
        use object::{Object, ObjectSymbol};
        let bytes = std::fs::read(&self.path).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        file.symbols()
            .find(|symbol| symbol.name() == Ok(name))
            .map_or_else(|| panic!("no symbol {name}"), |symbol| symbol.address())
    }

    /// The names of the variables with their places at an address.
    fn places(&self, svma: u64) -> Vec<(String, Place)> {
        let locals = self.module.locals(svma).unwrap();
        let here = locals
            .homes
            .iter()
            .filter(|home| (home.start..home.end).contains(&svma));
        here.map(|home| {
            let name = locals.variables[home.variable as usize].name.as_deref();
            (name.unwrap_or("?").to_owned(), home.place)
        })
        .collect()
    }
}

pub(crate) fn build(compiler: &str, sources: &[&str], flags: &[&str]) -> Option<Built> {
    let version = Command::new(compiler).arg("--version").output();
    if !version.is_ok_and(|output| output.status.success()) {
        assert_ne!(compiler, "cc", "the tests need a C compiler");
        skipped_core(format_args!(
            "{compiler} is not installed; {sources:?} with {flags:?} was not tested"
        ));
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("program");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures");
    let status = Command::new(compiler)
        .args(flags)
        .args(sources.iter().map(|source| fixtures.join(source)))
        .arg("-o")
        .arg(&path)
        .status()
        .unwrap();
    assert!(status.success(), "{compiler} {flags:?}");
    let bytes = Arc::new(std::fs::read(&path).unwrap());
    Some(Built {
        _directory: directory,
        module: Module::parse(bytes, Box::new(NoDebugFiles)).unwrap(),
        path,
    })
}

/// What a tool prints, if it is there.
pub(crate) fn printed(tools: &[&str], arguments: &[&str], path: &Path) -> Option<String> {
    for tool in tools {
        let output = Command::new(tool).args(arguments).arg(path).output();
        if let Ok(output) = output
            && output.status.success()
        {
            return Some(String::from_utf8_lossy(&output.stdout).into_owned());
        }
    }
    skipped_core(format_args!(
        "none of {tools:?} is installed; nothing was compared with it"
    ));
    None
}

const C: [&str; 2] = ["locals/places.c", "locals/rest.c"];

fn every_c() -> Vec<(String, Built)> {
    let mut all = Vec::new();
    for compiler in ["cc", "gcc", "clang"] {
        for level in ["-O0", "-O1", "-O2", "-O3"] {
            for version in ["-gdwarf-4", "-gdwarf-5"] {
                let flags = ["-g", level, version];
                let built = build(compiler, &C, &flags);
                all.extend(built.map(|built| (format!("{compiler} {flags:?}"), built)));
            }
        }
    }
    all
}

/// Every variable that the other reader prints must be there with the same homes. Returns how many places of each
/// kind there were.
fn compare(label: &str, built: &Built) -> Option<BTreeMap<String, usize>> {
    let tools = ["llvm-dwarfdump-22", "llvm-dwarfdump"];
    let text = printed(&tools, &["--debug-info"], &built.path)?;
    let (printed, bases) = parse_dump(&text);
    // The table of the first unit, which has all the variables.
    let table = self::printed(&tools, &["--debug-addr"], &built.path)?;
    let table = table.lines().skip_while(|line| !line.starts_with("Addrs"));
    let addresses: Vec<u64> = table
        .skip(1)
        .map_while(|line| u64::from_str_radix(line.strip_prefix("0x")?, 16).ok())
        .collect();
    let mut kinds = BTreeMap::new();
    let mut places: BTreeMap<(u64, u64, u64), Place> = BTreeMap::new();
    let info = built.module.debug_info().unwrap();
    let starts: BTreeSet<u64> = printed.values().flatten().map(|home| home.0).collect();
    for start in starts {
        let Ok(locals) = built.module.locals(start) else {
            continue;
        };
        for home in &locals.homes {
            let die = locals.variables[home.variable as usize].die;
            let offset = info.units.get(die.unit).unwrap().offset as u64 + u64::from(die.offset);
            places.insert((offset, home.start, home.end), home.place);
        }
    }
    for (offset, homes) in &printed {
        for (start, end, text) in homes {
            // Lists have entries without extent, and functions that the linker dropped are at address 0.
            if start >= end || *start <= 1 {
                continue;
            }
            let place = places.get(&(*offset, *start, *end));
            let base = bases.get(offset).map_or("", String::as_str);
            let expected = meaning(text, base, &addresses);
            assert_eq!(
                place,
                Some(&expected),
                "{label}: {offset:#x} {start:#x}..{end:#x} {text}"
            );
            let kind = format!("{expected:?}");
            let kind = kind.split([' ', '(']).next().unwrap().to_owned();
            *kinds.entry(kind).or_default() += 1;
            places.remove(&(*offset, *start, *end));
        }
    }
    // What is left must be constants, which are no locations.
    for ((offset, start, ..), place) in places {
        assert!(
            matches!(place, Place::Constant(_) | Place::Complex),
            "{label}: {offset:#x} {start:#x} {place:?} is not in the file"
        );
    }
    Some(kinds)
}

#[test]
fn every_place_is_the_one_another_reader_prints() {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for (label, built) in every_c() {
        let Some(found) = compare(&label, &built) else {
            return;
        };
        for (kind, count) in found {
            *kinds.entry(kind).or_default() += count;
        }
    }
    // The fixture has them all.
    for kind in [
        "Register",
        "Memory",
        "Value",
        "Fixed",
        "Constant",
        "EntryValue",
        "Complex",
    ] {
        assert!(
            kinds.get(kind).is_some_and(|&count| count > 0),
            "{kind}: {kinds:?}"
        );
    }
}

#[test]
fn every_place_in_a_rust_program_is_the_one_another_reader_prints() {
    for level in ["0", "2", "3"] {
        let level = format!("opt-level={level}");
        let flags = ["-g", "-C", &level];
        if let Some(built) = build("rustc", &["data.rs"], &flags) {
            compare(&format!("rustc {level}"), &built);
        }
    }
}

#[test]
fn parameters_are_in_the_registers_of_the_calling_convention_at_the_first_instruction() {
    for compiler in ["cc", "clang"] {
        let Some(built) = build(compiler, &C, &["-g", "-O2"]) else {
            continue;
        };
        let places = built.places(built.symbol("find"));
        // System V psABI x86-64, section 3.2.3: rdi (5), rsi (4).
        for (name, register) in [("n", 5), ("value", 4)] {
            let expected = (name.to_owned(), Place::Register(Register(register)));
            assert!(places.contains(&expected), "{compiler}: {places:?}");
        }
    }
}

#[test]
fn the_parts_of_a_structure_passed_in_registers_are_each_in_one() {
    for (compiler, level) in [("cc", "-O1"), ("cc", "-O2"), ("clang", "-O2")] {
        let Some(built) = build(compiler, &C, &["-g", level]) else {
            continue;
        };
        let svma = built.symbol("pieces");
        let locals = built.module.locals(svma).unwrap();
        let here = |start: u64, end: u64| (start..end).contains(&svma);
        let parts: Vec<(u64, u64, Place)> = locals
            .pieces
            .iter()
            .filter(|piece| here(piece.start, piece.end))
            .map(|piece| (piece.offset, piece.size, piece.place))
            .collect();
        // System V psABI x86-64, section 3.2.3: rdi (5), rsi (4).
        let register = |number| Place::Register(Register(number));
        assert_eq!(
            parts,
            [(0, 8, register(5)), (8, 8, register(4))],
            "{compiler} {level}"
        );
        // The function next to it has nothing in parts.
        let find = built.module.locals(built.symbol("find")).unwrap();
        assert_eq!(find.pieces.len(), 0, "{compiler} {level}");
    }
}

#[test]
fn variables_have_the_names_and_types_of_what_they_were_inlined_from() {
    for (label, built) in every_c() {
        let view = built.module.debug_info().unwrap().view();
        let locals = built.module.locals(built.symbol("walk")).unwrap();
        for local in &locals.variables {
            let ty = view.type_name(local.ty);
            let expected = match local.name.as_deref() {
                Some("start") => "struct node *",
                Some("n") => {
                    assert!(ty.ends_with("struct node *"), "{label}: {ty}");
                    continue;
                }
                Some("limit" | "i") => "int",
                Some("sum" | "heavy" | "twice" | "scale") => "long",
                other => panic!("{label}: {other:?}"),
            };
            assert!(
                ty == expected || ty == format!("{expected} int"),
                "{label}: {ty}"
            );
        }
        // The inlined call has parameters too.
        let own = locals.variables.iter().filter(|local| local.own);
        let names: Vec<_> = own.filter_map(|local| local.name.as_deref()).collect();
        assert_eq!(names, ["start", "limit"], "{label}");
        assert!(
            locals
                .variables
                .iter()
                .all(|local| local.parameter || !local.own)
        );
    }
}

#[test]
fn a_function_without_variables_has_none_and_an_address_without_function_no_answer() {
    let built = build("cc", &C, &["-g", "-O2"]).unwrap();
    let locals = built.module.locals(built.symbol("nothing")).unwrap();
    assert_eq!((locals.variables.len(), locals.homes.len()), (0, 0));
    for svma in [0, 1, u64::MAX, built.symbol("head")] {
        assert_eq!(built.module.locals(svma).err(), Some(Untraced::NoDebugInfo));
    }
    let stripped = build("cc", &C, &["-O2", "-s"]).unwrap();
    let start = stripped.module.memory().start;
    assert_eq!(
        stripped.module.locals(start).err(),
        Some(Untraced::NoDebugInfo)
    );
}

#[test]
fn a_function_is_read_once() {
    let built = build("cc", &C, &["-g", "-O2"]).unwrap();
    let svma = built.symbol("walk");
    let first = built.module.locals(svma).unwrap();
    assert!(Arc::ptr_eq(&first, &built.module.locals(svma + 1).unwrap()));
    let other = built.module.locals(built.symbol("find")).unwrap();
    assert!(!Arc::ptr_eq(&first, &other));
}

#[test]
fn the_type_that_a_function_returns_is_known_by_its_address() {
    for (label, built) in every_c() {
        let view = built.module.debug_info().unwrap().view();
        let name = |function| {
            let ty = built.module.return_type(built.symbol(function));
            ty.map(|ty| view.type_name(Some(ty)))
        };
        assert_eq!(name("find").as_deref(), Some("struct node *"), "{label}");
        assert_eq!(name("nothing"), None, "{label}");
        let inside = built.symbol("find") + 1;
        assert_eq!(built.module.return_type(inside), None, "{label}");
    }
}
