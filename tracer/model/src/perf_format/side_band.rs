//! Records about tasks and mappings, and about what was lost: from bytes to fields and back.
//!
//! Layouts are those of `enum perf_event_type` in include/uapi/linux/perf_event.h, without header ([`super::frame`]) and
//! trailer ([`super::trailer`]). Reading is total: a record that is shorter than its fields is [`Short`].

use super::{
    bytes::PutBytes as _,
    fields::Fields,
    frame::put_record,
    record::{self as kind, flag},
    trailer::Trailer,
};

/// Bytes that a build-id has at most in a record of a mapping.
const MOST_BUILD_ID: u8 = 20;

/// A record that ends inside this field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short(pub &'static str);

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideBand<'a> {
    /// A mapping was made.
    Mapping(MappingRecord<'a>),
    /// A thread got a name.
    Comm {
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
        /// The name, up to the zero byte that ends it.
        name: &'a [u8],
        /// By an exec.
        exec: bool,
    },
    /// A thread or process was made.
    Fork(Task),
    /// A thread ended.
    Exit(Task),
    /// Records found no room.
    Lost {
        /// Identifier of the event that lost them.
        event: u64,
        /// Records lost.
        records: u64,
    },
    /// Samples found no room: this many.
    LostSamples(u64),
}

/// A thread that began or ended, and the one that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its process.
    pub pid: u32,
    /// Process of the one that made it.
    pub parent_pid: u32,
    /// The thread.
    pub tid: u32,
    /// The one that made it.
    pub parent_tid: u32,
    /// When; nanoseconds.
    pub time: Option<u64>,
}

/// A mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingRecord<'a> {
    /// Process that maps the file; perf writes -1 for the kernel.
    pub pid: u32,
    /// By which thread.
    pub tid: u32,
    /// First address.
    pub start: u64,
    /// Length of the mapping in bytes.
    pub len: u64,
    /// Of the first address, bytes.
    pub file_offset: u64,
    /// What is mapped, and who may do what there.
    pub details: Details<'a>,
    /// Of the file or the kind of memory, up to the zero byte that ends it.
    pub name: &'a [u8],
}

/// What the two kinds of record have of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Details<'a> {
    /// `MMAP`.
    Old {
        /// Not executable.
        data: bool,
    },
    /// `MMAP2`.
    New {
        /// Which file.
        file: FileIdentity<'a>,
        /// `PROT_*` of [`super::mapping`].
        protection: u32,
        /// `MAP_*` of [`super::mapping`].
        flags: u32,
    },
}

/// Which file is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileIdentity<'a> {
    /// By its place.
    Inode {
        /// Of the device.
        major: u32,
        /// Of the device.
        minor: u32,
        /// On the device.
        inode: u64,
        /// Of the inode.
        generation: u64,
    },
    /// By its content; no bytes where it has no build-id.
    BuildId(&'a [u8]),
}

