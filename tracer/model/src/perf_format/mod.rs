//! Numbers of perf's formats: of the records that the kernel writes into rings, and of perf's files around them.
//! For all who open events, read rings, and read or write files.

pub mod attr_flag;
pub mod clock;
pub mod feature;
pub mod mapping;
pub mod record;
pub mod sample_type;
pub mod side_band;
