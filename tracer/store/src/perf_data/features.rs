//! What a perf.data says of the machine and the recording: the sections behind the records
//! (tools/perf/util/header.c), or the records that carry them in a pipe.

use std::collections::{BTreeSet, HashMap};

use super::attr::Attr;
use crate::{
    event::path_text,
    module::hex,
    perf_format::{feature as number, fields::Fields, record::flag},
};

/// Most strings and events that are read of a section; more is damage.
const MOST_ITEMS: u32 = 1 << 20;
/// Files whose build-ids are kept, and the longest name of one, with what pads it.
const MOST_BUILD_IDS: usize = 1 << 16;
const LONGEST_NAME: usize = 4096 + 64;

/// What was said; unknown is `None` or empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Features {
    pub(super) host: Option<String>,
    pub(super) kernel_release: Option<String>,
    pub(super) perf_version: Option<String>,
    pub(super) arch: Option<String>,
    pub(super) online_cpus: Option<u32>,
    pub(super) cpu_description: Option<String>,
    pub(super) command_line: Vec<String>,
    pub(super) has_clock_id: bool,
    /// Clock, wall clock in nanoseconds since 1970, and the clock's time at the same moment.
    pub(super) clock: Option<(u32, u64, u64)>,
    /// Name and first ids of each event.
    pub(super) events: Vec<EventName>,
    pub(super) directory: bool,
    /// By the file's name.
    pub(super) build_ids: HashMap<String, String>,
    /// Numbers of sections that could not be read.
    pub(super) unreadable: BTreeSet<u32>,
}

/// What `EVENT_DESC` says of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EventName {
    pub(super) attr: Attr,
    pub(super) ids: Vec<u64>,
    pub(super) name: String,
}

impl Features {
    /// Takes in one section. One that is damaged counts as not there.
    pub(super) fn add(&mut self, section: u32, mut fields: Fields<'_>) {
        let f = &mut fields;
        let read = match section {
            number::HOSTNAME => string(f, &mut self.host),
            number::OSRELEASE => string(f, &mut self.kernel_release),
            number::VERSION => string(f, &mut self.perf_version),
            number::ARCH => string(f, &mut self.arch),
            number::CPUDESC => string(f, &mut self.cpu_description),
            number::NRCPUS => f.u32().and_then(|_available| f.u32()).map(|online| {
                self.online_cpus = (online > 0).then_some(online);
            }),
            number::CMDLINE => strings(f).map(|words| self.command_line = words),
            number::EVENT_DESC => events(f).map(|events| self.events = events),
            number::CLOCKID => {
                self.has_clock_id = true;
                Some(())
            }
            number::CLOCK_DATA => clock(f).map(|clock| self.clock = Some(clock)),
            number::DIR_FORMAT => {
                self.directory = true;
                Some(())
            }
            number::BUILD_ID => {
                self.add_build_ids(fields);
                Some(())
            }
            _ => Some(()),
        };
        if read.is_none() {
            self.unreadable.insert(section);
        }
    }

    /// A section of records, each with a header of its own.
    fn add_build_ids(&mut self, mut fields: Fields<'_>) {
        while !fields.rest().is_empty() {
            let mut frame = fields;
            let (Some(_kind), Some(misc), Some(len)) = (frame.u32(), frame.u16(), frame.u16())
            else {
                self.unreadable.insert(number::BUILD_ID);
                return;
            };
            let record = fields.take(u64::from(len)).and_then(|bytes| bytes.get(8..));
            let Some(record) = record else {
                self.unreadable.insert(number::BUILD_ID);
                return;
            };
            self.add_build_id(misc, Fields::new(record, fields.order()));
        }
    }

    /// `struct perf_record_header_build_id` after its header.
    pub(super) fn add_build_id(&mut self, misc: u16, mut fields: Fields<'_>) {
        let mode = misc & flag::CPU_MODE;
        let guest = matches!(mode, flag::GUEST_KERNEL | flag::GUEST_USER);
        let read = fields.u32().and_then(|_pid| fields.take(24));
        let Some((id, rest)) = read.and_then(|id| id.split_at_checked(20)) else {
            return;
        };
        let len = if misc & flag::BUILD_ID_SIZE != 0 {
            rest.first().map_or(20, |len| usize::from(*len).min(20))
        } else if id[16..] == [0; 4] {
            // Older ones pad what is shorter.
            16
        } else {
            20
        };
        let fits = self.build_ids.len() < MOST_BUILD_IDS && fields.rest().len() <= LONGEST_NAME;
        if fits && !guest && id[..len].iter().any(|byte| *byte != 0) {
            self.build_ids
                .insert(path_text::text(fields.text()), hex(&id[..len]));
        }
    }
}

fn string(fields: &mut Fields<'_>, into: &mut Option<String>) -> Option<()> {
    let text = counted(fields)?;
    *into = (!text.is_empty()).then_some(text);
    Some(())
}

fn counted(fields: &mut Fields<'_>) -> Option<String> {
    fields.counted_text().map(path_text::text)
}

fn strings(fields: &mut Fields<'_>) -> Option<Vec<String>> {
    let count = fields.u32().filter(|count| *count <= MOST_ITEMS)?;
    (0..count).map(|_| counted(fields)).collect()
}

fn clock(fields: &mut Fields<'_>) -> Option<(u32, u64, u64)> {
    let _version = fields.u32()?;
    let id = fields.u32()?;
    Some((id, fields.u64()?, fields.u64()?))
}

fn events(fields: &mut Fields<'_>) -> Option<Vec<EventName>> {
    let count = fields.u32().filter(|count| *count <= MOST_ITEMS)?;
    let attr_len = fields.u32()?;
    let event = |_| {
        let attr = fields.take(u64::from(attr_len))?;
        let attr = Attr::take(&mut Fields::new(attr, fields.order()))?;
        let ids = fields.u32()?;
        let name = counted(fields)?;
        let bytes = fields.take(u64::from(ids).checked_mul(8)?)?;
        let mut words = Fields::new(bytes, fields.order());
        let ids = std::iter::from_fn(|| words.u64()).collect();
        Some(EventName { attr, ids, name })
    };
    (0..count).map(event).collect()
}
