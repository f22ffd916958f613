//! Accesses of a line as bytes: only what differs from the one before.
//!
//! ```text
//!   group   code 16 bytes, count 4     line and number of its accesses
//!   access  mask 2, time 1..10, fields   time as difference to the one before, LEB128; a field for each bit of mask
//! ```

use crate::analysis::LineAccess;

/// Bytes before the accesses of a group.
pub(super) const GROUP_BYTES: usize = 20;
/// Bytes of an access at most.
pub(super) const MOST_BYTES: usize = 2 + 10 + 3 * 8 + 7 * 4;

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

fn wide(access: &LineAccess) -> [u64; 3] {
    [access.ip, access.source, access.phys_addr]
}

fn narrow(access: &LineAccess) -> [u32; 7] {
    let part =
        u32::from(access.offset) | u32::from(access.size) << 8 | u32::from(access.kind) << 16;
    [
        part,
        access.cost_ns,
        access.pid,
        access.tid,
        access.cpu,
        access.space,
        access.latency,
    ]
}

/// Appends an access; `before` is the one before it in its group, or one of the same line and zeroes.
pub(super) fn put(out: &mut Vec<u8>, before: &LineAccess, access: &LineAccess) {
    let at = out.len();
    out.extend_from_slice(&[0; 2]);
    let mut ns = access.time_ns.wrapping_sub(before.time_ns);
    while ns >= 0x80 {
        out.push(ns as u8 | 0x80);
        ns >>= 7;
    }
    out.push(ns as u8);
    let mut mask = 0u16;
    for (bit, (old, new)) in (0..).zip(wide(before).iter().zip(wide(access))) {
        if *old != new {
            mask |= 1 << bit;
            out.extend_from_slice(&new.to_le_bytes());
        }
    }
    for (bit, (old, new)) in (3..).zip(narrow(before).iter().zip(narrow(access))) {
        if *old != new {
            mask |= 1 << bit;
            out.extend_from_slice(&new.to_le_bytes());
        }
    }
    out[at..at + 2].copy_from_slice(&mask.to_le_bytes());
}

/// Turns `access` into the one after it and returns how many bytes that took; `None` when they are not what
/// [`put`] wrote.
pub(super) fn take(bytes: &[u8], access: &mut LineAccess) -> Option<usize> {
    let (mask, mut rest) = bytes.split_first_chunk()?;
    let mask = u16::from_le_bytes(*mask);
    let (mut ns, mut shift) = (0u64, 0);
    loop {
        let (byte, after) = rest.split_first()?;
        rest = after;
        ns |= u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            break;
        }
    }
    let mut wide = wide(access);
    for (bit, value) in wide.iter_mut().enumerate() {
        if mask >> bit & 1 == 1 {
            let (new, after) = rest.split_first_chunk()?;
            *value = u64::from_le_bytes(*new);
            rest = after;
        }
    }
    let mut narrow = narrow(access);
    for (bit, value) in (3..).zip(&mut narrow) {
        if mask >> bit & 1 == 1 {
            let (new, after) = rest.split_first_chunk()?;
            *value = u32::from_le_bytes(*new);
            rest = after;
        }
    }
    let [ip, source, phys_addr] = wide;
    let [part, cost_ns, pid, tid, cpu, space, latency] = narrow;
    *access = LineAccess {
        time_ns: access.time_ns.wrapping_add(ns),
        ip,
        source,
        phys_addr,
        cost_ns,
        pid,
        tid,
        cpu,
        space,
        latency,
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

    fn any_access() -> impl Strategy<Value = LineAccess> {
        let few = || prop_oneof![Just(0u64), Just(1), any::<u64>()];
        let fields = prop::collection::vec(few(), 13);
        fields.prop_map(|f| LineAccess {
            line: 5,
            time_ns: f[0],
            ip: f[1],
            source: f[2],
            phys_addr: f[3],
            object: 6,
            cost_ns: f[4] as u32,
            pid: f[5] as u32,
            tid: f[6] as u32,
            cpu: f[7] as u32,
            space: f[8] as u32,
            latency: f[9] as u32,
            offset: f[10] as u8,
            size: f[11] as u8,
            kind: f[12] as u16,
        })
    }

    proptest! {
        #[test]
        fn accesses_come_back_one_after_the_other(accesses in prop::collection::vec(any_access(), 1..20)) {
            let first = LineAccess { line: 5, object: 6, ..LineAccess::default() };
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
            let len = take(&bytes, &mut LineAccess::default());
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
