//! Code that no ELF file holds: what just-in-time compilers write down about it.
//!
//! Both readers take the bytes from their position on, as often as the file grew, and keep no code and no text
//! of the file but names. Addresses are run-time addresses of the process that wrote the file.

mod jitdump;
mod overlay;
mod perf_map;

pub use jitdump::{JitDump, JitDumpError, JitLine};
pub use perf_map::PerfMap;

/// Functions that are kept of one file; a Java server has some ten thousand.
const MOST_FUNCTIONS: usize = 1 << 20;
/// Bytes of names that are kept of one file.
const MOST_NAME_BYTES: usize = 64 << 20;
/// Longest name that is kept whole, bytes.
const LONGEST_NAME: usize = 4096;

/// A piece of compiled code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JitFunction<'a> {
    /// As the compiler calls it; not demangled.
    pub name: &'a str,
    /// First address.
    pub start: u64,
    /// First address after it, or where later code begins that was put over its end.
    pub end: u64,
    /// Whether the code still begins at `start`: false when later code was put over its beginning, and what is
    /// left cannot be cut into instructions.
    pub entered: bool,
}

/// Names end to end, each kept as its place.
#[derive(Debug, Default)]
struct Names(String);

impl Names {
    /// Keeps a name; `None` when there is no room left.
    fn keep(&mut self, name: &[u8]) -> Option<(u32, u32)> {
        let name = String::from_utf8_lossy(&name[..name.len().min(LONGEST_NAME)]);
        if self.0.len() + name.len() > MOST_NAME_BYTES {
            return None;
        }
        let at = self.0.len() as u32;
        self.0.push_str(&name);
        Some((at, name.len() as u32))
    }

    /// Bytes on the heap.
    fn bytes(&self) -> usize {
        self.0.capacity()
    }

    fn get(&self, (at, len): (u32, u32)) -> &str {
        let at = at as usize;
        self.0.get(at..at + len as usize).unwrap_or("")
    }
}
