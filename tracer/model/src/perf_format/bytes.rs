//! Puts fields at the end of a buffer, little-endian.

/// A buffer that grows at its end.
pub trait PutBytes {
    /// Bytes as they are.
    fn put(&mut self, bytes: &[u8]);

    /// Two bytes.
    fn u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }

    /// Four bytes.
    fn u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    /// Eight bytes.
    fn u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    /// `text`, a zero byte, and zeros up to a multiple of `align`.
    fn text(&mut self, text: &[u8], align: usize) {
        self.put(text);
        let len = (text.len() + 1).next_multiple_of(align);
        for _ in text.len()..len {
            self.put(&[0]);
        }
    }
}

impl PutBytes for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// What of a text fits into `most` bytes and ends before a zero byte, as C strings do.
pub fn c_string(text: &str, most: usize) -> &[u8] {
    let end = text.bytes().position(|byte| byte == 0);
    let bytes = &text.as_bytes()[..end.unwrap_or(text.len())];
    &bytes[..bytes.len().min(most)]
}
