//! Checks the keys without the tool: binutils show which instructions of a program touch memory, and where they
//! come from.

use std::{
    collections::BTreeMap,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, bail};

use crate::{compare::FunctionRanges, report::hex};

/// An instruction that touches memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryInstruction {
    /// Address in the file.
    pub address: u64,
    /// As objdump prints it.
    pub text: String,
    /// `load`, `store` or `rmw`.
    pub op: &'static str,
    /// The function it was inlined from, its caller, and so on: name, file, line.
    pub frames: Vec<Frame>,
}

/// A `prefetchw` of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefetched {
    /// Its address in the file.
    pub address: u64,
    /// What it fetches: the operand, or of one that depends on its place the address and symbol that objdump computes.
    pub operand: String,
    /// The instruction right behind it, as objdump prints it.
    pub next: String,
    /// Where that comes from, innermost first.
    pub frames: Vec<Frame>,
}

impl Prefetched {
    /// Whether the instruction behind it reads what it fetches.
    pub fn is_of_next(&self) -> bool {
        self.next.contains(&self.operand) && matches!(memory_op(&self.next), Some("load" | "rmw"))
    }
}

/// One level of inlining.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Demangled.
    pub function: String,
    /// Base name.
    pub file: String,
    /// From 1.
    pub line: u32,
}

/// Every function of a program by its demangled name.
pub fn functions(program: &Path) -> anyhow::Result<FunctionRanges> {
    let text = output(
        Command::new("nm")
            .args(["--demangle", "--print-size"])
            .arg(program),
    )?;
    let mut functions = FunctionRanges::new();
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        let (Some(start), Some(size), Some("T" | "t"), Some(name)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let start = u64::from_str_radix(start, 16)?;
        let size = u64::from_str_radix(size, 16)?;
        functions.insert(name.to_owned(), start..start + size);
    }
    Ok(functions)
}

/// The instructions of a function that touch memory; empty when there is no such function.
pub fn memory_instructions(
    program: &Path,
    function: &str,
) -> anyhow::Result<Vec<MemoryInstruction>> {
    let functions = functions(program)?;
    // C++ symbols carry their arguments, Rust ones a hash.
    let found = functions.iter().find(|(name, _)| {
        name.as_str() == function
            || name
                .strip_prefix(function)
                .is_some_and(|rest| rest.starts_with('(') || rest.starts_with("::h"))
    });
    let Some((_, range)) = found else {
        return Ok(Vec::new());
    };
    let listing = output(
        Command::new("objdump")
            .args(["--disassemble", "--no-show-raw-insn"])
            .arg(format!("--start-address={:#x}", range.start))
            .arg(format!("--stop-address={:#x}", range.end))
            .arg(program),
    )?;
    let touching: Vec<(u64, &str, &str)> = listing
        .lines()
        .filter_map(|line| {
            let (address, text) = line.trim().split_once(":\t")?;
            Some((
                u64::from_str_radix(address, 16).ok()?,
                text,
                memory_op(text)?,
            ))
        })
        .collect();
    let addresses: Vec<u64> = touching.iter().map(|(address, ..)| *address).collect();
    let mut frames = frames(program, &addresses)?;
    Ok(touching
        .into_iter()
        .map(|(address, text, op)| MemoryInstruction {
            address,
            text: text.to_owned(),
            op,
            frames: frames.remove(&address).unwrap_or_default(),
        })
        .collect())
}

/// Every `prefetchw` of a program, in the order of addresses.
pub fn prefetches(program: &Path) -> anyhow::Result<Vec<Prefetched>> {
    let listing = output(
        Command::new("objdump")
            .args(["--disassemble", "--no-show-raw-insn"])
            .arg(program),
    )?;
    let instructions: Vec<(u64, &str)> = listing
        .lines()
        .filter_map(|line| {
            let (address, text) = line.trim().split_once(":\t")?;
            Some((u64::from_str_radix(address, 16).ok()?, text.trim()))
        })
        .collect();
    let pairs = instructions.windows(2).filter_map(|pair| {
        let operand = pair[0].1.strip_prefix("prefetchw")?.trim();
        Some((pair[0].0, fetched(operand), pair[1]))
    });
    let pairs: Vec<_> = pairs.collect();
    let addresses: Vec<u64> = pairs.iter().map(|(_, _, (next, _))| *next).collect();
    let mut frames = frames(program, &addresses)?;
    Ok(pairs
        .into_iter()
        .map(|(address, operand, (next, text))| Prefetched {
            address,
            operand: operand.to_owned(),
            next: text.to_owned(),
            frames: frames.remove(&next).unwrap_or_default(),
        })
        .collect())
}

/// What two instructions have in common that touch one place: displacements from the instruction pointer differ.
fn fetched(operand: &str) -> &str {
    operand.split_once("# ").map_or(operand, |(_, place)| place)
}

