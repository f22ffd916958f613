use super::*;

/// Writes files as the specification says.
struct Writer {
    little: bool,
    bytes: Vec<u8>,
}

impl Writer {
    fn new(little: bool) -> Writer {
        let mut writer = Writer {
            little,
            bytes: Vec::new(),
        };
        let ascii = *b"JiTD";
        // The number 0x4A695444 in the writer's order.
        let magic = if little {
            [ascii[3], ascii[2], ascii[1], ascii[0]]
        } else {
            ascii
        };
        writer.bytes.extend(magic);
        for word in [1, 40, 62, 0, 77] {
            writer.bytes.extend(writer.word(word));
        }
        writer.bytes.extend([0; 16]);
        writer
    }

    fn word(&self, value: u32) -> [u8; 4] {
        if self.little {
            value.to_le_bytes()
        } else {
            value.to_be_bytes()
        }
    }

    fn long(&self, value: u64) -> [u8; 8] {
        if self.little {
            value.to_le_bytes()
        } else {
            value.to_be_bytes()
        }
    }

    fn record(&mut self, id: u32, time: u64, payload: &[u8]) {
        self.bytes.extend(self.word(id));
        self.bytes.extend(self.word(16 + payload.len() as u32));
        self.bytes.extend(self.long(time));
        self.bytes.extend(payload);
    }

    fn load(&mut self, time: u64, start: u64, index: u64, name: &str, code: &[u8]) {
        let mut payload = [self.word(77), self.word(78)].concat();
        for value in [start, start, code.len() as u64, index] {
            payload.extend(self.long(value));
        }
        payload.extend(name.as_bytes());
        payload.push(0);
        payload.extend(code);
        self.record(0, time, &payload);
    }

    fn relocate(&mut self, time: u64, old: u64, new: u64, size: u64, index: u64) {
        let mut payload = [self.word(77), self.word(78)].concat();
        for value in [new, old, new, size, index] {
            payload.extend(self.long(value));
        }
        self.record(1, time, &payload);
    }

    fn lines(&mut self, start: u64, lines: &[(u64, u32, u32, &[u8])]) {
        let mut payload = self.long(start).to_vec();
        payload.extend(self.long(lines.len() as u64));
        for (address, line, discriminator, file) in lines {
            payload.extend(self.long(*address));
            payload.extend(self.word(*line));
            payload.extend(self.word(*discriminator));
            payload.extend(*file);
            payload.push(0);
        }
        self.record(2, 1, &payload);
    }

    fn read(&self) -> JitDump {
        let mut dump = JitDump::default();
        dump.read(&self.bytes).expect("a good file");
        dump
    }
}

fn name(dump: &JitDump, address: u64) -> Option<&str> {
    dump.function(address).map(|function| function.name)
}

fn line(dump: &JitDump, address: u64) -> Option<(String, u32, u32)> {
    let line = dump.line(address)?;
    Some((line.file.to_owned(), line.line, line.discriminator))
}

#[test]
fn functions_have_names_bounds_code_and_lines_in_both_byte_orders() {
    for little in [true, false] {
        let mut writer = Writer::new(little);
        writer.lines(
            0x1000,
            &[
                (0x1000, 3, 0, b"demo.js"),
                (0x1004, 4, 9, b"\xff"),
                (0x1006, 1, 0, b"lib.js"),
            ],
        );
        writer.load(5, 0x1000, 0, "left", b"\x90\x90\x90\x90\x90\x90\x90\xc3");
        writer.record(4, 6, &[0; 24]);
        writer.record(99, 6, b"of a later version");
        writer.load(7, 0x2000, 1, "right", b"\xc3");
        writer.record(3, 8, &[]);
        let dump = writer.read();
        assert_eq!(dump.position() as usize, writer.bytes.len());
        let left = dump.function(0x1007).unwrap();
        assert_eq!(
            (left.name, left.start, left.end, left.entered),
            ("left", 0x1000, 0x1008, true)
        );
        assert_eq!(name(&dump, 0x1008), None);
        assert_eq!(name(&dump, 0x2000), Some("right"));
        assert_eq!(line(&dump, 0x1003), Some(("demo.js".into(), 3, 0)));
        assert_eq!(line(&dump, 0x1005), Some(("demo.js".into(), 4, 9)));
        assert_eq!(line(&dump, 0x1007), Some(("lib.js".into(), 1, 0)));
        assert_eq!(line(&dump, 0x2000), None);
        let (at, len) = dump.code(0x1002).unwrap();
        assert_eq!(
            &writer.bytes[at as usize..(at + len) as usize],
            b"\x90\x90\x90\x90\x90\x90\x90\xc3"
        );
        assert_eq!(
            (dump.pid(), dump.len(), dump.is_closed(), dump.dropped()),
            (Some(77), 2, true, 0)
        );
    }
}

