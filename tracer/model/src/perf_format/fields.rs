//! Takes fields off the front of bytes of either byte order; never past their end.

/// What is left of a record or a section.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
    order: ByteOrder,
}

/// Byte order of the machine that recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// The lowest byte first.
    Little,
    /// The highest byte first.
    Big,
}

impl ByteOrder {
    /// That of this machine.
    pub const NATIVE: ByteOrder = if cfg!(target_endian = "little") {
        ByteOrder::Little
    } else {
        ByteOrder::Big
    };
}

impl<'a> Fields<'a> {
    /// All of the bytes.
    pub fn new(bytes: &'a [u8], order: ByteOrder) -> Fields<'a> {
        Fields { rest: bytes, order }
    }

    /// What was not taken yet.
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// The order of its numbers.
    pub fn order(self) -> ByteOrder {
        self.order
    }

    /// So many bytes; `None`, and nothing taken, where there are fewer. So of all that follow.
    pub fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(usize::try_from(len).ok()?)?;
        self.rest = rest;
        Some(taken)
    }

    /// Passes over so many words of eight bytes.
    pub fn skip_words(&mut self, words: u64) -> Option<()> {
        self.take(words.checked_mul(8)?).map(drop)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*taken)
    }

    /// A byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Two bytes.
    pub fn u16(&mut self) -> Option<u16> {
        let bytes = self.array()?;
        Some(match self.order {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        })
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        let bytes = self.array()?;
        Some(match self.order {
            ByteOrder::Little => u32::from_le_bytes(bytes),
            ByteOrder::Big => u32::from_be_bytes(bytes),
        })
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> Option<u64> {
        let bytes = self.array()?;
        Some(match self.order {
            ByteOrder::Little => u64::from_le_bytes(bytes),
            ByteOrder::Big => u64::from_be_bytes(bytes),
        })
    }

    /// The last eight bytes, or those `words` words before them.
    pub fn word_from_end(self, words: usize) -> Option<u64> {
        let start = self.rest.len().checked_sub(words.checked_add(1)? * 8)?;
        Fields::new(&self.rest[start..], self.order).u64()
    }

    /// What is left, up to the NUL that pads it.
    pub fn text(self) -> &'a [u8] {
        until_nul(self.rest)
    }

    /// A string of a header's section: its length, then as many bytes, padded with NULs.
    pub fn counted_text(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()?;
        self.take(u64::from(len)).map(until_nul)
    }
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    let text = bytes.split(|byte| *byte == 0).next();
    text.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_byte_orders_read_the_same_numbers() {
        let little = [1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0];
        let big = [0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3];
        for (bytes, order) in [(little, ByteOrder::Little), (big, ByteOrder::Big)] {
            let mut fields = Fields::new(&bytes, order);
            assert_eq!(
                (fields.u16(), fields.u32(), fields.u64(), fields.u8()),
                (Some(1), Some(2), Some(3), None)
            );
        }
    }

    #[test]
    fn nothing_is_taken_past_the_end() {
        let mut fields = Fields::new(&[0; 7], ByteOrder::Little);
        assert_eq!(fields.u64(), None);
        assert_eq!(fields.skip_words(u64::MAX), None);
        assert_eq!(fields.take(u64::MAX), None);
        assert_eq!(fields.word_from_end(0), None);
        assert_eq!(fields.rest().len(), 7);
    }
}
