//! What the advice on layouts tells to write, put into sources: the compilers of each language must take it, and what shared a
//! line must not do so any more. On made-up structs of members of all kinds, used in made-up ways.

mod c;
mod go;
mod java;
mod rust;

use std::{
    collections::BTreeMap, fs, ops::Bound, os::unix::fs::MetadataExt as _, path::Path,
    process::Command, sync::Arc,
};

use cohtrace::{
    access::{LineKey, LineSize, Pid, Place, SpaceId},
    event::{Context, ContextKind, Mapping},
    hint::{self, Advice, Field, Proposal, Scene, Sharing, Unit},
    module::ModuleStore,
    names::{Names as _, ObjectName, Resolver},
    space::AddressSpaces,
};

use super::succeed;

/// Where files that have no address of their own are taken to be mapped.
const BASE: u64 = 0x1_0000_0000;

/// Whether a compiler is there; says so loudly where not.
fn has(program: &str, version: &str) -> bool {
    let found = super::has(program, version);
    if !found {
        cohtrace_tests::live::skipped_core(format_args!(
            "no {program}: what is advised for its language is not compiled"
        ));
    }
    found
}

/// A built file, mapped nowhere but in the books.
struct Built {
    spaces: AddressSpaces,
    space: SpaceId,
    modules: ModuleStore,
    symbols: BTreeMap<String, u64>,
}

impl Built {
    /// `base` is what the file's first address is.
    fn at(path: &Path, base: u64) -> Built {
        let path = path.canonicalize().expect("just built");
        let metadata = fs::metadata(&path).expect("just built");
        let pid = Pid(std::process::id());
        let dev = metadata.dev();
        let mapping = Mapping {
            start: base,
            len: 1 << 30,
            file_offset: 0,
            dev: u64::from(libc::major(dev)) << 32 | u64::from(libc::minor(dev)),
            inode: metadata.ino(),
            shared: false,
            executable: true,
            writable: true,
            name: path.to_string_lossy().into_owned(),
            build_id: None,
            stamp: None,
        };
        let mut spaces = AddressSpaces::default();
        let mapping = Arc::new(mapping);
        spaces.apply(&Context {
            time_ns: 0,
            kind: ContextKind::Mapping { pid, mapping },
        });
        let space = spaces.space(pid);
        let listed = succeed(Command::new("nm").arg(&path));
        let symbols = listed.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            Some((words.nth(1)?.to_owned(), address))
        });
        Built {
            spaces,
            space,
            modules: ModuleStore::new("/".into(), true),
            symbols: symbols.collect(),
        }
    }

    /// The variable of this symbol, taken to start this many bytes into a line.
    fn variable(&self, symbol: &str, bias: u64) -> ObjectName {
        let address = self.symbols[symbol] + bias;
        let names = Resolver::new(&self.spaces, &self.modules);
        let place = Place::Private {
            space: self.space,
            addr: address,
        };
        let objects = names.objects(place.line(LineSize::B64), LineSize::B64, &[]);
        let holds = |object: &&ObjectName| object.start == Some(address);
        let object = objects.iter().find(holds);
        object
            .unwrap_or_else(|| panic!("no {symbol} in {objects:?}"))
            .clone()
    }
}

/// Numbers that look random and are the same in every run (xorshift64*, Vigna 2016).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Who uses a member: a thread that stores, readers, or nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum By {
    Writer(usize),
    Readers,
    Nobody,
}

/// One line of an object, used in a made-up way.
struct Used {
    object: ObjectName,
    line: LineKey,
    units: Vec<Unit>,
    /// By the members' names, those on the line only.
    by: BTreeMap<String, By>,
}

