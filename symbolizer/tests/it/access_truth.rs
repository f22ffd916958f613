//! Data by instruction against what the sources say: each line of `fixtures/access` that accesses memory states what its
//! operands may be. Every answer must be among them; how many operands have an answer is counted.

use std::{
    collections::BTreeMap,
    fmt::{self, Write},
};

use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, OpAccess, OpKind, Register,
};
use object::{Object, ObjectSymbol, SymbolKind};
use symbolizer::{Accessed, Module, Operand, Storage, Untraced};

use crate::toolchain::{Built, build, fixture};

const LEVELS: [&str; 4] = ["0", "1", "2", "3"];

/// The source of each compiler.
const SOURCES: [(&str, &[&str]); 5] = [
    ("cc", &C),
    ("clang", &C),
    ("g++", &["objects.cpp"]),
    ("clang++", &["objects.cpp"]),
    ("rustc", &["owned.rs", "shared.rs"]),
];

/// The crates of Rust's sources, whose names stand before those of their types.
const CRATES: [&str; 2] = ["owned::", "shared::"];

const C: [&str; 5] = ["lists.c", "aggregates.c", "loops.c", "threads.c", "rows.c"];

/// What the lines of a source may access, by line.
struct Truth(BTreeMap<u32, Vec<String>>);

impl Truth {
    fn read(name: &str) -> Truth {
        let source = std::fs::read_to_string(fixture(name)).unwrap();
        let lines = source.lines().zip(1..).filter_map(|(line, number)| {
            let (_, marks) = line.split_once("//= ")?;
            Some((
                number,
                marks
                    .split('|')
                    .map(|mark| mark.trim().to_owned())
                    .collect(),
            ))
        });
        Truth(lines.collect())
    }
}

/// How the operands of a program were judged.
#[derive(Default)]
struct Tally {
    right: usize,
    missing: BTreeMap<Untraced, usize>,
    wrong: Vec<String>,
    /// What was missing, line by line, to be read by people.
    lines: Vec<String>,
}

impl Tally {
    fn judged(&self) -> usize {
        self.right + self.wrong.len() + self.missing.values().sum::<usize>()
    }

    fn rate(&self) -> f64 {
        self.right as f64 / self.judged().max(1) as f64
    }

    fn add(&mut self, other: Tally) {
        self.right += other.right;
        for (reason, count) in other.missing {
            *self.missing.entry(reason).or_default() += count;
        }
        self.wrong.extend(other.wrong);
        self.lines.extend(other.lines);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.rate() * 100.0;
        write!(f, "{:4} of {:4} {percent:5.1} %", self.right, self.judged())?;
        write!(f, "  wrong {}", self.wrong.len())?;
        for (reason, count) in &self.missing {
            write!(f, "  {} {count}", reason.name())?;
        }
        Ok(())
    }
}

/// A memory operand that is written in the instruction, and how it is used.
fn operands(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Vec<Operand> {
    let info = factory.info(instruction);
    let mut found = Vec::new();
    for index in 0..instruction.op_count() {
        let memory = matches!(
            instruction.op_kind(index),
            OpKind::Memory | OpKind::MemorySegRSI | OpKind::MemoryESRDI | OpKind::MemorySegRDI
        );
        if !memory {
            continue;
        }
        match info.op_access(index) {
            OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite => {
                found.push(Operand::Load);
            }
            OpAccess::Write | OpAccess::CondWrite => found.push(Operand::Store),
            _ => {}
        }
    }
    found
}

/// Whether the operand is a place in the frame: by the stack pointer, or by the frame pointer of a function that has one.
fn is_in_frame(instruction: &Instruction, has_frame_pointer: bool) -> bool {
    match instruction.memory_base() {
        Register::RSP => true,
        Register::RBP => has_frame_pointer,
        _ => false,
    }
}

/// `queue.slots[].head` for `struct queue` and `.slots[3].head`; of an array itself, its element.
fn normal(type_name: &str, path: &str) -> String {
    let mut name = type_name.trim();
    for keyword in ["const ", "volatile ", "struct ", "union ", "class "] {
        name = name.strip_prefix(keyword).unwrap_or(name);
    }
    let mut path = without_indexes(path);
    let mut name = without_indexes(name);
    while let Some(element) = name.strip_suffix("[]") {
        name = element.trim_end().to_owned();
        path = path.strip_prefix("[]").unwrap_or(&path).to_owned();
    }
    if path == "[]" {
        path.clear();
    }
    format!("{name}{path}")
}

fn without_indexes(text: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for letter in text.chars() {
        match letter {
            '[' => {
                inside = true;
                out.push('[');
            }
            ']' => {
                inside = false;
                out.push(']');
            }
            digit if inside && (digit.is_ascii_digit() || digit == '?') => {}
            other => out.push(other),
        }
    }
    out
}

/// `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = pattern.rsplit('*').next().filter(|_| pattern.contains('*')) else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    last.is_empty() || text.ends_with(last)
}

