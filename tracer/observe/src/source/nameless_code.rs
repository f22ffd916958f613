//! Code of processes that nothing divides into functions: which of its instructions are known, since they ran.
//!
//! The ips of samples and traps, and what control goes to from there, are remembered a page at a time, with the bytes: a
//! compiler may put other code at the same addresses, and then all begins anew.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::{access::Pid, decode, event::Mapping};

/// Bytes of code that are remembered together. Jumps are followed as far again on both sides.
const PAGE: u64 = 4096;
/// Ips remembered for a page; beyond it, what is reached from them is what is known.
const MOST_STARTS: usize = 256;
/// Instructions remembered in all, at about 40 bytes each; beyond it all are let go, and what runs hot is soon back.
const MOST_INSTRUCTIONS: usize = 1 << 18;

/// Reads memory of a process: address, buffer; bytes read.
pub(super) type Read<'a> = &'a mut dyn FnMut(u64, &mut [u8]) -> usize;

/// A stretch of code with places where instructions are known to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// Address of the first byte.
    pub(super) start: u64,
    /// From the first known instruction to the end of the last.
    pub(super) bytes: Vec<u8>,
    /// Where instructions ran, ascending.
    pub(super) starts: Vec<u64>,
    /// All known instructions, ascending.
    instructions: Vec<u64>,
}

/// What is known of all processes.
#[derive(Debug, Default)]
pub(super) struct NamelessCode {
    /// By process and page.
    pages: FxHashMap<(Pid, u64), Rc<Stretch>>,
    instructions: usize,
}

impl NamelessCode {
    /// Notes that the instruction at `ip` runs next in a process, and gives what is known around it. `None` where the code
    /// cannot be read.
    pub(super) fn see(
        &mut self,
        pid: Pid,
        ip: u64,
        mapping: &Mapping,
        read: Read<'_>,
    ) -> Option<Rc<Stretch>> {
        let key = (pid, page_of(ip));
        let known = self.pages.get(&key).filter(|known| known.is_in(read));
        if let Some(known) = known
            && (known.knows(ip) || known.starts.len() >= MOST_STARTS)
        {
            return Some(known.clone());
        }
        let mut starts = known.map_or_else(Vec::new, |known| known.starts.clone());
        let at = starts.partition_point(|start| *start < ip);
        starts.insert(at, ip);
        let page = ip & !(PAGE - 1);
        let from = page.saturating_sub(PAGE).max(mapping.start);
        let to = page.saturating_add(2 * PAGE).min(mapping.end());
        let mut bytes = vec![0; usize::try_from(to.checked_sub(from)?).ok()?];
        let mut start = from;
        // Pages of a mapping that are not there, or not readable, end what can be read.
        let mut got = read(start, &mut bytes);
        if got <= usize::try_from(ip.checked_sub(start)?).ok()? {
            start = page.max(mapping.start);
            bytes.truncate(usize::try_from(to.checked_sub(start)?).ok()?);
            got = read(start, &mut bytes);
        }
        bytes.truncate(got);
        let stretch =
            Stretch::of(start, &bytes, starts).or_else(|| Stretch::of(start, &bytes, vec![ip]))?;
        let stretch = Rc::new(stretch);
        self.keep(key, stretch.clone());
        Some(stretch)
    }

    /// What is known around an address, without noting that it runs.
    pub(super) fn around(&self, pid: Pid, addr: u64) -> Option<&Stretch> {
        let stretch = self.pages.get(&(pid, page_of(addr)))?;
        let inside = addr.wrapping_sub(stretch.start) < stretch.bytes.len() as u64;
        inside.then_some(&**stretch)
    }

    fn keep(&mut self, key: (Pid, u64), stretch: Rc<Stretch>) {
        self.instructions += stretch.instructions.len();
        if self.instructions > MOST_INSTRUCTIONS {
            self.pages.clear();
            self.instructions = stretch.instructions.len();
        }
        if let Some(before) = self.pages.insert(key, stretch) {
            self.instructions -= before.instructions.len();
        }
    }
}

/// The page by which an address is remembered.
pub(super) fn page_of(addr: u64) -> u64 {
    addr / PAGE
}

impl Stretch {
    /// What `starts` lead to; `None` where they contradict one another, or nothing can be decoded there.
    fn of(start: u64, bytes: &[u8], starts: Vec<u64>) -> Option<Stretch> {
        let instructions = decode::known_instructions(start, bytes, &starts)?;
        let (first, _) = *instructions.first()?;
        let (last, length) = *instructions.last()?;
        let end = last.wrapping_add(length).wrapping_sub(start) as usize;
        Some(Stretch {
            start: first,
            bytes: bytes.get(first.wrapping_sub(start) as usize..end)?.to_vec(),
            starts,
            instructions: instructions.into_iter().map(|(ip, _)| ip).collect(),
        })
    }

    fn knows(&self, ip: u64) -> bool {
        self.instructions.binary_search(&ip).is_ok()
    }

    /// Whether it is there still.
    fn is_in(&self, read: &mut dyn FnMut(u64, &mut [u8]) -> usize) -> bool {
        let mut now = vec![0; self.bytes.len()];
        read(self.start, &mut now) == now.len() && now == self.bytes
    }
}

#[cfg(test)]
mod tests;
