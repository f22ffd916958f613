//! `/tmp/perf-PID.map`: lines of `START SIZE name`, both in hexadecimal
//! (tools/perf/Documentation/jit-interface.txt in the kernel's tree).
//!
//! OpenJDK 25 writes the numbers with `0x`, others without; names may hold spaces.

use super::{JitFunction, MOST_FUNCTIONS, Names, overlay::Overlay};

/// Longest line that is waited for; a longer one is refused.
const LONGEST_LINE: usize = 64 << 10;

/// A perf map, read as far as it was written. Later lines are newer code.
#[derive(Debug, Default)]
pub struct PerfMap {
    position: u64,
    functions: Vec<(u64, u64, (u32, u32))>,
    names: Names,
    seen: Overlay,
    refused: u64,
    dropped: u64,
    /// Within a line that is too long.
    in_long_line: bool,
}

impl PerfMap {
    /// Where in the file the next bytes for [`PerfMap::read`] are.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Reads the whole lines of the bytes at [`PerfMap::position`], and says how many bytes that were; 0 when the
    /// line is not finished.
    pub fn read(&mut self, bytes: &[u8]) -> u64 {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n');
        let mut consumed = whole.map_or(0, |last| last + 1);
        for line in bytes[..consumed].split_inclusive(|byte| *byte == b'\n') {
            if std::mem::take(&mut self.in_long_line) {
                continue;
            }
            self.line(line);
        }
        if bytes.len() - consumed >= LONGEST_LINE {
            self.refused += u64::from(!self.in_long_line);
            self.in_long_line = true;
            consumed = bytes.len();
        }
        self.position += consumed as u64;
        consumed as u64
    }

    fn line(&mut self, line: &[u8]) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        let Some((start, size, name)) = entry(line) else {
            self.refused += 1;
            return;
        };
        // Labels have no size: they bound nothing and name nothing.
        let Some(end) = start.checked_add(size).filter(|end| *end > start) else {
            self.refused += u64::from(size != 0);
            return;
        };
        let room = self.functions.len() < MOST_FUNCTIONS;
        let Some(name) = room.then(|| self.names.keep(name)).flatten() else {
            self.dropped += 1;
            return;
        };
        let index = self.functions.len() as u32;
        self.functions.push((start, end, name));
        self.seen.put(start, end, 0, index);
    }

    /// The function at an address.
    pub fn function(&self, address: u64) -> Option<JitFunction<'_>> {
        let (seen, end, index) = self.seen.at(address)?;
        let (start, _, name) = *self.functions.get(index as usize)?;
        Some(JitFunction {
            name: self.names.get(name),
            start,
            end,
            entered: seen == start,
        })
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> usize {
        let functions = self.functions.capacity() * size_of::<(u64, u64, (u32, u32))>();
        functions + self.names.bytes() + self.seen.bytes()
    }

    /// Functions read so far.
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Whether no function was read.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Lines that are no entries.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Entries for which there was no room.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// Start, size and name of a line.
fn entry(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let word = |text: &[u8]| -> Option<usize> { text.iter().position(u8::is_ascii_whitespace) };
    let at = word(line)?;
    let start = number(&line[..at])?;
    let rest = line[at..].trim_ascii_start();
    let at = word(rest)?;
    let size = number(&rest[..at])?;
    let name = rest[at..].trim_ascii_start();
    (!name.is_empty()).then_some((start, size, name))
}

