//! How glibc's allocator lays out memory: how much a program got can be read in front of it.
//!
//! The size of a chunk is in the word before what the program gets, with three flags in its low bits; what the program gets
//! reaches to the size of the next chunk, or to the end of the chunk's own pages (`struct malloc_chunk`, malloc/malloc.c).

/// From the start of a chunk to what the program gets of it.
const HEADER: u64 = 16;
/// From the size of a chunk to what the program gets of it.
const SIZE: u64 = 8;
/// The chunk before is in use (`PREV_INUSE`).
const BEFORE_IN_USE: u64 = 1;
/// The chunk has pages of its own (`IS_MMAPPED`).
const OWN_PAGES: u64 = 2;
/// All flags (`SIZE_BITS`).
const FLAGS: u64 = 7;
/// Chunks and their sizes are multiples (`MALLOC_ALIGNMENT`).
const ALIGNMENT: u64 = 16;
/// The smallest (`MINSIZE`).
const SMALLEST: u64 = 32;
/// Pages that chunks are rounded up to.
const PAGE: u64 = 4096;

/// What a program got of the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Bytes that it may use, the rounding included.
    pub usable: u64,
    /// Bytes of them, at most, that were not asked for.
    pub rounding: u64,
}

impl Chunk {
    /// Bytes from what a program gets of a chunk to what it gets of the next one, if it asks for so many.
    pub fn bytes_of(asked: u64) -> u64 {
        let whole = asked.saturating_add(SIZE);
        whole
            .checked_next_multiple_of(ALIGNMENT)
            .map_or(whole, |whole| whole.max(SMALLEST))
    }

    /// Where the size of the chunk is whose memory starts at a pointer.
    pub fn size_at(pointer: u64) -> Option<u64> {
        pointer.checked_sub(SIZE)
    }

    /// The chunk whose memory starts at a pointer, by its size with flags; `None` where that is no chunk's.
    pub fn of(pointer: u64, size: u64) -> Option<Chunk> {
        let whole = size & !FLAGS;
        let is_sound = pointer.is_multiple_of(ALIGNMENT)
            && whole >= SMALLEST
            && whole.is_multiple_of(ALIGNMENT)
            && pointer.checked_add(whole).is_some();
        if !is_sound {
            return None;
        }
        if size & OWN_PAGES == 0 {
            // A chunk reaches over the first word of the next one, which is in use only when this one is free.
            let usable = whole - SIZE;
            let least = SMALLEST - SIZE;
            let rounding = if usable == least {
                least
            } else {
                ALIGNMENT - 1
            };
            return Some(Chunk { usable, rounding });
        }
        // What is aligned does not start with the pages, but ends with them.
        let ends_page = (pointer - HEADER + whole).is_multiple_of(PAGE);
        ends_page.then_some(Chunk {
            usable: whole - HEADER,
            rounding: PAGE - 1,
        })
    }

    /// As [`Chunk::of`], as far as the memory around says the same: the next chunk knows that this one is in use, and pages of
    /// its own are there to their end.
    pub fn confirmed(
        pointer: u64,
        size: u64,
        mut word: impl FnMut(u64) -> Option<u64>,
    ) -> Option<Chunk> {
        let chunk = Chunk::of(pointer, size)?;
        let behind = pointer.checked_add(chunk.usable)?;
        let is_there = if size & OWN_PAGES == 0 {
            word(behind)? & BEFORE_IN_USE != 0
        } else {
            word(behind - SIZE).is_some()
        };
        is_there.then_some(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_lies_within_the_rounding_of_what_is_usable() {
        // (bytes asked for, size of the chunk): `request2size`, malloc/malloc.c.
        for (asked, whole) in [
            (1, 32),
            (24, 32),
            (25, 48),
            (40, 48),
            (41, 64),
            (2560, 2576),
        ] {
            let chunk = Chunk::of(0x5000_0010, whole | BEFORE_IN_USE).unwrap();
            let least = chunk.usable - chunk.rounding;
            assert_eq!(Chunk::bytes_of(asked), whole);
            assert!(
                (least..=chunk.usable).contains(&asked),
                "{asked}: {chunk:?}"
            );
        }
        let pages = Chunk::of(0x7000_0010, 0x5_1000 | OWN_PAGES).unwrap();
        assert!((pages.usable - pages.rounding..=pages.usable).contains(&327_680));
    }

    #[test]
    fn what_is_no_size_of_a_chunk_is_none() {
        let of = Chunk::of;
        assert_eq!(of(0x5000_0018, 0x31), None);
        assert_eq!(of(0x5000_0010, 0x11), None);
        assert_eq!(of(0x5000_0010, 0x29), None);
        assert_eq!(of(u64::MAX - 15, 0x31), None);
        // Pages of its own that end in the middle of one.
        assert_eq!(of(0x7000_0110, 0x5_1000 | OWN_PAGES), None);
        assert!(of(0x7000_0110, (0x5_1000 - 0x100) | OWN_PAGES).is_some());
    }

    #[test]
    fn a_chunk_that_the_next_one_takes_for_free_is_none() {
        let behind =
            |size: u64| Chunk::confirmed(0x5010, 0x31, |at| (at == 0x5038).then_some(size));
        assert_eq!(behind(0x41), Chunk::of(0x5010, 0x31));
        assert_eq!(behind(0x40), None);
        assert_eq!(Chunk::confirmed(0x5010, 0x31, |_| None), None);
    }
}
