//! A `perf.data` file, written from front to back and then its header.

use std::io::{self, Seek, SeekFrom, Write};

use super::{
    attr::{ATTR_BYTES, Event},
    build_ids::BuildIds,
    description::Description,
    features::{self, MOST_CPUS, Seen},
    record,
};
use crate::{
    access::{Access, CostUnit},
    event::{Batch, Context, Due},
    perf_format::bytes::PutBytes as _,
};

/// `struct perf_file_header`.
const HEADER_BYTES: u64 = 104;
/// An attribute and the section of its ids.
const FILE_ATTR_BYTES: u64 = ATTR_BYTES as u64 + 16;
const MAGIC: &[u8; 8] = b"PERFILE2";
/// The buffer is written out when it is this full.
const FLUSH_BYTES: usize = 1 << 20;

/// What was written.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Exported {
    /// Accesses written.
    pub accesses: u64,
    /// Mappings, names, births and ends of threads.
    pub context: u64,
    /// Accesses left out: of CPUs whose number no kernel has.
    pub left_out: u64,
    /// Further executions that emulated accesses stand for: a record is of one.
    pub repeats: u64,
    /// Other events that the format has no record for: windows, allocations, stacks, thread-local storage.
    pub not_exported: u64,
}

/// Writes accesses and context as a `perf.data` file. Memory is that of one batch.
#[derive(Debug)]
pub struct PerfDataWriter<W> {
    out: W,
    description: Description,
    unit: CostUnit,
    buffer: Vec<u8>,
    /// Offset and length of the data section so far, without the buffer.
    data: u64,
    data_bytes: u64,
    seen: Seen,
    counts: Exported,
}

impl<W: Write + Seek> PerfDataWriter<W> {
    /// Starts a file at the beginning of `out`. Costs of accesses are in `unit`.
    pub fn new(
        mut out: W,
        description: Description,
        unit: CostUnit,
    ) -> io::Result<PerfDataWriter<W>> {
        let mut head = vec![0; HEADER_BYTES as usize];
        let attrs = HEADER_BYTES + 8 * Event::ALL.len() as u64;
        let data = attrs + FILE_ATTR_BYTES * Event::ALL.len() as u64;
        for event in Event::ALL {
            head.u64(event.id());
        }
        for (n, event) in Event::ALL.iter().enumerate() {
            event.put_attr(&mut head, description.clock);
            head.u64(HEADER_BYTES + 8 * n as u64);
            head.u64(8);
        }
        out.write_all(&head)?;
        let mut buffer = Vec::with_capacity(2 * FLUSH_BYTES);
        record::put_kernel(&mut buffer, description.kernel_text.as_ref());
        Ok(PerfDataWriter {
            out,
            description,
            unit,
            buffer,
            data,
            data_bytes: 0,
            seen: Seen::default(),
            counts: Exported::default(),
        })
    }

    /// Appends a batch: its context and accesses in the order of time, context first.
    pub fn append(&mut self, batch: &Batch) -> io::Result<()> {
        for due in batch.in_order() {
            match due {
                Due::Context(context) => self.put_context(context)?,
                Due::Access(access) => self.put_access(access)?,
                // Counted below.
                Due::Allocation(_) => {}
            }
        }
        self.counts.not_exported += (batch.windows.len() + batch.allocations.len()) as u64;
        record::put_round(&mut self.buffer);
        self.flush_when_full()
    }

    fn put_access(&mut self, access: &Access) -> io::Result<()> {
        if access.cpu.0 >= MOST_CPUS {
            self.counts.left_out += 1;
            return Ok(());
        }
        let period = match self.unit {
            CostUnit::SampledTime => u64::from(access.cost.0).max(1),
            CostUnit::LatencyCycles | CostUnit::Transactions => 1,
        };
        record::put_access(&mut self.buffer, access, period, self.description.exact_ip);
        self.seen.last_cpu = self.seen.last_cpu.max(Some(access.cpu.0));
        let (first, last) = self.seen.times.unwrap_or((access.time_ns, access.time_ns));
        self.seen.times = Some((first.min(access.time_ns), last.max(access.time_ns)));
        self.counts.accesses += 1;
        let repeats = u64::from(access.measured.repeats);
        self.counts.repeats = self.counts.repeats.saturating_add(repeats);
        self.flush_when_full()
    }

    fn put_context(&mut self, context: &Context) -> io::Result<()> {
        if record::put_context(&mut self.buffer, context) {
            self.counts.context += 1;
        } else {
            self.counts.not_exported += 1;
        }
        self.flush_when_full()
    }

    fn flush_when_full(&mut self) -> io::Result<()> {
        if self.buffer.len() >= FLUSH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.data_bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// What was appended so far.
    pub fn counts(&self) -> Exported {
        self.counts
    }

    /// Writes features and header, and gives back the file.
    pub fn finish(mut self, build_ids: &BuildIds) -> io::Result<(W, Exported)> {
        self.flush()?;
        let sections = features::sections(&self.description, &self.seen, build_ids);
        let mut table = Vec::new();
        let mut at = self.data + self.data_bytes + 16 * sections.len() as u64;
        let mut flags = [0u64; 4];
        for (number, bytes) in &sections {
            table.u64(at);
            table.u64(bytes.len() as u64);
            at += bytes.len() as u64;
            flags[*number as usize / 64] |= 1 << (number % 64);
        }
        self.out.write_all(&table)?;
        for (_, bytes) in &sections {
            self.out.write_all(bytes)?;
        }
        let mut head = Vec::with_capacity(HEADER_BYTES as usize);
        head.put(MAGIC);
        head.u64(HEADER_BYTES);
        head.u64(FILE_ATTR_BYTES);
        head.u64(HEADER_BYTES + 8 * Event::ALL.len() as u64);
        head.u64(FILE_ATTR_BYTES * Event::ALL.len() as u64);
        head.u64(self.data);
        head.u64(self.data_bytes);
        head.u64(0); // event types: none since 3.10
        head.u64(0);
        for word in flags {
            head.u64(word);
        }
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&head)?;
        self.out.flush()?;
        Ok((self.out, self.counts))
    }
}
