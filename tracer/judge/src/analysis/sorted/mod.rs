//! The other way to fold: line by line instead of all lines at once.
//!
//! A recorded stream is cut into [`SortRecord`]es of a fixed size, which are sorted by line where there is room
//! (see [`crate::spill`]), and each line is folded by itself:
//!
//! ```text
//!   stream   a b a c b a          LineTable: a, b and c are in memory until the end, or some are evicted
//!   sorted   a a a │ b b │ c      LineFold: one line is in memory, nothing is evicted
//! ```
//!
//! The sort is stable, so that a line is fed the same accesses in the same order either way.

mod access;
mod fold;
mod order;

pub use access::{Objects, SortRecord};
pub use fold::LineFold;
pub use order::{SortKey, order};
