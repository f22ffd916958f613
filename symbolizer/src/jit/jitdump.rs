//! `jit-PID.dump`: what a compiler says of its code, with lines and a copy of the code
//! (tools/perf/Documentation/jitdump-specification.txt in the kernel's tree).
//!
//! Records are read by their stated size, so unknown ones are passed over. The file is appended to while it
//! is read: an unfinished record at its end is read next time.

use std::collections::HashMap;

use super::{JitFunction, LONGEST_NAME, MOST_FUNCTIONS, Names, overlay::Overlay};

/// `JiTD` as a number of the writer's byte order.
const MAGIC: u32 = 0x4a69_5444;
/// The only version of the file header; the specification's own version 2 added a record.
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 40;
const PREFIX_BYTES: usize = 16;
const CODE_LOAD: u32 = 0;
const CODE_MOVE: u32 = 1;
const DEBUG_INFO: u32 = 2;
const CODE_CLOSE: u32 = 3;
/// Fixed fields of a load behind the prefix: two process ids, address twice, size, index.
const LOAD_BYTES: usize = 40;
/// Bytes of a record that must be there before it is read. A load's code is never needed; longer lists of
/// lines than this are passed over.
const MOST_RECORD: usize = 512 << 10;
/// Lines kept of one file.
const MOST_LINES: usize = 1 << 22;
/// Files that lines name.
const MOST_FILES: usize = 1 << 16;
/// Writers that prepare their addresses for the ELF file that `perf inject` makes add the size of its header
/// (`GEN_ELF_TEXT_OFFSET` in tools/perf/util/genelf.h).
const ELF_HEADER: u64 = 0x40;

/// Why a file is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JitDumpError {
    /// The magic number is absent.
    #[error("not a jitdump file")]
    NotJitDump,
    /// A format that this reader does not know.
    #[error("jitdump version {0}: only version 1 is read")]
    Version(u32),
    /// A header or record that is smaller than what it must hold.
    #[error("a damaged jitdump record: what follows it is not read")]
    Damaged,
}

/// Where an instruction comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JitLine<'a> {
    /// Source file.
    pub file: &'a str,
    /// Line, from 1.
    pub line: u32,
    /// Tells apart code of one line; 0 is the usual. Some compilers put the column here.
    pub discriminator: u32,
}

#[derive(Clone, Copy, Debug)]
struct Loaded {
    start: u64,
    size: u64,
    name: (u32, u32),
    /// Where in the file its code is.
    code: u64,
    /// Its lines: from where, how many.
    lines: (u32, u32),
    /// What to add (wrapping) to addresses of its lines: it was moved, or they were meant for an ELF file.
    shift: u64,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    address: u64,
    number: u32,
    discriminator: u32,
    file: u32,
}

/// A jitdump file, read as far as it was written.
#[derive(Debug, Default)]
pub struct JitDump {
    position: u64,
    little: bool,
    pid: Option<u32>,
    functions: Vec<Loaded>,
    names: Names,
    seen: Overlay,
    /// The latest load of each code index.
    by_index: HashMap<u64, u32>,
    lines: Vec<Line>,
    files: Vec<(u32, u32)>,
    file_numbers: HashMap<Box<[u8]>, u32>,
    /// Lines of a function whose load is yet to come, by its address.
    announced: HashMap<u64, (u32, u32)>,
    closed: bool,
    dropped: u64,
    failed: Option<JitDumpError>,
}

