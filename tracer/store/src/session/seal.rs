//! A checksum of each part, so that a damaged file is known before it is decoded.
//!
//! Parquet's own page checksums leave out headers and footer. The seal is one more entry of the footer's
//! key-value list: a CRC-32 (IEEE) of the whole file in which the seal's eight digits count as `0`. Other
//! readers see a string and go on.

use crc32fast::Hasher;

use super::error::Damage;

/// Footer key of the seal.
pub(super) const SEAL_KEY: &str = "cohtrace.seal";

/// The entry's value before it is known. Long enough to be found by search.
pub(super) const UNSEALED: &str = "crc32 of this file with these digits zero: 00000000";

const DIGITS: usize = 8;

/// How far from the end the seal can be: after it, the footer has only the writer's name and the order of
/// each column, together a few hundred bytes.
const SEARCH_BYTES: usize = 4096;

/// Fills in the checksum; `None` when there is no place for it.
pub(super) fn seal(part: &mut [u8]) -> Option<()> {
    let at = digits_at(part)?;
    part[at..at + DIGITS].fill(b'0');
    let digits = format!("{:0DIGITS$x}", checksum(part, at));
    part[at..at + DIGITS].copy_from_slice(digits.as_bytes());
    Some(())
}

/// Whether the part is byte for byte what was sealed.
pub(super) fn check(part: &[u8]) -> Result<(), Damage> {
    let at = digits_at(part).ok_or(Damage::Seal("is missing: the file is cut or not ours"))?;
    let digits = format!("{:0DIGITS$x}", checksum(part, at));
    if part[at..at + DIGITS] == *digits.as_bytes() {
        Ok(())
    } else {
        Err(Damage::Seal("does not match its bytes"))
    }
}

fn digits_at(part: &[u8]) -> Option<usize> {
    let mark = &UNSEALED.as_bytes()[..UNSEALED.len() - DIGITS];
    let from = part.len().saturating_sub(SEARCH_BYTES);
    let found = part[from..]
        .windows(mark.len())
        .rposition(|window| window == mark)?;
    let at = from + found + mark.len();
    (at + DIGITS <= part.len()).then_some(at)
}

fn checksum(part: &[u8], digits_at: usize) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(&part[..digits_at]);
    hasher.update(&[b'0'; DIGITS]);
    hasher.update(&part[digits_at + DIGITS..]);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed() -> Vec<u8> {
        let mut part = format!("rows {UNSEALED} end").into_bytes();
        seal(&mut part).expect("has a place for the seal");
        part
    }

    #[test]
    fn a_sealed_part_passes_and_any_changed_byte_is_noticed() {
        let part = sealed();
        assert!(check(&part).is_ok());
        for at in 0..part.len() {
            for bit in 0..8 {
                let mut damaged = part.clone();
                damaged[at] ^= 1 << bit;
                assert!(check(&damaged).is_err(), "byte {at} bit {bit}");
            }
        }
    }

    #[test]
    fn a_part_cut_anywhere_is_noticed() {
        let part = sealed();
        for len in 0..part.len() {
            assert!(check(&part[..len]).is_err(), "cut to {len}");
        }
    }
}
