//! Makes small recordings for tests, field by field as include/uapi/linux/perf_event.h has them.
#![allow(
    missing_docs,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    clippy::unwrap_used,
    reason = "names are those of the format, and what a test cannot write ends it"
)]

use std::io::Write as _;

use crate::perf_format::sample_type as field;

pub use crate::perf_format::fields::ByteOrder;

/// Bytes in one byte order.
pub struct Words {
    pub bytes: Vec<u8>,
    order: ByteOrder,
}

impl Words {
    pub fn new(order: ByteOrder) -> Words {
        Words {
            bytes: Vec::new(),
            order,
        }
    }

    fn put(&mut self, value: u64, len: usize) -> &mut Words {
        match self.order {
            ByteOrder::Little => self.bytes.extend(&value.to_le_bytes()[..len]),
            ByteOrder::Big => self.bytes.extend(&value.to_be_bytes()[8 - len..]),
        }
        self
    }

    pub fn u16(&mut self, value: u16) -> &mut Words {
        self.put(u64::from(value), 2)
    }

    pub fn u32(&mut self, value: u32) -> &mut Words {
        self.put(u64::from(value), 4)
    }

    pub fn u64(&mut self, value: u64) -> &mut Words {
        self.put(value, 8)
    }

    pub fn all(&mut self, values: &[u64]) -> &mut Words {
        for value in values {
            self.u64(*value);
        }
        self
    }

    pub fn raw(&mut self, bytes: &[u8]) -> &mut Words {
        self.bytes.extend(bytes);
        self
    }

    /// Padded with NULs to whole words, with one at least.
    pub fn name(&mut self, name: &str) -> &mut Words {
        self.raw(name.as_bytes());
        self.bytes.push(0);
        while !self.bytes.len().is_multiple_of(8) {
            self.bytes.push(0);
        }
        self
    }

    pub fn counted(&mut self, text: &str) -> &mut Words {
        self.u32(text.len() as u32 + 1)
            .raw(text.as_bytes())
            .raw(&[0])
    }
}

/// An event's attributes and ids.
#[derive(Clone)]
pub struct TestEvent {
    /// `type`: 4 is raw, of the processor's own numbering.
    pub kind: u32,
    pub sample_type: u64,
    pub read_format: u64,
    pub branches: u64,
    pub user_registers: u64,
    pub interrupt_registers: u64,
    pub sample_id_all: bool,
    pub ids: Vec<u64>,
}

impl TestEvent {
    pub fn new(sample_type: u64) -> TestEvent {
        TestEvent {
            kind: 4,
            sample_type,
            read_format: 0,
            branches: 0,
            user_registers: 0,
            interrupt_registers: 0,
            sample_id_all: true,
            ids: Vec::new(),
        }
    }

    pub fn id(self, id: u64) -> TestEvent {
        TestEvent {
            ids: vec![id],
            ..self
        }
    }

    fn attr(&self, order: ByteOrder) -> Vec<u8> {
        let flags = u64::from(self.sample_id_all) << 18;
        let mut words = Words::new(order);
        words
            .u32(self.kind)
            .u32(112)
            .all(&[0x1cd, 4000, self.sample_type, self.read_format]);
        words.u64(match order {
            ByteOrder::Little => flags,
            ByteOrder::Big => flags.reverse_bits(),
        });
        words
            .u32(0)
            .u32(0)
            .all(&[3, 0, self.branches, self.user_registers]);
        words.u32(0).u32(0).u64(self.interrupt_registers).u64(0);
        words.bytes
    }
}

/// What a sample says; each value goes where its event records it.
#[derive(Clone)]
pub struct TestSample {
    pub misc: u16,
    pub id: u64,
    pub ip: u64,
    pub pid: u32,
    pub tid: u32,
    pub time: u64,
    pub addr: u64,
    pub cpu: u32,
    pub weight: u64,
    pub data_src: u64,
    pub phys_addr: u64,
}

impl TestSample {
    /// A load of user code, `n` apart from others in all that matters.
    pub fn load(n: u64) -> TestSample {
        TestSample {
            misc: 2 | 1 << 14,
            id: 0,
            ip: 0x40_1000 + n,
            pid: 100,
            tid: 100 + n as u32 % 4,
            time: 1_000_000 + n,
            addr: 0x7f00_0000_0000 + n * 8,
            cpu: n as u32 % 3,
            weight: 7 << 32 | (n + 1),
            data_src: 0x6810_0142,
            phys_addr: 0x1_0000 + n,
        }
    }
}

