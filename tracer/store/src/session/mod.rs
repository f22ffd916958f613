//! Recorded sessions: a directory of Parquet segments that gives back the stream it was given.
//!
//! [`SessionWriter`] takes [`Batch`](crate::event::Batch)es, [`SessionReader`] gives the same accesses, context
//! and windows in the same order with the same sum of tallies, so a report of a recording is the report
//! of the live run. [`schema`] is the one description of the files:
//!
//! ```text
//!   NAME.coh/
//!     meta.json                    who, where, how; counts so far; complete or not
//!     mappings/part-00000.parquet  ┐
//!     tasks/part-00000.parquet     ├ segment 0: context before accesses, accesses last:
//!     local_storage/part-..        │
//!     memory/part-00000.parquet    │
//!     windows/part-00000.parquet   │ its rename is what makes the segment exist
//!     accesses/part-00000.parquet  ┘
//! ```

mod access_table;
mod allocation_table;
mod cell;
mod claims;
mod columns;
mod context_tables;
mod directory;
mod error;
mod meta;
mod origin;
mod part_reader;
mod part_writer;
mod parts;
mod read_ahead;
mod reader;
pub mod schema;
mod seal;
mod segment;
mod tally_record;
mod upgrade;
mod window_table;
mod writer;

#[cfg(test)]
mod tests;

pub use error::{Damage, SessionError};
pub use meta::{MachineRecord, Meta, SourceRecord, TargetsRecord};
pub use reader::{Caveat, SessionReader};
pub use schema::SCHEMA_VERSION;
pub use tally_record::{HeapTallyRecord, TallyRecord};
pub use writer::{SessionWriter, WriterOptions};
