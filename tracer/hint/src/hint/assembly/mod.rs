//! Hints into the assembly text of a compiler: a prefetch for ownership in front of each hinted load. Pure: text and
//! hints in, text and what was placed out.
//!
//! A load is found by its source line and column (`.loc`), and told from its neighbours there by its operand.
//! [`rewrite()`] is where to start; `line` knows the text, `x86` and `a64` know instructions, `choose` decides.
//! A prefetch changes no flag and no register and never faults, so it may stand in front of any load (AMD64
//! Architecture Programmer's Manual volume 3, PREFETCHW; Arm ARM C6.2, PRFM).

mod a64;
mod callers;
mod choose;
mod compared;
mod files;
mod functions;
mod instruction;
mod line;
mod machine;
mod operand;
mod path;
mod placing;
mod rewrite;
mod sources;
mod unit;
mod wanted;
mod words;
mod writes;
mod x86;

#[cfg(test)]
mod tests;

pub use choose::{How, Refusal};
pub use compared::Compared;
pub use instruction::Kept;
pub use machine::{
    Checked, CheckedLoad, Lines, MachineFunction, PlacedRead, Standing, prefetch_of,
};
pub use operand::Operand;
pub use path::PathMap;
pub use rewrite::{Placement, Rewritten, Unread, rewrite};
pub use sources::{NoTree, Tree};
pub use wanted::Place;
pub use words::{Summary, UnitRecord, hinted_place, lines, place, record, summary};