fn number(text: &[u8]) -> Option<u64> {
    let digits = text
        .strip_prefix(b"0x")
        .or(text.strip_prefix(b"0X"))
        .unwrap_or(text);
    // The standard library would take a sign.
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> PerfMap {
        let mut map = PerfMap::default();
        map.read(text.as_bytes());
        map
    }

    fn name(map: &PerfMap, address: u64) -> Option<&str> {
        map.function(address).map(|function| function.name)
    }

    #[test]
    fn numbers_are_hexadecimal_with_and_without_a_prefix_and_names_have_spaces() {
        let map = read(
            "7f0010 20 void Demo.left(int, long)\n0x7f0030 0x10 LazyCompile:*right /app.js:3\r\n\
             0X7F0040 8 last\n",
        );
        let left = JitFunction {
            name: "void Demo.left(int, long)",
            start: 0x7f_0010,
            end: 0x7f_0030,
            entered: true,
        };
        assert_eq!(map.function(0x7f_0010), Some(left.clone()));
        assert_eq!(map.function(0x7f_002f), Some(left));
        assert_eq!(name(&map, 0x7f_0030), Some("LazyCompile:*right /app.js:3"));
        assert_eq!(name(&map, 0x7f_0047), Some("last"));
        assert_eq!(map.function(0x7f_0048), None);
        assert_eq!(map.function(0x7f_000f), None);
        assert_eq!((map.len(), map.refused()), (3, 0));
    }

    #[test]
    fn later_code_covers_earlier_code_and_what_lost_its_beginning_has_none() {
        let map = read("1000 100 old\n1000 40 new\n10e0 100 next\n");
        assert_eq!(name(&map, 0x1010), Some("new"));
        let old = map.function(0x1050).unwrap();
        assert_eq!((old.name, old.entered, old.end), ("old", false, 0x10e0));
        assert_eq!(name(&map, 0x10f0), Some("next"));
        let first = read("1000 100 old\n1080 10 inside\n");
        let front = first.function(0x1010).unwrap();
        assert_eq!(
            (front.name, front.entered, front.end),
            ("old", true, 0x1080)
        );
    }

    #[test]
    fn lines_that_are_no_entries_are_counted_and_passed_over() {
        let text = "garbage\n1000 zz name\n1000 10\n+10 10 sign\n\n1ffffffffffffffff 1 long\n\
             ffffffffffffffff 2 wraps\n2000 0 label\n3000 10 good\n";
        let map = read(text);
        assert_eq!(map.refused(), 6);
        assert_eq!(map.len(), 1);
        assert_eq!(name(&map, 0x3008), Some("good"));
        assert_eq!(name(&map, 0x2000), None);
    }

    #[test]
    fn a_file_that_grows_is_read_on_from_the_last_whole_line() {
        let text = "1000 10 one\n2000 10 two\n3000 10 three\n";
        for cut in 0..text.len() {
            let mut map = PerfMap::default();
            map.read(&text.as_bytes()[..cut]);
            let position = map.position() as usize;
            assert!(position <= cut);
            map.read(&text.as_bytes()[position..]);
            assert_eq!((map.len(), map.refused()), (3, 0), "cut at {cut}");
            assert_eq!(map.position() as usize, text.len());
        }
        let mut half = PerfMap::default();
        assert_eq!(half.read(b"1000 10 unfinis"), 0);
        assert_eq!(half.function(0x1000), None);
    }

    #[test]
    fn a_line_without_end_is_refused_once_and_the_next_one_is_read() {
        let mut map = PerfMap::default();
        let long = vec![b'a'; LONGEST_LINE];
        assert_eq!(map.read(&long), LONGEST_LINE as u64);
        assert_eq!(map.read(&long), LONGEST_LINE as u64);
        map.read(b"rest\n1000 10 good\n");
        assert_eq!((map.refused(), map.len()), (1, 1));
        assert_eq!(name(&map, 0x1000), Some("good"));
    }

    #[test]
    fn more_functions_than_any_program_has_are_dropped_and_counted() {
        let mut map = PerfMap::default();
        for n in 0..MOST_FUNCTIONS + 5 {
            map.read(
                format!(
                    "{n:x} 1 f
"
                )
                .as_bytes(),
            );
        }
        assert_eq!((map.len(), map.dropped()), (MOST_FUNCTIONS, 5));
    }

    #[test]
    fn names_that_are_not_utf_8_or_too_long_are_cut_not_refused() {
        let mut map = PerfMap::default();
        map.read(b"1000 10 na\xffme\n");
        assert_eq!(name(&map, 0x1000), Some("na\u{fffd}me"));
        let long = format!("2000 10 {}\n", "x".repeat(5000));
        map.read(long.as_bytes());
        assert_eq!(name(&map, 0x2000).map(str::len), Some(4096));
    }
}
