//! Protection and flags of mappings, as in `mmap(2)` and records of mappings.

/// Can be read.
pub const PROT_READ: u32 = 1;
/// Can be written.
pub const PROT_WRITE: u32 = 2;
/// Can be executed.
pub const PROT_EXEC: u32 = 4;
/// Writes are seen by others who map it.
pub const MAP_SHARED: u32 = 1;
/// They are not.
pub const MAP_PRIVATE: u32 = 2;
