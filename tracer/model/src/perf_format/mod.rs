//! Perf's formats: of the records that the kernel writes into rings, and of perf's files around them.
//! For all who open events, read rings, and read or write files: the records themselves, both ways, without a meaning.

pub mod attr_flag;
pub mod bytes;
pub mod clock;
pub mod feature;
pub mod fields;
pub mod frame;
pub mod mapping;
pub mod read_format;
pub mod record;
pub mod ring_record;
pub mod sample;
pub mod sample_type;
pub mod side_band;
pub mod trailer;
