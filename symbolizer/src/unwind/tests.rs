//! Rows compared with those that `readelf` prints.

use crate::locals::{
    Register,
    tests::{build, printed},
};

/// DWARF numbers of the general registers (System V psABI x86-64, figure 3.36).
const NAMES: [&str; 16] = [
    "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

/// The rows of each entry: (start, rule), with the end of the entry.
type Entry = (u64, Vec<(u64, Option<(Register, i64)>)>);

fn parse(text: &str) -> Vec<Entry> {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let mut entries: Vec<Entry> = Vec::new();
    // After the heading of an entry's rows; common entries have rows too.
    let (mut of_entry, mut inside) = (false, false);
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(range) = words.iter().find_map(|word| word.strip_prefix("pc=")) {
            let end = range
                .split_once("..")
                .and_then(|(_, end)| hex(end))
                .unwrap();
            entries.push((end, Vec::new()));
            of_entry = true;
        } else if words.contains(&"CIE") {
            of_entry = false;
        } else if words.is_empty() {
            inside = false;
        } else if words[0] == "LOC" {
            inside = of_entry;
        } else if inside && let Some(start) = hex(words[0]) {
            let rule = words[1].split_once('+').map(|(name, offset)| {
                let register = NAMES.iter().position(|known| *known == name).unwrap();
                (Register(register as u8), offset.parse().unwrap())
            });
            entries.last_mut().unwrap().1.push((start, rule));
        }
    }
    entries
}

#[test]
fn every_row_is_the_one_that_readelf_prints() {
    let c = ["locals/places.c", "locals/rest.c"];
    let kinds: [&[&str]; 4] = [
        &["-g", "-O0"],
        &["-g", "-O2"],
        &["-g", "-O2", "-fno-omit-frame-pointer"],
        // Call frame information for debuggers alone.
        &[
            "-g",
            "-O2",
            "-fno-asynchronous-unwind-tables",
            "-fno-exceptions",
        ],
    ];
    for compiler in ["cc", "clang"] {
        for flags in kinds {
            let Some(built) = build(compiler, &c, flags) else {
                continue;
            };
            let arguments = ["--debug-dump=frames-interp"];
            let Some(text) = printed(&["readelf"], &arguments, &built.path) else {
                return;
            };
            if flags.len() == 4 {
                assert!(text.contains("the .debug_frame section"), "{compiler}");
            }
            let mut compared = 0;
            for (end, rows) in parse(&text) {
                let ends = rows.iter().skip(1).map(|row| row.0).chain([end]);
                for (&(start, rule), end) in rows.iter().zip(ends) {
                    // A last row may start where the entry ends.
                    if start >= end {
                        continue;
                    }
                    for svma in [start, end - 1] {
                        let found = built.module.cfa(svma);
                        assert_eq!(found, rule, "{compiler} {flags:?} {svma:#x}");
                    }
                    compared += 1;
                }
            }
            assert!(
                compared > 20,
                "{compiler} {flags:?}: {compared} rows in\n{text}"
            );
        }
    }
}

#[test]
fn addresses_without_call_frame_information_have_no_frame_address() {
    let built = build("cc", &["locals/places.c", "locals/rest.c"], &["-g"]).unwrap();
    for svma in [0, 1, built.module.memory().start, u64::MAX] {
        assert_eq!(built.module.cfa(svma), None, "{svma:#x}");
    }
}
