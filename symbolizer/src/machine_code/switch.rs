//! Jump tables: where a `switch` goes.

use super::{Effect, Index, Instruction, Memory, Next, Source};

/// Instructions before the jump in which its table is looked for.
const MOST_BEFORE: usize = 64;
/// Entries of one table.
const MOST_TARGETS: usize = 4096;

/// What an indirect jump goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// No table: a call in tail position.
    None,
    /// A table of these targets, and maybe more than it has.
    Targets(Vec<u64>),
    /// A table that was not found.
    NotUnderstood,
}

/// Finds the table of an indirect jump. `read` gives the bytes of the file from an address on, `holds` says whether an
/// address is in the function.
pub(crate) fn table_of<'a>(
    instructions: &[Instruction],
    jump: usize,
    read: impl Fn(u64) -> Option<&'a [u8]>,
    holds: impl Fn(u64) -> bool,
) -> Table {
    let before = &instructions[jump.saturating_sub(MOST_BEFORE)..jump];
    let Some(Next::Indirect) = instructions.get(jump).map(|found| found.next) else {
        return Table::None;
    };
    // `jmp *table(,%rax,8)`: addresses.
    if let Some(operand) = instructions[jump].operands.first() {
        return match (operand.base, operand.index) {
            (None, Some(Index::Register(_))) => absolute(operand.displacement as u64, read, holds),
            (Some(base), Some(Index::Register(_))) => match base_of(before, base) {
                Some(table) => {
                    absolute(table.wrapping_add_signed(operand.displacement), read, holds)
                }
                None => Table::NotUnderstood,
            },
            _ => Table::None,
        };
    }
    // `movslq (table,%rax,4),%rax; add table,%rax; jmp *%rax`: distances from the table.
    let scaled = |memory: &&Memory| memory.index.is_some() && memory.scale == 4 && memory.size == 4;
    let recent = before.len().saturating_sub(24);
    let load = before[recent..]
        .iter()
        .rev()
        .find_map(|instruction| instruction.operands.iter().find(scaled).copied());
    let wide = before[recent..].iter().rev().find_map(|instruction| {
        let load = |effect: &Effect| match effect {
            Effect::Set {
                value: Source::Load(memory),
                ..
            } if memory.index.is_some() && memory.scale == 8 => Some(*memory),
            _ => None,
        };
        instruction.effects.iter().find_map(load)
    });
    match (load, wide) {
        (Some(load), _) => {
            let table = load
                .base
                .and_then(|base| base_of(instructions.get(..jump).unwrap_or(&[]), base));
            match table {
                Some(table) => relative(table.wrapping_add_signed(load.displacement), read, holds),
                None => Table::NotUnderstood,
            }
        }
        (None, Some(_)) => Table::NotUnderstood,
        (None, None) => Table::None,
    }
}

/// The address that was last put into a register.
fn base_of(before: &[Instruction], base: super::Register) -> Option<u64> {
    let setter = before.iter().rev().find(|instruction| {
        instruction
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::Set { to, .. } if *to == base))
    })?;
    setter.effects.iter().find_map(|effect| match effect {
        Effect::Set {
            to,
            value: Source::Address(memory),
        } if *to == base && memory.absolute => Some(memory.displacement as u64),
        Effect::Set {
            to,
            value: Source::Constant(value),
        } if *to == base => Some(*value),
        _ => None,
    })
}

fn absolute<'a>(
    table: u64,
    read: impl Fn(u64) -> Option<&'a [u8]>,
    holds: impl Fn(u64) -> bool,
) -> Table {
    let Some(bytes) = read(table) else {
        return Table::NotUnderstood;
    };
    let entries = bytes.as_chunks::<8>().0.iter();
    collect(entries.map(|entry| u64::from_le_bytes(*entry)), holds)
}

fn relative<'a>(
    table: u64,
    read: impl Fn(u64) -> Option<&'a [u8]>,
    holds: impl Fn(u64) -> bool,
) -> Table {
    let Some(bytes) = read(table) else {
        return Table::NotUnderstood;
    };
    let entries = bytes.as_chunks::<4>().0.iter();
    let target = |entry: &[u8; 4]| table.wrapping_add_signed(i64::from(i32::from_le_bytes(*entry)));
    collect(entries.map(target), holds)
}

/// Up to the first entry that leads out of the function.
fn collect(entries: impl Iterator<Item = u64>, holds: impl Fn(u64) -> bool) -> Table {
    let targets: Vec<u64> = entries
        .take(MOST_TARGETS)
        .take_while(|target| holds(*target))
        .collect();
    if targets.is_empty() {
        Table::NotUnderstood
    } else {
        Table::Targets(targets)
    }
}
