//! `struct perf_event_attr` of include/uapi/linux/perf_event.h: what an event's records look like.

use crate::perf_format::{
    attr_flag::{SAMPLE_ID_ALL, USE_CLOCKID},
    fields::{ByteOrder, Fields},
    sample::Layout,
    sample_type as sample,
};

/// `PERF_ATTR_SIZE_VER0`.
pub(super) const SMALLEST: usize = 64;

/// What of an event's attributes matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attr {
    /// `type`, `config` and `config1`.
    pub(super) event: (u32, u64, u64),
    /// `sample_period` or `sample_freq`.
    pub(super) period: u64,
    /// Set of [`sample`].
    pub(super) sample_type: u64,
    /// Set of [`crate::perf_format::read_format`].
    pub(super) read_format: u64,
    /// Records that are no samples end with what identifies them.
    pub(super) sample_id_all: bool,
    /// The clock of its times, unless it is perf's own.
    pub(super) clock: Option<u32>,
    /// `branch_sample_type`.
    pub(super) branches: u64,
    /// Number of user registers in a sample.
    pub(super) user_registers: u64,
    /// Number of registers at the interrupt in a sample.
    pub(super) interrupt_registers: u64,
}

impl Attr {
    /// Reads the attributes at the front, as long as they say they are; what this version does not know is
    /// passed over. `None` when they are cut or shorter than the first version of them.
    pub(super) fn take(fields: &mut Fields<'_>) -> Option<Attr> {
        let mut ahead = *fields;
        ahead.u32()?;
        let size = ahead.u32()?;
        // Version 0 may have left its size at 0 (kernel/events/core.c, perf_copy_attr).
        let size = if size == 0 { SMALLEST as u32 } else { size };
        if (size as usize) < SMALLEST {
            return None;
        }
        let order = fields.order();
        Attr::read(Fields::new(fields.take(u64::from(size))?, order))
    }

    fn read(mut fields: Fields<'_>) -> Option<Attr> {
        let kind = fields.u32()?;
        fields.u32()?;
        let config = fields.u64()?;
        let period = fields.u64()?;
        let sample_type = fields.u64()?;
        let read_format = fields.u64()?;
        // A bit field begins at the lowest bit in one byte order and at the highest in the other.
        let flags = match fields.order() {
            ByteOrder::Little => fields.u64()?,
            ByteOrder::Big => fields.u64()?.reverse_bits(),
        };
        fields.skip_words(1)?;
        let config1 = fields.u64()?;
        // Later versions added the rest; what is not there is 0.
        fields.skip_words(u64::from(!fields.rest().is_empty()))?;
        let branches = fields.u64().unwrap_or(0);
        let user = fields.u64().unwrap_or(0);
        let _stack = fields.u32();
        let clock = fields.u32().unwrap_or(0);
        let interrupt = fields.u64().unwrap_or(0);
        Some(Attr {
            event: (kind, config, config1),
            period,
            sample_type,
            read_format,
            sample_id_all: flags & SAMPLE_ID_ALL != 0,
            clock: (flags & USE_CLOCKID != 0).then_some(clock),
            branches,
            user_registers: u64::from(user.count_ones()),
            interrupt_registers: u64::from(interrupt.count_ones()),
        })
    }

    /// Which fields its samples have.
    pub(super) fn layout(&self) -> Layout {
        Layout {
            sample_type: self.sample_type,
            read_format: self.read_format,
            branches: self.branches,
            user_registers: self.user_registers,
            interrupt_registers: self.interrupt_registers,
        }
    }

    pub(super) fn has(&self, bits: u64) -> bool {
        self.sample_type & bits != 0
    }

    /// Fields that this version does not know come after those it knows.
    pub(super) fn unknown_fields(&self) -> bool {
        self.sample_type >> sample::NAMES.len() != 0
    }

    /// The fields by name, as perf prints them.
    pub(super) fn sample_type_names(&self) -> String {
        let names = sample::NAMES.iter().enumerate();
        let set = names.filter(|(bit, _)| self.sample_type >> bit & 1 == 1);
        let names: Vec<&str> = set.map(|(_, name)| *name).collect();
        names.join("|")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(order: ByteOrder, words: &[(u64, usize)]) -> Vec<u8> {
        let word = |(value, len): &(u64, usize)| match order {
            ByteOrder::Little => value.to_le_bytes()[..*len].to_vec(),
            ByteOrder::Big => value.to_be_bytes()[8 - len..].to_vec(),
        };
        words.iter().flat_map(word).collect()
    }

    #[test]
    fn attributes_of_the_first_version_have_nothing_that_came_later() {
        let flags = SAMPLE_ID_ALL;
        for (order, flags) in [
            (ByteOrder::Little, flags),
            (ByteOrder::Big, flags.reverse_bits()),
        ] {
            let list = [
                (4, 4),
                (0, 4),
                (0x1cd, 8),
                (4000, 8),
                (sample::IP | sample::ADDR, 8),
                (0, 8),
                (flags, 8),
                (0, 8),
                (3, 8),
            ];
            let bytes = words(order, &list);
            assert_eq!(bytes.len(), SMALLEST);
            let mut fields = Fields::new(&bytes, order);
            let attr = Attr::take(&mut fields).unwrap();
            assert_eq!(attr.event, (4, 0x1cd, 3));
            assert!(attr.sample_id_all && attr.clock.is_none());
            assert_eq!((attr.branches, attr.user_registers), (0, 0));
            assert_eq!(attr.sample_type_names(), "IP|ADDR");
            for len in 0..SMALLEST {
                assert!(Attr::take(&mut Fields::new(&bytes[..len], order)).is_none());
            }
        }
    }
}