#[test]
fn the_last_load_at_an_address_wins_by_its_time_not_by_its_place() {
    let mut writer = Writer::new(true);
    writer.load(20, 0x1000, 0, "new", &[0x90; 16]);
    writer.load(10, 0x1000, 1, "old", &[0x90; 32]);
    let dump = writer.read();
    assert_eq!(name(&dump, 0x1008), Some("new"));
    let old = dump.function(0x1018).unwrap();
    assert_eq!((old.name, old.entered), ("old", false));
    let mut writer = Writer::new(true);
    writer.load(10, 0x1000, 0, "old", &[0x90; 16]);
    writer.load(20, 0x1000, 1, "new", &[0x90; 16]);
    assert_eq!(name(&writer.read(), 0x1008), Some("new"));
}

#[test]
fn moved_code_keeps_its_name_and_lines_and_leaves_its_old_place() {
    let mut writer = Writer::new(true);
    writer.lines(0x1000, &[(0x1000, 3, 0, b"a.js"), (0x1008, 4, 0, b"a.js")]);
    writer.load(1, 0x1000, 42, "left", &[0x90; 16]);
    writer.relocate(2, 0x1000, 0x9000, 16, 42);
    writer.relocate(3, 0x1000, 0xa000, 16, 7);
    let dump = writer.read();
    assert_eq!(name(&dump, 0x1000), None);
    assert_eq!(name(&dump, 0x9000), Some("left"));
    assert_eq!(line(&dump, 0x9007), Some(("a.js".into(), 3, 0)));
    assert_eq!(line(&dump, 0x9008), Some(("a.js".into(), 4, 0)));
    // The second is of code that was never loaded.
    assert_eq!((name(&dump, 0xa000), dump.dropped()), (None, 1));
}

#[test]
fn lines_meant_for_an_elf_file_are_put_back_by_its_header() {
    let mut writer = Writer::new(true);
    writer.lines(0x1000, &[(0x1040, 3, 0, b"a.js"), (0x1048, 4, 0, b"a.js")]);
    writer.load(1, 0x1000, 0, "left", &[0x90; 16]);
    writer.lines(0x2000, &[(0x2000, 5, 0, b"a.js"), (0x2040, 6, 0, b"a.js")]);
    writer.load(1, 0x2000, 1, "long", &[0x90; 128]);
    let dump = writer.read();
    assert_eq!(line(&dump, 0x1007), Some(("a.js".into(), 3, 0)));
    assert_eq!(line(&dump, 0x1008), Some(("a.js".into(), 4, 0)));
    assert_eq!(line(&dump, 0x203f), Some(("a.js".into(), 5, 0)));
}

#[test]
fn a_file_that_is_still_written_is_read_on_wherever_it_was_cut() {
    let mut writer = Writer::new(true);
    writer.lines(0x1000, &[(0x1000, 3, 0, b"demo.js")]);
    writer.load(5, 0x1000, 0, "left", &[0x90; 8]);
    writer.load(6, 0x2000, 1, "right", &[0xc3; 8]);
    for cut in 0..writer.bytes.len() {
        for zeros in [0, 64] {
            let mut dump = JitDump::default();
            let mut half = writer.bytes[..cut].to_vec();
            // Zeros behind a whole record are a file made longer beforehand.
            if zeros == 0 || cut == 40 || cut == 0 {
                half.extend(vec![0; zeros]);
            }
            dump.read(&half).expect("half a file is no error");
            let position = dump.position() as usize;
            dump.read(writer.bytes.get(position..).unwrap_or(&[]))
                .expect("the rest");
            assert_eq!(dump.len(), 2, "cut at {cut}");
            assert_eq!(
                line(&dump, 0x1000),
                Some(("demo.js".into(), 3, 0)),
                "cut at {cut}"
            );
        }
    }
}

#[test]
fn what_is_no_jitdump_of_a_known_version_is_refused() {
    let read = |bytes: &[u8]| JitDump::default().read(bytes);
    assert_eq!(read(b"\x7fELF and so on"), Err(JitDumpError::NotJitDump));
    let mut writer = Writer::new(true);
    writer.bytes[4] = 2;
    assert_eq!(read(&writer.bytes), Err(JitDumpError::Version(2)));
    let mut writer = Writer::new(true);
    writer.record(0, 0, &[]);
    writer.bytes[44] = 15;
    assert_eq!(read(&writer.bytes), Err(JitDumpError::Damaged));
    let mut writer = Writer::new(true);
    writer.record(0, 0, b"too short for a load");
    writer.load(6, 0x2000, 1, "good", &[0xc3]);
    let dump = writer.read();
    assert_eq!((dump.dropped(), dump.len()), (1, 1));
}

#[test]
fn damaged_files_end_and_name_nothing_out_of_bounds() {
    let mut writer = Writer::new(true);
    writer.lines(
        0x1000,
        &[(0x1000, 3, 0, b"demo.js"), (0x1004, 4, 0, b"\xff")],
    );
    writer.load(5, 0x1000, 0, "left", &[0x90; 8]);
    writer.relocate(7, 0x1000, 0x3000, 8, 0);
    for at in 0..writer.bytes.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut bytes = writer.bytes.clone();
            bytes[at] = value;
            let mut dump = JitDump::default();
            let _ = dump.read(&bytes);
            for address in [0, 0x1000, 0x1007, 0x3000, u64::MAX] {
                let function = dump.function(address);
                assert!(function.is_none_or(|f| f.start <= address && address < f.end));
                dump.line(address);
                dump.code(address);
            }
        }
    }
}