/// Whether an answer is among what a line may access.
fn is_among(accessed: &Accessed, marks: &[String]) -> bool {
    // `.a or .b` of a union, `.a to .z` of a wide access: each part is a member that is touched.
    let path = accessed
        .field
        .path
        .replace(" or ", " and ")
        .replace(" to ", " and ");
    path.split(" and ").any(|part| {
        let full = normal(&accessed.type_name, part);
        marks.iter().any(|mark| {
            let (mark, frame) = match mark.strip_prefix('@') {
                Some(rest) => (rest, true),
                None => (mark.as_str(), false),
            };
            // Rust's names have their crate in front.
            let plain = full.split_once("::").map_or("", |(_, rest)| rest);
            (!frame || accessed.storage == Storage::Frame)
                && (matches(mark, &full)
                    || CRATES.iter().any(|name| full.starts_with(name)) && matches(mark, plain))
        })
    })
}

/// Judges every memory operand of the functions of one source.
fn judge(label: &str, built: &Built, name: &str) -> Tally {
    let truth = Truth::read(&format!("access/{name}"));
    let module = built.module();
    let bytes = built.bytes();
    let file = object::File::parse(&*bytes).unwrap();
    let mut data: Vec<(u64, u64)> = Vec::new();
    let mut functions = BTreeMap::new();
    for symbol in file.symbols() {
        let range = (symbol.address(), symbol.address() + symbol.size());
        match symbol.kind() {
            SymbolKind::Text if symbol.size() > 0 => {
                functions.insert(range.0, range.1);
            }
            SymbolKind::Data => data.push(range),
            _ => {}
        }
    }
    let mut tally = Tally::default();
    let mut factory = InstructionInfoFactory::new();
    for (start, end) in functions {
        let outer = module.frames(start).frames;
        let ours = |file: &Option<std::sync::Arc<str>>| {
            file.as_deref()
                .is_some_and(|file| file.ends_with(&format!("access/{name}")))
        };
        if !outer.last().is_some_and(|frame| ours(&frame.file)) {
            continue;
        }
        let code = module.code(start, end).unwrap();
        let instructions: Vec<Instruction> =
            Decoder::with_ip(64, code, start, DecoderOptions::NONE)
                .into_iter()
                .collect();
        let has_frame_pointer = instructions.iter().take(4).any(|instruction| {
            instruction.op0_register() == Register::RBP
                && instruction.op_count() == 2
                && instruction.op1_register() == Register::RSP
        });
        for instruction in &instructions {
            let svma = instruction.ip();
            let frames = module.frames(svma).frames;
            let line = frames
                .iter()
                .find(|frame| ours(&frame.file))
                .and_then(|frame| frame.line);
            let marks = line.and_then(|line| truth.0.get(&line));
            // Constants and the tables of the linker are no variables.
            let constant = instruction.is_ip_rel_memory_operand() && {
                let address = instruction.ip_rel_memory_address();
                !data
                    .iter()
                    .any(|&(start, end)| (start..end).contains(&address))
            };
            if constant {
                continue;
            }
            for operand in operands(instruction, &mut factory) {
                let in_frame = is_in_frame(instruction, has_frame_pointer);
                let Some(marks) = marks else { continue };
                let told = format!(
                    "{label} {name}:{} {svma:#x} {operand:?} [{marks:?}]",
                    line.unwrap_or(0)
                );
                match access(&module, svma, operand) {
                    Ok(accessed) if is_among(&accessed, marks) => tally.right += 1,
                    // A plain variable in the frame: every line uses some, and the marks leave them out.
                    Ok(accessed) if in_frame && accessed.field.path.is_empty() => {}
                    Ok(accessed) => tally.wrong.push(format!(
                        "{told}: {} is {}{}",
                        accessed.expression, accessed.type_name, accessed.field.path
                    )),
                    Err(_) if in_frame && !marks.iter().any(|mark| mark.starts_with('@')) => {}
                    Err(Untraced::Spill) if in_frame => {}
                    Err(reason) => {
                        *tally.missing.entry(reason).or_default() += 1;
                        tally.lines.push(format!("{told}: {reason}"));
                    }
                }
            }
        }
    }
    tally
}

