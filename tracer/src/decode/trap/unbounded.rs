//! Code without function bounds (JIT output, stripped files): decoding backwards.
//!
//! x86 cannot be decoded backwards for sure: `48 89 07` ends with `89 07`, which is an instruction too.
//! But decoding that starts at a wrong byte soon falls in step with the right one, so of all starts in the
//! bytes before the ip most end up at the same last instruction. That decides where the watched word
//! alone does not.

use iced_x86::{Decoder, DecoderOptions, Instruction};

use super::{
    Text, Trapped,
    candidate::{Candidate, Describer},
    cover::{Best, Rank, Sight},
};

/// Bytes read before the ip.
const BEHIND: usize = 96;
/// The longest instruction, bytes.
const LONGEST: usize = 15;
/// Code is mapped in pages of at least this size.
const PAGE: u64 = 4096;

/// Judges what may have run before `ip`; whether any code could be read.
pub(super) fn judge(text: &mut impl Text, ip: u64, sight: &Sight<'_>, best: &mut Best) -> bool {
    let mut describer = Describer::new();
    let mut buffer = [0; BEHIND];
    let behind = behind(text, ip, &mut buffer);
    if let Some(candidate) = ending(behind, ip, sight, &mut describer) {
        best.judge([&candidate], sight, 0);
    }
    let mut buffer = [0; LONGEST];
    let got = text.bytes(ip, &mut buffer);
    let mut decoder = Decoder::with_ip(64, &buffer[..got], ip, DecoderOptions::NONE);
    if decoder.can_decode() {
        let running = describer.at(&decoder.decode());
        best.judge(running.iter(), sight, 0);
    }
    got > 0 || !behind.is_empty()
}

/// The bytes right before `ip`: fewer where the page before is not mapped.
fn behind<'b>(text: &mut impl Text, ip: u64, buffer: &'b mut [u8; BEHIND]) -> &'b [u8] {
    for length in [BEHIND as u64, ip % PAGE] {
        let length = length.min(BEHIND as u64) as usize;
        let bytes = &mut buffer[..length];
        if text.bytes(ip.wrapping_sub(length as u64), bytes) == length {
            return &buffer[..length];
        }
    }
    &[]
}

/// The instruction that ends at `ip` and touches a watched word.
fn ending(
    bytes: &[u8],
    ip: u64,
    sight: &Sight<'_>,
    describer: &mut Describer,
) -> Option<Candidate> {
    let start = ip.wrapping_sub(bytes.len() as u64);
    let lasts = last_instructions(bytes, start);
    let earliest = bytes.len().saturating_sub(LONGEST);
    // Where a decoding starts within the last instruction's bytes says little of what is before it, but
    // where there is nothing more it has to do.
    let voters = if earliest > 0 { earliest } else { bytes.len() };
    let votes = |at: usize| {
        let agrees = |last: &&Option<usize>| **last == Some(at);
        lasts[..voters].iter().filter(agrees).count()
    };
    let all_votes = lasts[..voters].iter().flatten().count();
    let mut fitting: Vec<(Candidate, Rank, Vec<Trapped>, usize)> = Vec::new();
    for at in (earliest..bytes.len()).filter(|at| lasts[*at] == Some(*at)) {
        let instruction = decode(&bytes[at..], start.wrapping_add(at as u64));
        let candidate = describer
            .before(&instruction)
            .or_else(|| describer.returned(&instruction));
        let Some(candidate) = candidate else { continue };
        let mut accesses = Vec::new();
        let rank = candidate.cover(sight, 0, &mut accesses);
        if rank > Rank::Nothing {
            fitting.push((candidate, rank, accesses, votes(at)));
        }
    }
    let proven = fitting.iter().any(|(_, rank, ..)| *rank >= Rank::Exact);
    fitting.retain(|(_, rank, ..)| !proven || *rank >= Rank::Exact);
    let alike = |a: &[Trapped], b: &[Trapped]| {
        a.iter()
            .map(|t| (t.op, t.size))
            .eq(b.iter().map(|t| (t.op, t.size)))
    };
    let agreed = proven && fitting.iter().all(|f| alike(&f.2, &fitting[0].2));
    let (candidate, .., votes) = fitting.into_iter().max_by_key(|fit| fit.3)?;
    (agreed || votes * 2 > all_votes).then_some(candidate)
}

fn decode(bytes: &[u8], ip: u64) -> Instruction {
    Decoder::with_ip(64, bytes, ip, DecoderOptions::NONE).decode()
}

/// For each byte, where the last instruction begins if decoding begins there; `None` if no instruction then
/// ends with the last byte.
fn last_instructions(bytes: &[u8], start: u64) -> Vec<Option<usize>> {
    let mut lasts = vec![None; bytes.len()];
    for at in (0..bytes.len()).rev() {
        let instruction = decode(&bytes[at..], start.wrapping_add(at as u64));
        if instruction.is_invalid() {
            continue;
        }
        let next = at + instruction.len();
        lasts[at] = if next == bytes.len() {
            Some(at)
        } else {
            lasts.get(next).copied().flatten()
        };
    }
    lasts
}
