//! The rows of an unwind table, of which only the rule for the canonical frame address is kept (DWARF 5, section 6.4).

use gimli::{CfaRule, EndianSlice, LittleEndian, UnwindContext, UnwindOffset, UnwindSection};

use super::entries::Section;
use crate::locals::Register;

/// Rows of one function that are kept. Compilers make about two for each pushed register.
const MOST_ROWS: usize = 1 << 14;

/// From here to the next row, the frame starts at register plus offset; or the rule is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) start: u64,
    pub(super) rule: Option<(Register, i64)>,
}

/// The rows of the entry at an offset, in the order of their addresses. What comes before damage is kept, and then a
/// row without a rule.
pub(super) fn rows<'a, S>(section: &Section<S>, offset: usize) -> Vec<Row>
where
    S: UnwindSection<EndianSlice<'a, LittleEndian>>,
    S::Offset: UnwindOffset<usize>,
{
    let Section { frames, bases } = section;
    let parsed = frames.fde_from_offset(bases, S::Offset::from(offset), S::cie_from_offset);
    let Ok(entry) = parsed else {
        return Vec::new();
    };
    let mut context = UnwindContext::new();
    let Ok(mut table) = entry.rows(frames, bases, &mut context) else {
        return Vec::new();
    };
    let mut rows: Vec<Row> = Vec::new();
    let mut reached = entry.initial_address();
    loop {
        match table.next_row() {
            Ok(Some(row)) if rows.len() < MOST_ROWS && row.start_address() >= reached => {
                let rule = match *row.cfa() {
                    CfaRule::RegisterAndOffset { register, offset } => u8::try_from(register.0)
                        .ok()
                        .map(|register| (Register(register), offset)),
                    CfaRule::Expression(_) => None,
                };
                // Most rows only say where another register was saved.
                if rows.last().is_none_or(|last| last.rule != rule) {
                    rows.push(Row {
                        start: row.start_address(),
                        rule,
                    });
                }
                reached = row.end_address();
            }
            Ok(None) => break,
            _ => {
                rows.push(Row {
                    start: reached,
                    rule: None,
                });
                break;
            }
        }
    }
    rows
}