impl<'a> SideBand<'a> {
    /// Reads the body of a record; `None` of a kind that is not among these.
    pub fn read(kind: u32, misc: u16, fields: Fields<'a>) -> Result<Option<SideBand<'a>>, Short> {
        let mut f = fields;
        Ok(Some(match kind {
            kind::MMAP | kind::MMAP2 => SideBand::Mapping(mapping(kind, misc, f)?),
            kind::COMM => SideBand::Comm {
                pid: f.u32().ok_or(Short("the pid"))?,
                tid: f.u32().ok_or(Short("the tid"))?,
                name: f.text(),
                exec: misc & flag::COMM_EXEC != 0,
            },
            kind::FORK => SideBand::Fork(task(f)?),
            kind::EXIT => SideBand::Exit(task(f)?),
            kind::LOST => SideBand::Lost {
                event: f.u64().ok_or(Short("the event id"))?,
                records: f.u64().ok_or(Short("the count"))?,
            },
            kind::LOST_SAMPLES => SideBand::LostSamples(f.u64().ok_or(Short("the count"))?),
            _ => return Ok(None),
        }))
    }

    /// Appends the record, with its header and the trailer of the event's `sample_type`. `mode` is what of `misc` the
    /// record itself does not say.
    pub fn put(&self, out: &mut Vec<u8>, mode: u16, trailer: &Trailer, sample_type: u64) {
        let (kind, misc) = self.kind_and_flags();
        put_record(out, kind, mode | misc, |out| {
            self.put_body(out);
            trailer.put(out, sample_type);
        });
    }

    fn kind_and_flags(&self) -> (u32, u16) {
        let flag_if = |is_set: bool, bit: u16| if is_set { bit } else { 0 };
        match self {
            SideBand::Mapping(mapping) => match mapping.details {
                Details::Old { data } => (kind::MMAP, flag_if(data, flag::MMAP_DATA)),
                Details::New { file, .. } => {
                    let by_content = matches!(file, FileIdentity::BuildId(_));
                    (kind::MMAP2, flag_if(by_content, flag::MMAP_BUILD_ID))
                }
            },
            SideBand::Comm { exec, .. } => (kind::COMM, flag_if(*exec, flag::COMM_EXEC)),
            SideBand::Fork(_) => (kind::FORK, 0),
            SideBand::Exit(_) => (kind::EXIT, 0),
            SideBand::Lost { .. } => (kind::LOST, 0),
            SideBand::LostSamples(_) => (kind::LOST_SAMPLES, 0),
        }
    }

    fn put_body(&self, out: &mut Vec<u8>) {
        match self {
            SideBand::Mapping(mapping) => put_mapping(out, mapping),
            SideBand::Comm { pid, tid, name, .. } => {
                out.u32(*pid);
                out.u32(*tid);
                out.text(name, 8);
            }
            SideBand::Fork(task) | SideBand::Exit(task) => {
                for number in [task.pid, task.parent_pid, task.tid, task.parent_tid] {
                    out.u32(number);
                }
                out.u64(task.time.unwrap_or(0));
            }
            SideBand::Lost { event, records } => {
                out.u64(*event);
                out.u64(*records);
            }
            SideBand::LostSamples(samples) => out.u64(*samples),
        }
    }
}

fn task(mut f: Fields<'_>) -> Result<Task, Short> {
    Ok(Task {
        pid: f.u32().ok_or(Short("the pid"))?,
        parent_pid: f.u32().ok_or(Short("the parent's pid"))?,
        tid: f.u32().ok_or(Short("the tid"))?,
        parent_tid: f.u32().ok_or(Short("the parent's tid"))?,
        time: f.u64(),
    })
}

fn mapping(kind: u32, misc: u16, mut f: Fields<'_>) -> Result<MappingRecord<'_>, Short> {
    Ok(MappingRecord {
        pid: f.u32().ok_or(Short("the pid"))?,
        tid: f.u32().ok_or(Short("the tid"))?,
        start: f.u64().ok_or(Short("the address"))?,
        len: f.u64().ok_or(Short("the length"))?,
        file_offset: f.u64().ok_or(Short("the file offset"))?,
        details: if kind == kind::MMAP {
            let data = misc & flag::MMAP_DATA != 0;
            Details::Old { data }
        } else {
            Details::New {
                file: identity(misc, &mut f).ok_or(Short("the file's identity"))?,
                protection: f.u32().ok_or(Short("the protection"))?,
                flags: f.u32().ok_or(Short("the flags"))?,
            }
        },
        name: f.text(),
    })
}

fn identity<'a>(misc: u16, fields: &mut Fields<'a>) -> Option<FileIdentity<'a>> {
    let mut f = Fields::new(fields.take(24)?, fields.order());
    Some(if misc & flag::MMAP_BUILD_ID != 0 {
        let len = f.u8()?.min(MOST_BUILD_ID);
        f.take(3)?;
        FileIdentity::BuildId(f.take(u64::from(len))?)
    } else {
        FileIdentity::Inode {
            major: f.u32()?,
            minor: f.u32()?,
            inode: f.u64()?,
            generation: f.u64()?,
        }
    })
}

fn put_mapping(out: &mut Vec<u8>, mapping: &MappingRecord<'_>) {
    out.u32(mapping.pid);
    out.u32(mapping.tid);
    out.u64(mapping.start);
    out.u64(mapping.len);
    out.u64(mapping.file_offset);
    if let Details::New {
        file,
        protection,
        flags,
    } = mapping.details
    {
        match file {
            FileIdentity::Inode {
                major,
                minor,
                inode,
                generation,
            } => {
                out.u32(major);
                out.u32(minor);
                out.u64(inode);
                out.u64(generation);
            }
            FileIdentity::BuildId(id) => {
                let id = &id[..id.len().min(usize::from(MOST_BUILD_ID))];
                out.put(&[id.len() as u8, 0, 0, 0]);
                out.put(id);
                out.put(&[0; MOST_BUILD_ID as usize][id.len()..]);
            }
        }
        out.u32(protection);
        out.u32(flags);
    }
    out.text(mapping.name, 8);
}

#[cfg(test)]
mod tests;