/// What an instruction in AT&T syntax does to memory; the destination is its last operand. Only the instructions that
/// compilers use for plain counting, reading and locking are known.
fn memory_op(text: &str) -> Option<&'static str> {
    let code = text.split_once('#').map_or(text, |(code, _)| code).trim();
    let mut words = code.splitn(2, char::is_whitespace);
    let mut mnemonic = words.next()?;
    let mut operands = words.next().unwrap_or("").trim();
    if mnemonic == "lock" {
        (mnemonic, operands) = operands.split_once(char::is_whitespace)?;
    }
    let is_known = ["lea", "nop", "jmp", "call", "ret", "push", "pop"]
        .iter()
        .all(|no_data| !mnemonic.starts_with(no_data));
    if !is_known || !operands.contains('(') {
        return None;
    }
    let memory_is_destination = operands.trim_end().ends_with(')');
    let only_reads = mnemonic.starts_with("cmp") && !mnemonic.starts_with("cmpxchg")
        || mnemonic.starts_with("test");
    let exchanges = mnemonic.starts_with("xchg");
    Some(if exchanges {
        "rmw"
    } else if !memory_is_destination || only_reads {
        "load"
    } else if mnemonic.starts_with("mov") {
        "store"
    } else {
        "rmw"
    })
}

/// Where instructions come from, innermost frame first.
fn frames(program: &Path, addresses: &[u64]) -> anyhow::Result<BTreeMap<u64, Vec<Frame>>> {
    let mut addr2line = Command::new("addr2line")
        .args([
            "--addresses",
            "--functions",
            "--inlines",
            "--demangle",
            "--exe",
        ])
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting addr2line")?;
    let mut stdin = addr2line.stdin.take().context("addr2line has a stdin")?;
    // At most a few hundred short lines: they fit in the pipe, so nothing waits for the other side.
    for address in addresses {
        writeln!(stdin, "{address:#x}")?;
    }
    drop(stdin);
    let text = String::from_utf8(addr2line.wait_with_output()?.stdout)?;

    let mut frames: BTreeMap<u64, Vec<Frame>> = BTreeMap::new();
    let mut lines = text.lines().peekable();
    while let Some(address) = lines.next() {
        let address = hex(address).with_context(|| format!("addr2line prints {address}"))?;
        let here = frames.entry(address).or_default();
        while lines.peek().is_some_and(|line| !line.starts_with("0x")) {
            let function = lines.next().unwrap_or_default().to_owned();
            let place = lines
                .next()
                .context("addr2line names a function without a place")?;
            let place = place
                .split_once(" (discriminator")
                .map_or(place, |(place, _)| place);
            let (file, line) = place.rsplit_once(':').context("a place is file:line")?;
            here.push(Frame {
                function,
                file: file.rsplit('/').next().unwrap_or(file).to_owned(),
                line: line.parse().unwrap_or(0),
            });
        }
    }
    Ok(frames)
}

fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| {
        format!(
            "starting {}; binutils must be installed",
            command.get_program().display()
        )
    })?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefetch_is_of_the_next_instruction_when_that_reads_the_same_place() {
        for (operand, next, expected) in [
            ("0x8(%rdi)", "mov    0x8(%rdi),%rax", true),
            ("0x8(%rdi)", "add    0x8(%rdi),%rax", true),
            (
                "0x37d4(%rip)        # 5180 <barrier>",
                "mov    0x37ce(%rip),%eax        # 5180 <barrier>",
                true,
            ),
            (
                "0x37d4(%rip)        # 5180 <barrier>",
                "mov    0x37d4(%rip),%eax        # 5187 <barrier+0x7>",
                false,
            ),
            ("0x8(%rdi)", "mov    (%rdi),%rax", false),
            ("0x8(%rdi)", "lea    0x8(%rdi),%rax", false),
            ("0x8(%rdi)", "mov    %rax,0x8(%rdi)", false),
        ] {
            let prefetched = Prefetched {
                address: 0,
                operand: fetched(operand).to_owned(),
                next: next.to_owned(),
                frames: Vec::new(),
            };
            assert_eq!(prefetched.is_of_next(), expected, "{operand}; {next}");
        }
    }

    #[test]
    fn an_instruction_loads_stores_or_does_both() {
        for (text, op) in [
            (
                "addq   $0x1,0x2e20(%rip)        # 4100 <counters>",
                Some("rmw"),
            ),
            ("lock addq $0x1,(%rdi)", Some("rmw")),
            (
                "lock cmpxchg %edx,0x2e61(%rip)        # 4100 <account>",
                Some("rmw"),
            ),
            ("xchg   %eax,(%rdx)", Some("rmw")),
            ("xchg   (%rdx),%eax", Some("rmw")),
            (
                "mov    0x2e96(%rip),%edx        # 4180 <curtain>",
                Some("load"),
            ),
            ("mov    %rax,0x8(%rdi)", Some("store")),
            (
                "movl   $0x0,0x2e4c(%rip)        # 4100 <account>",
                Some("store"),
            ),
            ("add    0x10(%rdi),%rax", Some("load")),
            ("cmp    %eax,0x8(%rdi)", Some("load")),
            ("lea    0x8(%rdi),%rax", None),
            ("nopl   0x0(%rax)", None),
            ("add    $0x1,%rax", None),
            ("ret", None),
        ] {
            assert_eq!(memory_op(text), op, "{text}");
        }
    }
}
