//! What stands before each record: `struct perf_event_header`.

use super::{bytes::PutBytes as _, fields::Fields};

/// Its length.
pub const HEADER_BYTES: usize = 8;

/// The header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// One of [`super::record`].
    pub kind: u32,
    /// Bits of [`super::record::flag`].
    pub misc: u16,
    /// Bytes of the record, these eight counted.
    pub len: usize,
}

impl Frame {
    /// Takes the header off the front; `None` where there are fewer bytes.
    pub fn take(fields: &mut Fields<'_>) -> Option<Frame> {
        Some(Frame {
            kind: fields.u32()?,
            misc: fields.u16()?,
            len: usize::from(fields.u16()?),
        })
    }
}

/// Appends a record; its length is known once its body is there. None may have 64 KiB or more.
pub fn put_record(out: &mut Vec<u8>, kind: u32, misc: u16, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.u32(kind);
    out.u16(misc);
    out.u16(0);
    body(out);
    let len = u16::try_from(out.len() - start).unwrap_or(u16::MAX);
    out[start + 6..start + HEADER_BYTES].copy_from_slice(&len.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf_format::fields::ByteOrder;

    #[test]
    fn a_record_says_how_long_it_is_and_half_a_header_is_none() {
        let mut out = vec![0xff];
        put_record(&mut out, 9, 2, |out| out.u32(7));
        let frame = |bytes| Frame::take(&mut Fields::new(bytes, ByteOrder::Little));
        let (kind, misc, len) = (9, 2, 12);
        assert_eq!(frame(&out[1..]), Some(Frame { kind, misc, len }));
        assert_eq!(out.len(), 1 + len);
        assert_eq!(frame(&out[1..8]), None);
    }
}
