//! A sample's fields, and the trailer that identifies other records.
//!
//! The order is that of `PERF_RECORD_SAMPLE` in include/uapi/linux/perf_event.h and, where that comment leaves
//! fields out, of `perf_output_sample` in kernel/events/core.c.

use super::{
    attr::{Attr, BRANCH_COUNTERS, BRANCH_HW_INDEX, read_format},
    fields::Fields,
};
use crate::perf_format::sample_type as sample;

/// What matters of a sample; `None` is what its event does not record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) ip: Option<u64>,
    /// Process and thread.
    pub(super) task: Option<(u32, u32)>,
    pub(super) time: Option<u64>,
    pub(super) addr: Option<u64>,
    pub(super) cpu: Option<u32>,
    /// The whole word of `PERF_SAMPLE_WEIGHT`, or of `PERF_SAMPLE_WEIGHT_STRUCT` the first member: the
    /// latency is in the low 32 bits of both.
    pub(super) weight: Option<u64>,
    pub(super) data_src: Option<u64>,
    pub(super) phys_addr: Option<u64>,
}

/// Whose a record is, and when and where it was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RecordId {
    /// Process and thread.
    pub(super) task: Option<(u32, u32)>,
    pub(super) time: Option<u64>,
    pub(super) cpu: Option<u32>,
}

impl Sample {
    /// Reads the body of a sample of this event; `None` when it is shorter than its fields.
    pub(super) fn read(mut fields: Fields<'_>, attr: &Attr) -> Option<Sample> {
        let mut found = Sample::default();
        let f = &mut fields;
        if attr.has(sample::IDENTIFIER) {
            f.skip_words(1)?;
        }
        if attr.has(sample::IP) {
            found.ip = Some(f.u64()?);
        }
        if attr.has(sample::TID) {
            found.task = Some((f.u32()?, f.u32()?));
        }
        if attr.has(sample::TIME) {
            found.time = Some(f.u64()?);
        }
        if attr.has(sample::ADDR) {
            found.addr = Some(f.u64()?);
        }
        for unused in [sample::ID, sample::STREAM_ID] {
            f.skip_words(u64::from(attr.has(unused)))?;
        }
        if attr.has(sample::CPU) {
            found.cpu = Some(f.u32()?);
            f.u32()?;
        }
        f.skip_words(u64::from(attr.has(sample::PERIOD)))?;
        if attr.has(sample::READ) {
            skip_read(f, attr.read_format)?;
        }
        if attr.has(sample::CALLCHAIN) {
            let frames = f.u64()?;
            f.skip_words(frames)?;
        }
        if attr.has(sample::RAW) {
            // Padded so that the length and the data together are whole words.
            let len = f.u32()?;
            f.take(u64::from(len))?;
        }
        if attr.has(sample::BRANCH_STACK) {
            skip_branches(f, attr.branches)?;
        }
        if attr.has(sample::REGS_USER) {
            skip_registers(f, attr.user_registers)?;
        }
        if attr.has(sample::STACK_USER) {
            let len = f.u64()?;
            f.take(len)?;
            // How much of it was used follows, unless there is none.
            f.skip_words(u64::from(len != 0))?;
        }
        if attr.has(sample::WEIGHT | sample::WEIGHT_STRUCT) {
            found.weight = Some(f.u64()?);
        }
        if attr.has(sample::DATA_SRC) {
            found.data_src = Some(f.u64()?);
        }
        f.skip_words(u64::from(attr.has(sample::TRANSACTION)))?;
        if attr.has(sample::REGS_INTR) {
            skip_registers(f, attr.interrupt_registers)?;
        }
        if attr.has(sample::PHYS_ADDR) {
            found.phys_addr = Some(f.u64()?);
        }
        for unused in [
            sample::CGROUP,
            sample::DATA_PAGE_SIZE,
            sample::CODE_PAGE_SIZE,
        ] {
            f.skip_words(u64::from(attr.has(unused)))?;
        }
        if attr.has(sample::AUX) {
            let len = f.u64()?;
            f.take(len)?;
        }
        Some(found)
    }
}

fn skip_read(fields: &mut Fields<'_>, format: u64) -> Option<()> {
    let has = |bit| u64::from(format & bit != 0);
    let times = has(read_format::TOTAL_TIME_ENABLED) + has(read_format::TOTAL_TIME_RUNNING);
    let each = 1 + has(read_format::ID) + has(read_format::LOST);
    let members = if format & read_format::GROUP == 0 {
        1
    } else {
        fields.u64()?
    };
    fields.skip_words(times)?;
    fields.skip_words(members.checked_mul(each)?)
}

fn skip_branches(fields: &mut Fields<'_>, kinds: u64) -> Option<()> {
    let branches = fields.u64()?;
    let mut each = 3;
    if kinds & BRANCH_COUNTERS != 0 {
        each += 1;
    }
    fields.skip_words(u64::from(kinds & BRANCH_HW_INDEX != 0))?;
    fields.skip_words(branches.checked_mul(each)?)
}

fn skip_registers(fields: &mut Fields<'_>, registers: u64) -> Option<()> {
    // PERF_SAMPLE_REGS_ABI_NONE: a thread of the kernel has no user registers.
    let abi = fields.u64()?;
    if abi == 0 {
        return Some(());
    }
    fields.skip_words(registers)
}

/// The fields of the trailer, in its order, and whether each is in it.
const TRAILER: [u64; 6] = [
    sample::TID,
    sample::TIME,
    sample::ID,
    sample::STREAM_ID,
    sample::CPU,
    sample::IDENTIFIER,
];

impl RecordId {
    /// Cuts the trailer off a record that is no sample. `None` when the record is shorter.
    pub(super) fn split<'a>(fields: Fields<'a>, attr: &Attr) -> Option<(Fields<'a>, RecordId)> {
        let mut id = RecordId::default();
        if !attr.sample_id_all {
            return Some((fields, id));
        }
        let bytes = fields.rest();
        let words = TRAILER.iter().filter(|field| attr.has(**field)).count();
        let (body, trailer) = bytes.split_at_checked(bytes.len().checked_sub(words * 8)?)?;
        let mut trailer = Fields::new(trailer, fields.order());
        for field in TRAILER.into_iter().filter(|field| attr.has(*field)) {
            match field {
                sample::TID => id.task = Some((trailer.u32()?, trailer.u32()?)),
                sample::TIME => id.time = Some(trailer.u64()?),
                sample::CPU => {
                    id.cpu = Some(trailer.u32()?);
                    trailer.u32()?;
                }
                _ => trailer.skip_words(1)?,
            }
        }
        Some((Fields::new(body, fields.order()), id))
    }
}

/// Words before the event's id in a sample of the event, where it has one.
pub(super) fn id_in_sample(attr: &Attr) -> Option<u64> {
    if attr.has(sample::IDENTIFIER) {
        return Some(0);
    }
    let before = [sample::IP, sample::TID, sample::TIME, sample::ADDR];
    let words = before.iter().filter(|field| attr.has(**field)).count();
    attr.has(sample::ID).then_some(words as u64)
}

/// Words after the event's id in the trailer of its other records, where they have one.
pub(super) fn id_from_end(attr: &Attr) -> Option<usize> {
    if !attr.sample_id_all {
        return None;
    }
    if attr.has(sample::IDENTIFIER) {
        return Some(0);
    }
    let after = [sample::STREAM_ID, sample::CPU];
    let words = after.iter().filter(|field| attr.has(**field)).count();
    attr.has(sample::ID).then_some(words)
}
