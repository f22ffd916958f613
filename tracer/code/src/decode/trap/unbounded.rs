//! Code without function bounds (JIT output, stripped files): decoding backwards.
//!
//! x86 cannot be decoded backwards for sure: `48 89 07` ends with `89 07`, which is an instruction too.
//! But decoding that starts at a wrong byte soon falls in step with the right one, so of all starts in the
//! bytes before the ip most end up at the same last instruction. That decides where the watched word
//! alone does not.

use iced_x86::{Decoder, DecoderOptions, Instruction};

use super::{
    Text,
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
    let behind = Behind::read(text, ip);
    behind.judge(sight, &mut describer, best);
    let mut buffer = [0; LONGEST];
    let got = text.bytes(ip, &mut buffer);
    let mut decoder = Decoder::with_ip(64, &buffer[..got], ip, DecoderOptions::NONE);
    if decoder.can_decode() {
        let running = describer.at(&decoder.decode());
        best.judge(running.iter(), sight, 0);
    }
    got > 0 || !behind.bytes.is_empty()
}

/// The bytes right before an address, cut into instructions in every way.
pub(super) struct Behind {
    bytes: Vec<u8>,
    /// Address of the first byte.
    start: u64,
    /// For each byte, where the last instruction begins if decoding begins there; `None` if no instruction
    /// then ends with the last byte.
    lasts: Vec<Option<usize>>,
}

impl Behind {
    /// Reads what is before `end`: fewer bytes where the page before is not mapped.
    pub(super) fn read(text: &mut impl Text, end: u64) -> Behind {
        let mut bytes = vec![0; BEHIND];
        let in_page = ((end % PAGE) as usize).min(BEHIND);
        let fits = [BEHIND, in_page].into_iter().find(|length| {
            text.bytes(end.wrapping_sub(*length as u64), &mut bytes[..*length]) == *length
        });
        bytes.truncate(fits.unwrap_or(0));
        let start = end.wrapping_sub(bytes.len() as u64);
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
        Behind {
            bytes,
            start,
            lasts,
        }
    }

    /// The starts whose decoding says what the last instruction is. Those within its possible bytes say
    /// little of what is before them, but where there is nothing more they have to do.
    fn voters(&self) -> &[Option<usize>] {
        let earliest = self.bytes.len().saturating_sub(LONGEST);
        &self.lasts[..if earliest > 0 {
            earliest
        } else {
            self.bytes.len()
        }]
    }

    /// The instructions that end with the last byte, with the votes that each has.
    pub(super) fn last_instructions(&self) -> impl Iterator<Item = (Instruction, usize)> {
        let earliest = self.bytes.len().saturating_sub(LONGEST);
        let ends = (earliest..self.bytes.len()).filter(|at| self.lasts[*at] == Some(*at));
        ends.map(|at| {
            let agrees = |last: &&Option<usize>| **last == Some(at);
            let votes = self.voters().iter().filter(agrees).count();
            let ip = self.start.wrapping_add(at as u64);
            (decode(&self.bytes[at..], ip), votes)
        })
    }

    /// Judges the instruction that ends with the last byte and touches a watched word. Where another one may be it, with
    /// fewer votes, the accesses reach over both.
    fn judge(&self, sight: &Sight<'_>, describer: &mut Describer, best: &mut Best) {
        let all_votes = self.voters().iter().flatten().count();
        let mut fitting: Vec<(Candidate, Rank, usize)> = Vec::new();
        for (instruction, votes) in self.last_instructions() {
            let candidate = describer
                .before(&instruction)
                .or_else(|| describer.returned(&instruction));
            let Some(candidate) = candidate else { continue };
            let rank = candidate.cover(sight, 0, &mut Vec::new(), &mut Vec::new());
            if rank > Rank::Nothing {
                fitting.push((candidate, rank, votes));
            }
        }
        let proven = fitting.iter().any(|(_, rank, _)| *rank >= Rank::Exact);
        fitting.retain(|(_, rank, _)| !proven || *rank >= Rank::Exact);
        fitting.sort_by_key(|(.., votes)| std::cmp::Reverse(*votes));
        let likely = |votes: usize| proven || votes * 2 > all_votes;
        if fitting.first().is_some_and(|(.., votes)| likely(*votes)) {
            best.judge_alike(fitting.iter().map(|(candidate, ..)| candidate), sight);
        }
    }
}

fn decode(bytes: &[u8], ip: u64) -> Instruction {
    Decoder::with_ip(64, bytes, ip, DecoderOptions::NONE).decode()
}
