//! A perf event's ring: records that the kernel wrote, one by one, in order.
//!
//! ```text
//!   data area   ..free..│rec│rec│rec│..free..     the kernel writes at head, we free at tail
//!                     tail        head            both only grow; offset = value mod size
//! ```
//!
//! Between tail and head the kernel does not write; only that part is ever lent out.

use std::{
    io,
    ops::Range,
    os::fd::{AsFd, AsRawFd as _, BorrowedFd},
    ptr::{self, NonNull},
    sync::atomic::{AtomicU64, Ordering},
};

use super::perf_event::PerfEvent;

/// Bytes of `struct perf_event_header`: type u32, misc u16, size u16.
const HEADER_BYTES: usize = 8;

/// What one drain did.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Records handed out.
    pub records: u64,
    /// Bytes freed.
    pub bytes: u64,
    /// Bytes skipped because a record's length was impossible; whatever they held is lost.
    pub corrupt_bytes: u64,
}

/// Cuts records out of a stretch of ring that may be in two pieces: up to the end of the data area,
/// and on from its start.
#[derive(Debug)]
struct Cutter<'a> {
    pieces: [&'a [u8]; 2],
    /// Joins a record that lies in both pieces; at most 64 KiB, as a record's length is a u16.
    joined: &'a mut Vec<u8>,
}

/// The next record's length cannot be: shorter than its header, or longer than what is there.
#[derive(Debug, PartialEq, Eq)]
struct Corrupt {
    /// Bytes that can no longer be cut.
    rest: usize,
}

impl Cutter<'_> {
    /// The next record, header included; `None` at the end.
    fn next(&mut self) -> Option<Result<&[u8], Corrupt>> {
        let [first, second] = self.pieces;
        let available = first.len() + second.len();
        if available == 0 {
            return None;
        }
        let byte = |at: usize| -> u8 {
            let piece = if at < first.len() { first } else { second };
            let index = if at < first.len() {
                at
            } else {
                at - first.len()
            };
            piece.get(index).copied().unwrap_or(0)
        };
        let len = usize::from(u16::from_ne_bytes([byte(6), byte(7)]));
        if len < HEADER_BYTES || len > available {
            self.pieces = [&[], &[]];
            return Some(Err(Corrupt { rest: available }));
        }
        if let Some((record, rest)) = first.split_at_checked(len) {
            self.pieces = [rest, second];
            return Some(Ok(record));
        }
        let (tail, rest) = second.split_at(len - first.len());
        self.pieces = [rest, &[]];
        self.joined.clear();
        self.joined.extend_from_slice(first);
        self.joined.extend_from_slice(tail);
        Some(Ok(self.joined))
    }
}

/// Where the filled part of a data area lies: the first piece starts at the tail, the second, maybe
/// empty, at the area's start. `None` when there cannot be that much. `data_bytes` is a power of two.
fn pieces(tail: u64, head: u64, data_bytes: usize) -> Option<[Range<usize>; 2]> {
    let filled = usize::try_from(head.wrapping_sub(tail)).ok()?;
    if filled > data_bytes {
        return None;
    }
    let start = (tail & (data_bytes as u64 - 1)) as usize;
    let first = filled.min(data_bytes - start);
    Some([start..start + first, 0..filled - first])
}

/// A mapped ring and its event. Reading needs no system call.
#[derive(Debug)]
pub struct Ring {
    event: PerfEvent,
    /// Control page, then the data area.
    base: NonNull<u8>,
    page_bytes: usize,
    data_bytes: usize,
    joined: Vec<u8>,
}

// SAFETY: the mapping belongs to the value alone and is not tied to a thread.
unsafe impl Send for Ring {}

/// Offsets in `struct perf_event_mmap_page` (include/uapi/linux/perf_event.h).
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

impl Ring {
    /// Maps a ring of at least `data_bytes`, rounded up to a power of two of pages.
    ///
    /// Without CAP_IPC_LOCK the rings of a user share `kernel.perf_event_mlock_kb` per CPU.
    pub fn map(event: PerfEvent, data_bytes: usize) -> io::Result<Ring> {
        let page_bytes = page_bytes();
        let data_bytes = data_bytes
            .max(page_bytes)
            .checked_next_power_of_two()
            .filter(|bytes| *bytes <= isize::MAX as usize / 2)
            .ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                page_bytes + data_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_fd().as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(map_error(io::Error::last_os_error(), data_bytes));
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Ring {
            event,
            base,
            page_bytes,
            data_bytes,
            joined: Vec::new(),
        })
    }

    /// Bytes of the data area.
    pub fn data_bytes(&self) -> usize {
        self.data_bytes
    }

    /// The event whose records these are.
    pub fn event(&self) -> &PerfEvent {
        &self.event
    }

    /// Hands out every record that was complete when the drain began, header included, then frees
    /// their room. A record with an impossible length ends it: the rest is skipped and counted.
    pub fn drain(&mut self, mut record: impl FnMut(&[u8])) -> Drained {
        // Acquire: the records' bytes were written before the head.
        let head = self.control(DATA_HEAD).load(Ordering::Acquire);
        // Only we move the tail.
        let tail = self.control(DATA_TAIL).load(Ordering::Relaxed);
        let filled = head.wrapping_sub(tail);
        let mut drained = Drained {
            bytes: filled,
            ..Drained::default()
        };
        if let Some(pieces) = pieces(tail, head, self.data_bytes) {
            let mut joined = std::mem::take(&mut self.joined);
            let mut cutter = Cutter {
                pieces: pieces.map(|piece| self.data(piece)),
                joined: &mut joined,
            };
            while let Some(next) = cutter.next() {
                match next {
                    Ok(bytes) => {
                        drained.records += 1;
                        record(bytes);
                    }
                    Err(Corrupt { rest }) => drained.corrupt_bytes += rest as u64,
                }
            }
            self.joined = joined;
        } else {
            drained.corrupt_bytes = filled;
        }
        // Release: the kernel reuses the room only after we have read it.
        self.control(DATA_TAIL).store(head, Ordering::Release);
        drained
    }

    fn control(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: both offsets are inside the control page.
        let field = unsafe { self.base.add(offset) }.cast::<u64>();
        // SAFETY: aligned, mapped as long as `self`, and shared with the kernel, which uses the same
        // atomic protocol (tools/include/linux/ring_buffer.h).
        unsafe { AtomicU64::from_ptr(field.as_ptr()) }
    }

    /// Part of the data area that lies between tail and head.
    fn data(&self, piece: Range<usize>) -> &[u8] {
        assert!(piece.end <= self.data_bytes, "outside the data area");
        let len = piece.len();
        // SAFETY: the data area follows the control page, and the piece is inside it.
        let start = unsafe { self.base.add(self.page_bytes + piece.start) };
        // SAFETY: mapped as long as `self`; the kernel does not write between tail and head, and
        // the tail moves only after the slice is gone.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), len) }
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, made in `map`; no slice of it outlives the value.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.page_bytes + self.data_bytes) };
    }
}