impl JitDump {
    /// Where in the file the next bytes for [`JitDump::read`] are; it may lie beyond its end.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Reads the whole records of the bytes at [`JitDump::position`]. 0 bytes when more are needed: 512 KiB
    /// are always enough.
    pub fn read(&mut self, bytes: &[u8]) -> Result<u64, JitDumpError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let before = self.position;
        let mut rest = bytes;
        loop {
            match self.step(rest) {
                Ok(0) => return Ok(self.position - before),
                Ok(taken) => {
                    self.position = self.position.saturating_add(taken);
                    rest = usize::try_from(taken)
                        .ok()
                        .and_then(|taken| rest.get(taken..))
                        .unwrap_or(&[]);
                }
                Err(error) => {
                    self.failed = Some(error);
                    return Err(error);
                }
            }
        }
    }

    /// One header or record: how many bytes it has in the file.
    fn step(&mut self, bytes: &[u8]) -> Result<u64, JitDumpError> {
        if self.pid.is_none() {
            return self.header(bytes);
        }
        let fields = Fields {
            bytes,
            little: self.little,
        };
        let (Some(id), Some(total), Some(time)) = (fields.u32(0), fields.u32(4), fields.u64(8))
        else {
            return Ok(0);
        };
        // A file made longer beforehand ends in zeros, which are yet to become a record.
        if total == 0 {
            return Ok(0);
        }
        let total = total as usize;
        if total < PREFIX_BYTES {
            return Err(JitDumpError::Damaged);
        }
        let needed = match id {
            CODE_LOAD => total.min(PREFIX_BYTES + LOAD_BYTES + LONGEST_NAME + 1),
            CODE_MOVE => total.min(PREFIX_BYTES + 48),
            DEBUG_INFO if total <= MOST_RECORD => total,
            _ => PREFIX_BYTES,
        };
        let Some(record) = bytes.get(..needed) else {
            return Ok(0);
        };
        let record = Fields {
            bytes: &record[PREFIX_BYTES..],
            little: self.little,
        };
        let read = match id {
            CODE_LOAD => self.load(&record, total, time),
            CODE_MOVE => self.relocate(&record, time),
            DEBUG_INFO if total <= MOST_RECORD => self.debug_info(&record),
            DEBUG_INFO => None,
            CODE_CLOSE => {
                self.closed = true;
                Some(())
            }
            _ => Some(()),
        };
        self.dropped += u64::from(read.is_none());
        Ok(total as u64)
    }

    fn header(&mut self, bytes: &[u8]) -> Result<u64, JitDumpError> {
        let Some(magic) = bytes.first_chunk::<4>() else {
            return Ok(0);
        };
        // Not written yet.
        if *magic == [0; 4] {
            return Ok(0);
        }
        self.little = match (u32::from_le_bytes(*magic), u32::from_be_bytes(*magic)) {
            (MAGIC, _) => true,
            (_, MAGIC) => false,
            _ => return Err(JitDumpError::NotJitDump),
        };
        let fields = Fields {
            bytes,
            little: self.little,
        };
        if bytes.len() < HEADER_BYTES {
            return Ok(0);
        }
        let field = |at| fields.u32(at).ok_or(JitDumpError::Damaged);
        match field(4)? {
            VERSION => {}
            other => return Err(JitDumpError::Version(other)),
        }
        let total = field(8)?;
        if (total as usize) < HEADER_BYTES {
            return Err(JitDumpError::Damaged);
        }
        self.pid = Some(field(20)?);
        Ok(u64::from(total))
    }

    fn load(&mut self, record: &Fields<'_>, total: usize, time: u64) -> Option<()> {
        let (start, size, index) = (record.u64(16)?, record.u64(24)?, record.u64(32)?);
        let text = record.bytes.get(LOAD_BYTES..)?;
        let name = text.split(|byte| *byte == 0).next()?;
        let code_in_record = PREFIX_BYTES + LOAD_BYTES + name.len() + 1;
        let lines = self.announced.remove(&start).unwrap_or_default();
        // A name longer than is read hides where the code begins.
        let cut = name.len() == text.len();
        let room = total.saturating_sub(code_in_record) as u64;
        let code = if cut || size > room {
            u64::MAX
        } else {
            self.position + code_in_record as u64
        };
        let end = start.checked_add(size)?;
        if self.functions.len() >= MOST_FUNCTIONS {
            return None;
        }
        let number = self.functions.len() as u32;
        let name = self.names.keep(name)?;
        let shift = self.shift(lines, start, end);
        self.functions.push(Loaded {
            start,
            size,
            name,
            code,
            lines,
            shift,
        });
        self.by_index.insert(index, number);
        self.seen.put(start, end, time, number);
        Some(())
    }

    /// What to add to the addresses of lines that were meant for the ELF file of `perf inject`: they start
    /// behind its header, or end behind the code.
    fn shift(&self, (from, count): (u32, u32), start: u64, end: u64) -> u64 {
        let lines = self.lines.get(from as usize..(from + count) as usize);
        let (Some(first), Some(last)) = (
            lines.and_then(<[Line]>::first),
            lines.and_then(<[Line]>::last),
        ) else {
            return 0;
        };
        let Some(behind_header) = start.checked_add(ELF_HEADER) else {
            return 0;
        };
        let shifted = first.address == behind_header
            || (first.address > behind_header && last.address >= end);
        if shifted {
            ELF_HEADER.wrapping_neg()
        } else {
            0
        }
    }

    fn relocate(&mut self, record: &Fields<'_>, time: u64) -> Option<()> {
        let (old, new, index) = (record.u64(16)?, record.u64(24)?, record.u64(40)?);
        let number = *self.by_index.get(&index)?;
        let moved = *self.functions.get(number as usize)?;
        let end = new.checked_add(moved.size)?;
        if moved.start != old || self.functions.len() >= MOST_FUNCTIONS {
            return None;
        }
        self.seen
            .remove(old, old.saturating_add(moved.size), number);
        let number = self.functions.len() as u32;
        let shift = moved.shift.wrapping_add(new.wrapping_sub(old));
        self.functions.push(Loaded {
            start: new,
            shift,
            ..moved
        });
        self.by_index.insert(index, number);
        self.seen.put(new, end, time, number);
        Some(())
    }

    fn debug_info(&mut self, record: &Fields<'_>) -> Option<()> {
        let (code, count) = (record.u64(0)?, record.u64(8)?);
        let from = self.lines.len();
        let mut rest = record.bytes.get(16..)?;
        let mut file = None;
        for _ in 0..count {
            let entry = Fields {
                bytes: rest,
                little: self.little,
            };
            let (address, number, discriminator) = (entry.u64(0)?, entry.u32(8)?, entry.u32(12)?);
            let name = rest.get(16..)?.split(|byte| *byte == 0).next()?;
            rest = rest.get(16 + name.len() + 1..)?;
            // The same file as before is written as one byte (`debug_entry` in tools/perf/util/genelf.h).
            if name != b"\xff" {
                file = self.file(name);
            }
            if self.lines.len() >= MOST_LINES {
                break;
            }
            if let Some(file) = file {
                self.lines.push(Line {
                    address,
                    number,
                    discriminator,
                    file,
                });
            }
        }
        self.lines[from..].sort_by_key(|line| line.address);
        // What is announced and never loaded must not pile up.
        if self.announced.len() >= MOST_FUNCTIONS {
            self.announced.clear();
        }
        self.announced
            .insert(code, (from as u32, (self.lines.len() - from) as u32));
        Some(())
    }

    fn file(&mut self, name: &[u8]) -> Option<u32> {
        if let Some(known) = self.file_numbers.get(name) {
            return Some(*known);
        }
        if self.files.len() >= MOST_FILES {
            return None;
        }
        let number = self.files.len() as u32;
        self.files.push(self.names.keep(name)?);
        self.file_numbers.insert(name.into(), number);
        Some(number)
    }

    /// The function at an address.
    pub fn function(&self, address: u64) -> Option<JitFunction<'_>> {
        let (seen, end, number) = self.seen.at(address)?;
        let function = self.functions.get(number as usize)?;
        Some(JitFunction {
            name: self.names.get(function.name),
            start: function.start,
            end,
            entered: seen == function.start,
        })
    }

    /// The source line of the instruction at an address, where the compiler told.
    pub fn line(&self, address: u64) -> Option<JitLine<'_>> {
        let (.., number) = self.seen.at(address)?;
        let function = self.functions.get(number as usize)?;
        let (from, count) = function.lines;
        let lines = self.lines.get(from as usize..(from + count) as usize)?;
        let there = address.wrapping_sub(function.shift);
        let next = lines.partition_point(|line| line.address <= there);
        let found = lines.get(next.checked_sub(1)?)?;
        // 0: this code is of no line.
        (found.number != 0).then(|| JitLine {
            file: self
                .files
                .get(found.file as usize)
                .map_or("", |name| self.names.get(*name)),
            line: found.number,
            discriminator: found.discriminator,
        })
    }

    /// Where in the file the code of the function at an address is, and how long it is.
    pub fn code(&self, address: u64) -> Option<(u64, u64)> {
        let (.., number) = self.seen.at(address)?;
        let function = self.functions.get(number as usize)?;
        (function.code != u64::MAX).then_some((function.code, function.size))
    }

    /// The process that wrote the file, by its own number, once the header is read.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Bytes on the heap, about.
    pub fn bytes(&self) -> usize {
        let entry = size_of::<u64>() * 3;
        let maps = (self.by_index.capacity() + self.announced.capacity()) * entry;
        let files = self.file_numbers.capacity() * 2 * entry + self.files.capacity() * 8;
        let functions = self.functions.capacity() * size_of::<Loaded>();
        let lines = self.lines.capacity() * size_of::<Line>();
        functions + lines + maps + files + self.names.bytes() + self.seen.bytes()
    }

    /// Functions read so far.
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Whether no function was read.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Whether the compiler said that nothing follows.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Records that contradict themselves, or for which there was no room.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// Numbers of the writer's byte order.
struct Fields<'a> {
    bytes: &'a [u8],
    little: bool,
}

impl Fields<'_> {
    fn u32(&self, at: usize) -> Option<u32> {
        let bytes = *self.bytes.get(at..)?.first_chunk::<4>()?;
        Some(if self.little {
            u32::from_le_bytes(bytes)
        } else {
            u32::from_be_bytes(bytes)
        })
    }

    fn u64(&self, at: usize) -> Option<u64> {
        let bytes = *self.bytes.get(at..)?.first_chunk::<8>()?;
        Some(if self.little {
            u64::from_le_bytes(bytes)
        } else {
            u64::from_be_bytes(bytes)
        })
    }
}

#[cfg(test)]
mod tests;