/// A recording in the making.
pub struct Recording {
    order: ByteOrder,
    events: Vec<TestEvent>,
    records: Vec<u8>,
    features: Vec<(u32, Vec<u8>)>,
}

impl Recording {
    pub fn new(order: ByteOrder, events: Vec<TestEvent>) -> Recording {
        Recording {
            order,
            events,
            records: Vec::new(),
            features: Vec::new(),
        }
    }

    pub fn words(&self) -> Words {
        Words::new(self.order)
    }

    fn framed(&self, kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let mut words = self.words();
        words
            .u32(kind)
            .u16(misc)
            .u16(8 + body.len() as u16)
            .raw(body);
        words.bytes
    }

    pub fn record(&mut self, kind: u32, misc: u16, body: &[u8]) -> &mut Recording {
        let record = self.framed(kind, misc, body);
        self.records.extend(record);
        self
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Recording {
        self.records.extend(bytes);
        self
    }

    pub fn end_round(&mut self) -> &mut Recording {
        self.record(68, 0, &[])
    }

    /// A sample of the event of that index.
    pub fn sample(&mut self, event: usize, values: &TestSample) -> &mut Recording {
        let TestEvent {
            sample_type,
            read_format,
            branches,
            user_registers,
            interrupt_registers,
            ..
        } = self.events[event].clone();
        let mut words = self.words();
        let has = |bit| sample_type & bit != 0;
        if has(field::IDENTIFIER) {
            words.u64(values.id);
        }
        if has(field::IP) {
            words.u64(values.ip);
        }
        if has(field::TID) {
            words.u32(values.pid).u32(values.tid);
        }
        if has(field::TIME) {
            words.u64(values.time);
        }
        if has(field::ADDR) {
            words.u64(values.addr);
        }
        if has(field::ID) {
            words.u64(values.id);
        }
        if has(field::STREAM_ID) {
            words.u64(0xbad);
        }
        if has(field::CPU) {
            words.u32(values.cpu).u32(0xbad);
        }
        if has(field::PERIOD) {
            words.u64(0xbad);
        }
        if has(field::READ) {
            // Of a group of three: value, id and lost of each.
            let each = 1 + u64::from(read_format & 4 != 0) + u64::from(read_format & 16 != 0);
            let times = u64::from(read_format & 1 != 0) + u64::from(read_format & 2 != 0);
            if read_format & 8 != 0 {
                words.u64(3);
                words.all(&vec![0xbad; (times + 3 * each) as usize]);
            } else {
                words.all(&vec![0xbad; (times + each) as usize]);
            }
        }
        if has(field::CALLCHAIN) {
            words.all(&[2, 0xbad, 0xbad]);
        }
        if has(field::RAW) {
            words.u32(12).raw(&[0xba; 12]);
        }
        if has(field::BRANCH_STACK) {
            words.u64(2);
            if branches & 1 << 17 != 0 {
                words.u64(0xbad);
            }
            words.all(&[0xbad; 6]);
            if branches & 1 << 19 != 0 {
                words.all(&[0xbad; 2]);
            }
        }
        if has(field::REGS_USER) {
            words
                .u64(2)
                .all(&vec![0xbad; user_registers.count_ones() as usize]);
        }
        if has(field::STACK_USER) {
            words.u64(16).raw(&[0xba; 16]).u64(16);
        }
        if has(field::WEIGHT | field::WEIGHT_STRUCT) {
            words.u64(values.weight);
        }
        if has(field::DATA_SRC) {
            words.u64(values.data_src);
        }
        if has(field::TRANSACTION) {
            words.u64(0xbad);
        }
        if has(field::REGS_INTR) {
            words
                .u64(2)
                .all(&vec![0xbad; interrupt_registers.count_ones() as usize]);
        }
        if has(field::PHYS_ADDR) {
            words.u64(values.phys_addr);
        }
        for bit in [field::CGROUP, field::DATA_PAGE_SIZE, field::CODE_PAGE_SIZE] {
            if has(bit) {
                words.u64(0xbad);
            }
        }
        if has(field::AUX) {
            words.u64(8).u64(0xbad);
        }
        let body = words.bytes;
        self.record(9, values.misc, &body)
    }

    /// Another record of the event of that index, with the trailer that its event asks for.
    pub fn about(
        &mut self,
        event: usize,
        (kind, misc): (u32, u16),
        body: &[u8],
        values: &TestSample,
    ) -> &mut Recording {
        let TestEvent {
            sample_type,
            sample_id_all,
            ..
        } = self.events[event];
        let mut words = self.words();
        words.raw(body);
        let has = |bit| sample_id_all && sample_type & bit != 0;
        if has(field::TID) {
            words.u32(values.pid).u32(values.tid);
        }
        if has(field::TIME) {
            words.u64(values.time);
        }
        if has(field::ID) {
            words.u64(values.id);
        }
        if has(field::STREAM_ID) {
            words.u64(0xbad);
        }
        if has(field::CPU) {
            words.u32(values.cpu).u32(0);
        }
        if has(field::IDENTIFIER) {
            words.u64(values.id);
        }
        let body = words.bytes;
        self.record(kind, misc, &body)
    }

    pub fn feature(&mut self, number: u32, bytes: Vec<u8>) -> &mut Recording {
        self.features.push((number, bytes));
        self.features.sort_by_key(|(number, _)| *number);
        self
    }

    pub fn text_feature(&mut self, number: u32, text: &str) -> &mut Recording {
        let mut words = self.words();
        words.counted(text);
        self.feature(number, words.bytes)
    }

    /// Puts all records so far into compressed ones, cut so that records lie across them.
    pub fn compressed(&mut self, kind: u32) -> &mut Recording {
        let plain = std::mem::take(&mut self.records);
        let mut encoder = zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
        for piece in plain.chunks(101) {
            encoder.write_all(piece).unwrap();
            encoder.flush().unwrap();
            let packed = std::mem::take(encoder.get_mut());
            let mut words = self.words();
            if kind == 83 {
                words.u64(packed.len() as u64).raw(&packed);
                while !words.bytes.len().is_multiple_of(8) {
                    words.bytes.push(0);
                }
            } else {
                words.raw(&packed);
            }
            let body = words.bytes;
            self.record(kind, 0, &body);
        }
        self
    }

    /// As `perf record` writes it to a file.
    pub fn file(&self) -> Vec<u8> {
        let attrs_at = 104;
        let ids_at = attrs_at + self.events.len() as u64 * 128;
        let id_count: usize = self.events.iter().map(|event| event.ids.len()).sum();
        let data_at = ids_at + id_count as u64 * 8;
        let data_len = self.records.len() as u64;
        let mut words = self.words();
        words.raw(match self.order {
            ByteOrder::Little => b"PERFILE2",
            ByteOrder::Big => b"2ELIFREP",
        });
        words.all(&[
            104,
            128,
            attrs_at,
            self.events.len() as u64 * 128,
            data_at,
            data_len,
            0,
            0,
        ]);
        let present = self
            .features
            .iter()
            .fold(0, |bits, (number, _)| bits | 1 << number);
        words.all(&[present, 0, 0, 0]);
        let mut at = ids_at;
        for event in &self.events {
            let len = event.ids.len() as u64 * 8;
            words.raw(&event.attr(self.order)).all(&[at, len]);
            at += len;
        }
        for event in &self.events {
            words.all(&event.ids);
        }
        words.raw(&self.records);
        let mut at = data_at + data_len + self.features.len() as u64 * 16;
        for (_, bytes) in &self.features {
            words.all(&[at, bytes.len() as u64]);
            at += bytes.len() as u64;
        }
        for (_, bytes) in &self.features {
            words.raw(bytes);
        }
        words.bytes
    }

    /// As `perf record -o -` writes it.
    pub fn pipe(&self) -> Vec<u8> {
        let mut words = self.words();
        words.raw(match self.order {
            ByteOrder::Little => b"PERFILE2",
            ByteOrder::Big => b"2ELIFREP",
        });
        words.u64(16);
        for event in &self.events {
            let mut body = self.words();
            body.raw(&event.attr(self.order)).all(&event.ids);
            words.raw(&self.framed(64, 0, &body.bytes));
        }
        for (number, bytes) in &self.features {
            let mut body = self.words();
            body.u64(u64::from(*number)).raw(bytes);
            words.raw(&self.framed(80, 0, &body.bytes));
        }
        words.raw(&self.records);
        words.bytes
    }
}
