//! Accesses of a line as bytes: only what differs from the one before, some 20 bytes instead of 80.
//!
//! ```text
//!   group   code 16 bytes, count 4     line and number of its accesses
//!   access  mask 2, time, fields       a field for each bit of the mask; all as differences to the access before,
//!                                      zigzag and LEB128
//! ```

use crate::{access::Cost, analysis::SortRecord};

/// Bytes before the accesses of a group.
pub(super) const GROUP_BYTES: usize = 20;
/// Of a number at most.
const NUMBER_BYTES: usize = 10;
/// Besides the time.
const FIELDS: usize = 11;
/// Bytes of an access at most.
pub(super) const MOST_BYTES: usize = 2 + NUMBER_BYTES * (1 + FIELDS);

/// Appends the head of a group.
pub(super) fn put_group(out: &mut Vec<u8>, code: u128, count: u32) {
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(&count.to_le_bytes());
}

/// Code and count of a group.
pub(super) fn group(bytes: &[u8]) -> Option<(u128, u32)> {
    let (code, rest) = bytes.split_first_chunk()?;
    let (count, _) = rest.split_first_chunk()?;
    Some((u128::from_le_bytes(*code), u32::from_le_bytes(*count)))
}

fn fields(access: &SortRecord) -> [u64; FIELDS] {
    let part =
        u32::from(access.offset) | u32::from(access.size) << 8 | u32::from(access.kind) << 16;
    [
        access.ip,
        access.source,
        access.phys_addr,
        part.into(),
        access.cost.0.into(),
        access.pid.into(),
        access.tid.into(),
        access.cpu.into(),
        access.space.into(),
        access.latency.into(),
        access.repeats.into(),
    ]
}

/// Bytes on their way to a run.
struct Packed {
    bytes: [u8; MOST_BYTES],
    len: usize,
}

impl Packed {
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.len) {
            *place = byte;
            self.len += 1;
        }
    }

    fn difference(&mut self, from: u64, to: u64) {
        let difference = to.wrapping_sub(from);
        let mut zigzag = difference << 1 ^ ((difference as i64) >> 63) as u64;
        while zigzag >= 0x80 {
            self.push(zigzag as u8 | 0x80);
            zigzag >>= 7;
        }
        self.push(zigzag as u8);
    }
}

/// Appends an access; `before` is the one before it in its group, or one of zeroes.
pub(super) fn put(out: &mut Vec<u8>, before: &SortRecord, access: &SortRecord) {
    let mut packed = Packed {
        bytes: [0; MOST_BYTES],
        len: 2,
    };
    packed.difference(before.time_ns, access.time_ns);
    let mut mask = 0u16;
    for (bit, (old, new)) in fields(before).iter().zip(fields(access)).enumerate() {
        if *old != new {
            mask |= 1 << bit;
            packed.difference(*old, new);
        }
    }
    packed.bytes[..2].copy_from_slice(&mask.to_le_bytes());
    out.extend_from_slice(&packed.bytes[..packed.len]);
}

/// A number that differs from `from`, and what is behind it.
fn differing(from: u64, bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (mut zigzag, mut shift) = (0u64, 0);
    let mut rest = bytes;
    loop {
        let (byte, after) = rest.split_first()?;
        rest = after;
        zigzag |= u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            let difference = zigzag >> 1 ^ (zigzag & 1).wrapping_neg();
            return Some((from.wrapping_add(difference), rest));
        }
    }
}

/// Turns `access` into the one after it and returns how many bytes that took; `None` when they are not what
/// [`put`] wrote.
pub(super) fn take(bytes: &[u8], access: &mut SortRecord) -> Option<usize> {
    let (mask, rest) = bytes.split_first_chunk()?;
    let mut mask = u16::from_le_bytes(*mask);
    let (time_ns, mut rest) = differing(access.time_ns, rest)?;
    let mut fields = fields(access);
    while mask != 0 {
        let value = fields.get_mut(mask.trailing_zeros() as usize)?;
        (*value, rest) = differing(*value, rest)?;
        mask &= mask - 1;
    }
    let [
        ip,
        source,
        phys_addr,
        part,
        cost,
        pid,
        tid,
        cpu,
        space,
        latency,
        repeats,
    ] = fields;
    *access = SortRecord {
        time_ns,
        ip,
        source,
        phys_addr,
        cost: Cost(cost as u32),
        pid: pid as u32,
        tid: tid as u32,
        cpu: cpu as u32,
        space: space as u32,
        latency: latency as u32,
        repeats: repeats as u32,
        offset: part as u8,
        size: (part >> 8) as u8,
        kind: (part >> 16) as u16,
        ..*access
    };
    Some(bytes.len() - rest.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_access() -> impl Strategy<Value = SortRecord> {
        let few = || prop_oneof![Just(0u64), Just(1), any::<u64>()];
        let fields = prop::collection::vec(few(), 14);
        fields.prop_map(|f| SortRecord {
            line: 5,
            time_ns: f[0],
            ip: f[1],
            source: f[2],
            phys_addr: f[3],
            object: 6,
            cost: Cost(f[4] as u32),
            pid: f[5] as u32,
            tid: f[6] as u32,
            cpu: f[7] as u32,
            space: f[8] as u32,
            latency: f[9] as u32,
            repeats: f[13] as u32,
            offset: f[10] as u8,
            size: f[11] as u8,
            kind: f[12] as u16,
        })
    }

    proptest! {
        #[test]
        fn accesses_come_back_one_after_the_other(accesses in prop::collection::vec(any_access(), 1..20)) {
            let first = SortRecord { line: 5, object: 6, ..SortRecord::default() };
            let mut out = Vec::new();
            let mut before = first;
            for access in &accesses {
                let at = out.len();
                put(&mut out, &before, access);
                prop_assert!(out.len() - at <= MOST_BYTES);
                before = *access;
            }
            let (mut access, mut rest) = (first, &out[..]);
            for expected in &accesses {
                prop_assert_eq!(take(&rest[..1], &mut access.clone()), None);
                let len = take(rest, &mut access).expect("whole");
                prop_assert_eq!(&access, expected);
                rest = &rest[len..];
            }
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn any_bytes_at_all_are_an_access_or_none(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let len = take(&bytes, &mut SortRecord::default());
            prop_assert!(len.is_none_or(|len| len <= bytes.len()));
        }
    }

    #[test]
    fn a_group_is_told_by_its_head() {
        let mut out = Vec::new();
        put_group(&mut out, u128::MAX - 3, 9);
        assert_eq!(out.len(), GROUP_BYTES);
        assert_eq!(group(&out), Some((u128::MAX - 3, 9)));
        assert_eq!(group(&out[1..]), None);
    }
}