fn map_error(error: io::Error, data_bytes: usize) -> io::Error {
    if error.raw_os_error() != Some(libc::EPERM) {
        return error;
    }
    let kib = data_bytes / 1024;
    let text = format!(
        "a ring of {kib} KiB per CPU is more memory than this user may lock: run as root (sudo), grant the \
         binary `setcap cap_ipc_lock+ep`, or `sysctl kernel.perf_event_mlock_kb={}`",
        kib * 2 + 64
    );
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}

/// Bytes of a page on this machine.
pub fn page_bytes() -> usize {
    // SAFETY: the call has no precondition.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of `len` bytes whose body counts up from `seed`.
    fn record(len: u16, seed: u8) -> Vec<u8> {
        let mut bytes = vec![9, 0, 0, 0, 0, 0];
        bytes.extend_from_slice(&len.to_ne_bytes());
        bytes.extend((HEADER_BYTES as u16..len).map(|i| seed.wrapping_add(i as u8)));
        bytes
    }

    fn cut(first: &[u8], second: &[u8]) -> (Vec<Vec<u8>>, usize) {
        let mut joined = Vec::new();
        let mut cutter = Cutter {
            pieces: [first, second],
            joined: &mut joined,
        };
        let (mut records, mut rest) = (Vec::new(), 0);
        while let Some(next) = cutter.next() {
            match next {
                Ok(bytes) => records.push(bytes.to_vec()),
                Err(corrupt) => rest += corrupt.rest,
            }
        }
        (records, rest)
    }

    #[test]
    fn a_length_of_zero_ends_the_cutting_and_counts_the_rest() {
        let mut bytes = record(16, 1);
        bytes.extend([0; 24]);
        assert_eq!(cut(&bytes, &[]), (vec![record(16, 1)], 24));
    }

    #[test]
    fn a_length_beyond_the_head_ends_the_cutting_and_counts_the_rest() {
        let long = record(64, 1);
        assert_eq!(cut(&long[..56], &[]), (vec![], 56));
    }

    #[test]
    fn less_than_a_header_is_corrupt() {
        assert_eq!(cut(&[9, 0, 0], &[0, 0]), (vec![], 5));
    }

    #[test]
    fn a_head_further_than_the_area_is_long_is_refused() {
        assert_eq!(pieces(100, 100 + 4096, 4096), Some([100..4096, 0..100]));
        assert_eq!(pieces(100, 101 + 4096, 4096), None);
        assert_eq!(pieces(101, 100, 4096), None);
    }

    #[test]
    fn positions_may_pass_the_end_of_their_numbers() {
        assert_eq!(pieces(u64::MAX - 7, 8, 4096), Some([4088..4096, 0..8]));
    }

    proptest::proptest! {
        #[test]
        fn the_pieces_are_as_long_as_what_is_filled_and_inside_the_area(
            tail in proptest::num::u64::ANY,
            filled in 0u64..=4096,
        ) {
            let [first, second] = pieces(tail, tail.wrapping_add(filled), 4096).unwrap();
            proptest::prop_assert_eq!((first.len() + second.len()) as u64, filled);
            proptest::prop_assert_eq!(first.start as u64, tail % 4096);
            proptest::prop_assert!(first.end == 4096 || second.is_empty());
            proptest::prop_assert!(second.end <= first.start);
        }

        #[test]
        fn records_come_out_as_they_went_in_wherever_the_area_wraps(
            lens in proptest::collection::vec(1u16..40, 0..20),
            wrap in 0usize..2000,
        ) {
            let records: Vec<Vec<u8>> =
                lens.iter().enumerate().map(|(i, len)| record(len * 8, i as u8)).collect();
            let stream = records.concat();
            let (first, second) = stream.split_at(wrap.min(stream.len()));
            proptest::prop_assert_eq!(cut(first, second), (records, 0));
        }

        #[test]
        fn any_bytes_end_in_bounded_time_without_a_panic(
            first in proptest::collection::vec(proptest::num::u8::ANY, 0..300),
            second in proptest::collection::vec(proptest::num::u8::ANY, 0..300),
        ) {
            let (records, rest) = cut(&first, &second);
            let cut: usize = records.iter().map(Vec::len).sum();
            proptest::prop_assert_eq!(cut + rest, first.len() + second.len());
        }
    }
}