fn access(module: &Module, svma: u64, operand: Operand) -> Result<Accessed, Untraced> {
    module.access(svma, operand)
}

#[test]
fn every_answer_is_what_the_source_says() {
    let mut table = String::new();
    let mut wrong = Vec::new();
    let (mut right, mut judged) = (0, 0);
    for (compiler, sources) in SOURCES {
        for level in LEVELS {
            let mut all = Tally::default();
            for name in sources {
                let (flag, optimisation) = (format!("-O{level}"), format!("opt-level={level}"));
                let flags: &[&str] = match compiler {
                    "rustc" => &["--edition", "2024", "-g", "-C", &optimisation],
                    // Without it, a class is only declared where no constructor is.
                    "clang++" => &["-g", &flag, "-fstandalone-debug"],
                    _ => &["-g", &flag],
                };
                let label = format!("{compiler} {flag}");
                if let Some(built) = build(compiler, &format!("access/{name}"), flags) {
                    all.add(judge(&label, &built, name));
                }
            }
            writeln!(table, "{compiler:8} -O{level}  {all}").unwrap();
            if level == "2" {
                right += all.right;
                judged += all.judged();
                // Measured: 96.8 to 100 of 100.
                if all.judged() > 0 && all.rate() < 0.95 {
                    wrong.push(format!("{compiler} -O2 has too few answers: {all}"));
                }
            }
            for line in &all.lines {
                eprintln!("missing {line}");
            }
            wrong.extend(all.wrong);
        }
    }
    eprintln!("{table}");
    assert!(
        right * 100 >= judged * 95,
        "at -O2, {right} of {judged} are answered"
    );
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn what_lies_beside_an_object_is_no_element_where_something_larger_may_be_meant() {
    for (compiler, name, fewest) in [
        ("cc", "casts.c", 6),
        ("clang", "casts.c", 6),
        ("g++", "casts.cpp", 1),
        ("clang++", "casts.cpp", 1),
    ] {
        for level in LEVELS {
            let flag = format!("-O{level}");
            let flags = ["-g", &flag, "-std=gnu++17"];
            let flags = &flags[..if name.ends_with("pp") { 3 } else { 2 }];
            let Some(built) = build(compiler, &format!("access/{name}"), flags) else {
                continue;
            };
            let tally = judge(&format!("{compiler} {flag}"), &built, name);
            assert!(tally.wrong.is_empty(), "{}", tally.wrong.join("\n"));
            // Some have a variable that says it, the others have nothing.
            let outside = tally.missing.get(&Untraced::OutsideType);
            assert!(
                outside.is_some_and(|&count| count >= fewest),
                "{compiler} {flag}: {tally}"
            );
        }
    }
}

#[test]
fn the_comparison_tells_right_from_wrong() {
    assert!(matches("a.*", "a.b") && matches("*", "x") && matches("S<*>.n", "S<long>.n"));
    assert!(!matches("a.*", "b.b") && !matches("a", "ab") && !matches("S<*>.n", "S<long>.m"));
    assert_eq!(
        normal("struct queue", ".slots[3].head"),
        "queue.slots[].head"
    );
    assert_eq!(normal("struct slot[4]", "[2].n"), "slot.n");
    assert_eq!(normal("long", ""), "long");
}