impl Used {
    /// Draws who uses the members on one of the object's lines.
    fn draw(object: ObjectName, numbers: &mut Numbers) -> Used {
        let start = object.start.expect("its place is known");
        let layout = object.layout.clone().expect("its type is known");
        let lines = layout.size.div_ceil(64).max(1) as usize;
        let line = (start & !63) + 64 * numbers.below(lines) as u64;
        let mut by = BTreeMap::new();
        let mut pieces: BTreeMap<usize, Vec<(u8, u16)>> = BTreeMap::new();
        let mut fields: BTreeMap<usize, Vec<Field>> = BTreeMap::new();
        for member in &layout.members {
            let first = (start + member.offset).max(line);
            let end = (start + member.offset + member.size).min(line + 64);
            if first >= end {
                continue;
            }
            let used = match numbers.below(5) {
                n @ 0..=1 => By::Writer(n),
                2 => By::Readers,
                _ => By::Nobody,
            };
            by.insert(member.name.clone(), used);
            let unit = match used {
                By::Writer(n) => n,
                By::Readers => 2,
                By::Nobody => continue,
            };
            let piece = ((first - line) as u8, (end - first) as u16);
            pieces.entry(unit).or_default().push(piece);
            fields.entry(unit).or_default().push(Field {
                object: Some(0),
                label: Some(format!(".{}", member.name)),
            });
        }
        let units = pieces.into_iter().map(|(unit, pieces)| Unit {
            pieces,
            fields: fields.remove(&unit).unwrap_or_default(),
            writers: usize::from(unit < 2),
            readers: if unit < 2 { 0 } else { 2 },
            code: vec!["worker.c:1".to_owned()],
        });
        let place = Place::Private {
            space: SpaceId(0),
            addr: line,
        };
        Used {
            units: units.collect(),
            object,
            line: LineKey(place),
            by,
        }
    }

    fn ask<R>(&self, ask: impl FnOnce(&Scene<'_>) -> R) -> R {
        ask(&Scene {
            sharing: Sharing::False,
            line: self.line,
            line_size: LineSize::B64,
            objects: std::slice::from_ref(&self.object),
            units: &self.units,
            language: None,
            words: &[],
            processes: 1,
            many: None,
        })
    }

    fn advice(&self) -> Advice {
        self.ask(hint::advise)
    }

    fn proposal(&self) -> Option<Proposal> {
        self.ask(|scene| hint::propose(scene, 0))
    }

    /// Pairs of members that should not share a line.
    fn apart(&self) -> impl Iterator<Item = (&str, &str)> {
        self.by.iter().flat_map(|(a, by_a)| {
            let others = self
                .by
                .range::<String, _>((Bound::Excluded(a), Bound::Unbounded));
            let apart = others.filter(move |(_, by_b)| {
                by_a != *by_b && *by_a != By::Nobody && **by_b != By::Nobody
            });
            apart.map(|(b, _)| (a.as_str(), b.as_str()))
        })
    }

    /// Members that should not share a line and do so where the object starts at one of `starts`; `place` tells where a
    /// member is, and how large.
    fn conflict(
        &self,
        starts: &(impl Iterator<Item = u64> + Clone),
        place: impl Fn(&str) -> (u64, u64),
    ) -> Option<(&str, &str)> {
        self.apart().find(|(a, b)| {
            let ((at_a, bytes_a), (at_b, bytes_b)) = (place(a), place(b));
            starts.clone().any(|start| {
                let lines =
                    |at: u64, bytes: u64| ((start + at) / 64, (start + at + bytes - 1) / 64);
                let (a, b) = (lines(at_a, bytes_a), lines(at_b, bytes_b));
                a.0 <= b.1 && b.0 <= a.1
            })
        })
    }
}

/// The code of an advice: lines that are indented.
fn code(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("    "));
    lines.map(str::to_owned).collect()
}

/// Checks that hold for every text.
fn assert_sane(text: &str, foreign: &[&str]) {
    for word in foreign {
        assert!(!text.contains(word), "{word} in {text}");
    }
    for line in code(text) {
        assert!(!line.replace("...", "").contains(".."), "{line} in {text}");
    }
    for words in text.split("grows from ").skip(1) {
        let numbers: Vec<&str> = words.split(' ').collect();
        assert_ne!(numbers[0], numbers[2], "an empty sentence: {text}");
    }
}
