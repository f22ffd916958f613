//! A sample's fields, from bytes and to bytes.
//!
//! The order is that of `PERF_RECORD_SAMPLE` in include/uapi/linux/perf_event.h and, where that comment leaves
//! fields out, of `perf_output_sample` in kernel/events/core.c.

use super::{
    bytes::PutBytes as _, fields::Fields, frame::put_record, read_format, record,
    sample_type as sample,
};

/// `PERF_SAMPLE_BRANCH_HW_INDEX`: an index precedes the branches.
const BRANCH_HW_INDEX: u64 = 1 << 17;
/// `PERF_SAMPLE_BRANCH_COUNTERS`: a word for each branch follows them.
const BRANCH_COUNTERS: u64 = 1 << 19;

/// What matters of a sample; `None` is what its event does not record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Address of the instruction.
    pub ip: Option<u64>,
    /// Process and thread.
    pub task: Option<(u32, u32)>,
    /// By the event's clock, nanoseconds.
    pub time: Option<u64>,
    /// Data address.
    pub addr: Option<u64>,
    /// The number by which the kernel tells events of one recording apart.
    pub id: Option<u64>,
    /// Where it was taken.
    pub cpu: Option<u32>,
    /// Events that the sample stands for.
    pub period: Option<u64>,
    /// The whole word of `PERF_SAMPLE_WEIGHT`, or of `PERF_SAMPLE_WEIGHT_STRUCT` the first member: the
    /// latency is in the low 32 bits of both.
    pub weight: Option<u64>,
    /// What served the access.
    pub data_src: Option<u64>,
    /// Physical data address.
    pub phys_addr: Option<u64>,
}

/// What of an event's attributes decides which fields its samples have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Set of [`super::sample_type`].
    pub sample_type: u64,
    /// Set of [`super::read_format`].
    pub read_format: u64,
    /// `branch_sample_type`.
    pub branches: u64,
    /// Number of user registers in a sample.
    pub user_registers: u64,
    /// Number of registers at the interrupt in a sample.
    pub interrupt_registers: u64,
}

impl Layout {
    fn has(&self, fields: u64) -> bool {
        self.sample_type & fields != 0
    }
}

impl Sample {
    /// Reads the body of a sample of this event; `None` when it is shorter than its fields.
    pub fn read(mut fields: Fields<'_>, layout: &Layout) -> Option<Sample> {
        let mut found = Sample::default();
        let f = &mut fields;
        f.skip_words(u64::from(layout.has(sample::IDENTIFIER)))?;
        if layout.has(sample::IP) {
            found.ip = Some(f.u64()?);
        }
        if layout.has(sample::TID) {
            found.task = Some((f.u32()?, f.u32()?));
        }
        if layout.has(sample::TIME) {
            found.time = Some(f.u64()?);
        }
        if layout.has(sample::ADDR) {
            found.addr = Some(f.u64()?);
        }
        if layout.has(sample::ID) {
            found.id = Some(f.u64()?);
        }
        f.skip_words(u64::from(layout.has(sample::STREAM_ID)))?;
        if layout.has(sample::CPU) {
            found.cpu = Some(f.u32()?);
            f.u32()?;
        }
        if layout.has(sample::PERIOD) {
            found.period = Some(f.u64()?);
        }
        if layout.has(sample::READ) {
            skip_read(f, layout.read_format)?;
        }
        if layout.has(sample::CALLCHAIN) {
            let frames = f.u64()?;
            f.skip_words(frames)?;
        }
        if layout.has(sample::RAW) {
            // Padded so that the length and the data together are whole words.
            let len = f.u32()?;
            f.take(u64::from(len))?;
        }
        if layout.has(sample::BRANCH_STACK) {
            skip_branches(f, layout.branches)?;
        }
        if layout.has(sample::REGS_USER) {
            skip_registers(f, layout.user_registers)?;
        }
        if layout.has(sample::STACK_USER) {
            let len = f.u64()?;
            f.take(len)?;
            // How much of it was used follows, unless there is none.
            f.skip_words(u64::from(len != 0))?;
        }
        if layout.has(sample::WEIGHT | sample::WEIGHT_STRUCT) {
            found.weight = Some(f.u64()?);
        }
        if layout.has(sample::DATA_SRC) {
            found.data_src = Some(f.u64()?);
        }
        f.skip_words(u64::from(layout.has(sample::TRANSACTION)))?;
        if layout.has(sample::REGS_INTR) {
            skip_registers(f, layout.interrupt_registers)?;
        }
        if layout.has(sample::PHYS_ADDR) {
            found.phys_addr = Some(f.u64()?);
        }
        for unused in [
            sample::CGROUP,
            sample::DATA_PAGE_SIZE,
            sample::CODE_PAGE_SIZE,
        ] {
            f.skip_words(u64::from(layout.has(unused)))?;
        }
        if layout.has(sample::AUX) {
            let len = f.u64()?;
            f.take(len)?;
        }
        Some(found)
    }

    /// Appends a sample of an event whose `sample_type` has no other fields than [`Sample`]; what is not known is 0.
    pub fn put(&self, out: &mut Vec<u8>, misc: u16, sample_type: u64) {
        let (pid, tid) = self.task.unwrap_or_default();
        let task = u64::from(tid) << 32 | u64::from(pid);
        let fields = [
            (sample::IP, self.ip),
            (sample::TID, Some(task)),
            (sample::TIME, self.time),
            (sample::ADDR, self.addr),
            (sample::ID, self.id),
            (sample::CPU, self.cpu.map(u64::from)),
            (sample::PERIOD, self.period),
            (sample::WEIGHT, self.weight),
            (sample::DATA_SRC, self.data_src),
            (sample::PHYS_ADDR, self.phys_addr),
        ];
        put_record(out, record::SAMPLE, misc, |out| {
            for (field, value) in fields {
                if sample_type & field != 0 {
                    out.u64(value.unwrap_or(0));
                }
            }
        });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf_format::{fields::ByteOrder, frame::HEADER_BYTES};

    const FULL: Sample = Sample {
        ip: Some(1),
        task: Some((2, 3)),
        time: Some(4),
        addr: Some(5),
        id: Some(6),
        cpu: Some(7),
        period: Some(8),
        weight: Some(9),
        data_src: Some(10),
        phys_addr: Some(11),
    };

    fn read(bytes: &[u8], sample_type: u64) -> Option<Sample> {
        let layout = Layout {
            sample_type,
            ..Layout::default()
        };
        Sample::read(Fields::new(bytes, ByteOrder::Little), &layout)
    }

    #[test]
    fn what_is_put_is_read_and_what_is_not_asked_for_is_not_known() {
        let all = sample::IP
            | sample::TID
            | sample::TIME
            | sample::ADDR
            | sample::ID
            | sample::CPU
            | sample::PERIOD
            | sample::WEIGHT
            | sample::DATA_SRC
            | sample::PHYS_ADDR;
        let mut out = Vec::new();
        FULL.put(&mut out, 0, all);
        let body = &out[HEADER_BYTES..];
        assert_eq!(read(body, all), Some(FULL));
        assert_eq!(read(&body[1..], all), None);
        let only_weight = Sample {
            weight: FULL.weight,
            ..Sample::default()
        };
        let mut out = Vec::new();
        FULL.put(&mut out, 0, sample::WEIGHT);
        assert_eq!(
            read(&out[HEADER_BYTES..], sample::WEIGHT),
            Some(only_weight)
        );
    }
}
