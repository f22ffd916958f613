//! Memory without a name that a variable points to: `item_locks[3]` is the fourth of what `item_locks` points to, also where
//! only a library accesses it, which knows nothing of the variable.
//!
//! What variables pointed to was read while the program ran ([`AddressSpaces::memory`]). A variable tells of the first
//! object that it points to; of those behind it only where an allocation begins there that has room for a whole number of
//! them. It gives its name to what instructions say is of the same type, and its type where they say nothing; where they
//! say something else, it is not believed.

use std::{
    cell::{OnceCell, RefCell},
    collections::{BTreeSet, HashMap},
    ops::Range,
    rc::Rc,
    sync::Arc,
};

use symbolizer::TypeRef;

use super::{
    AccessedBy, ObjectKind, ObjectLayout, Resolver,
    resolver::{Resolved, has_members},
};
use crate::{
    access::{LineKey, LineSize, Place, SpaceId},
    heap::Chunk,
    module::LoadedModule,
};

/// Variables before an address that are asked whether what they point to reaches to it.
const MOST_ASKED: usize = 64;

/// A word of a module's variables, and where it pointed to.
struct Word {
    value: u64,
    module: Arc<LoadedModule>,
    svma: u64,
    pointed: OnceCell<Option<Rc<Pointed>>>,
}

/// What debug information says of a word that is a pointer.
struct Pointed {
    /// The variable, or the part of it, that is the pointer.
    name: String,
    is_reference: bool,
    module: Arc<LoadedModule>,
    ty: TypeRef,
    type_name: String,
    /// Bytes of the type, at least 2: anything may be behind a pointer to bytes.
    stride: u64,
}

impl Pointed {
    fn by(word: &Word) -> Option<Rc<Pointed>> {
        let elf = &word.module.elf;
        let variable = elf.object(word.svma).ok()?;
        let inside = word.svma.checked_sub(variable.address)?;
        let pointer = elf.pointer(variable.ty?, inside)?;
        let target = elf.layout(pointer.target).ok()?;
        Some(Rc::new(Pointed {
            name: format!("{}{}", variable.name, pointer.path),
            is_reference: pointer.is_reference,
            module: word.module.clone(),
            ty: pointer.target,
            type_name: target.type_name,
            stride: target.size.filter(|size| *size > 1)?,
        }))
    }
}

/// By where they point to.
#[derive(Default)]
pub(super) struct PointersOf(RefCell<HashMap<SpaceId, Rc<Vec<Word>>>>);

/// Objects of a type, one after the other.
struct Row {
    start: u64,
    /// How many there is room for.
    count: u64,
    pointed: Rc<Pointed>,
}

impl Row {
    fn end(&self) -> u64 {
        self.start
            .saturating_add(self.pointed.stride.saturating_mul(self.count))
    }
}

impl Resolver<'_> {
    /// Gives names to objects of a line of the heap that variables point to.
    pub(super) fn call_by_pointers(
        &self,
        key: LineKey,
        size: LineSize,
        by: &[AccessedBy],
        kind: ObjectKind,
        objects: &mut Vec<Resolved>,
    ) {
        let Place::Private { space, addr } = key.0 else {
            return;
        };
        let end = addr.saturating_add(size.bytes());
        for row in self.rows(space, addr..end, objects) {
            row.call(key, by, kind, objects);
        }
    }

    /// What variables point to that reaches to some addresses, the most telling first.
    fn rows(&self, space: SpaceId, addresses: Range<u64>, objects: &[Resolved]) -> Vec<Row> {
        let words = self.pointers_of(space);
        let before = words.partition_point(|word| word.value < addresses.end);
        let near = words[..before].iter().rev().take(MOST_ASKED);
        let mut rows: Vec<Row> = near
            .filter_map(|word| self.row(space, word, objects))
            .filter(|row| row.end() > addresses.start)
            .collect();
        rows.sort_by(|a, b| {
            let telling = |row: &Row| (std::cmp::Reverse(row.count), row.pointed.name.len());
            telling(a)
                .cmp(&telling(b))
                .then_with(|| a.pointed.name.cmp(&b.pointed.name))
        });
        rows
    }

    /// What a variable's word points to.
    fn row(&self, space: SpaceId, word: &Word, objects: &[Resolved]) -> Option<Row> {
        let pointed = word.pointed.get_or_init(|| Pointed::by(word)).as_ref()?;
        let of_chunk = || {
            let at = Chunk::size_at(word.value)?;
            let (_, size) = self.words_in(space, at..at + 1).next()?;
            let chunk = Chunk::of(word.value, size)?;
            Some((chunk.usable, chunk.rounding))
        };
        let starts_here = |object: &&Resolved| {
            object.name.allocation.is_some() && object.name.start == Some(word.value)
        };
        let followed = objects.iter().find(starts_here);
        let room = followed.map_or_else(of_chunk, |allocation| Some((allocation.name.size?, 0)));
        let room = room.filter(|(bytes, rounding)| {
            !pointed.is_reference && bytes % pointed.stride <= *rounding
        });
        Some(Row {
            start: word.value,
            count: room.map_or(1, |(bytes, _)| (bytes / pointed.stride).max(1)),
            pointed: pointed.clone(),
        })
    }

    /// Words that were read of a space's memory.
    fn words_in(&self, space: SpaceId, addresses: Range<u64>) -> impl Iterator<Item = (u64, u64)> {
        let stretches = self.spaces.memory(space, addresses);
        stretches.filter_map(|(at, bytes)| {
            let word = bytes.get(..8)?.try_into().ok()?;
            Some((at, u64::from_le_bytes(word)))
        })
    }

    /// All words of a space's variables that pointed into memory without a name.
    fn pointers_of(&self, space: SpaceId) -> Rc<Vec<Word>> {
        if let Some(known) = self.pointers.0.borrow().get(&space) {
            return known.clone();
        }
        let mut words = Vec::new();
        for mapping in self.spaces.code(space) {
            let opened = self
                .spaces
                .pid(space)
                .map(|pid| self.modules.open_to_name(pid, mapping));
            let Some(Ok(module)) = opened else { continue };
            for range in module.elf.writable() {
                let Some(addresses) = module.addresses(mapping, range) else {
                    continue;
                };
                for (at, value) in self.words_in(space, addresses) {
                    if let (true, Some(svma)) = (value != 0, module.svma(mapping, at)) {
                        words.push(Word {
                            value,
                            module: module.clone(),
                            svma,
                            pointed: OnceCell::new(),
                        });
                    }
                }
            }
        }
        words.sort_by_key(|word| (word.value, word.svma));
        let words = Rc::new(words);
        self.pointers.0.borrow_mut().insert(space, words.clone());
        words
    }
}

impl Row {
    /// Gives its name, and where nothing else is known its type, to the objects of a line that are of it.
    fn call(&self, key: LineKey, by: &[AccessedBy], kind: ObjectKind, objects: &mut Vec<Resolved>) {
        let line = key.0.position();
        let whole = self.start..self.end();
        let of_it: Vec<usize> = (0..objects.len())
            .filter(|&n| overlaps(&objects[n], line, &whole))
            .collect();
        let is_allocation = |n: &&usize| objects[**n].name.allocation.is_some();
        if let Some(&allocation) = of_it.iter().find(is_allocation) {
            self.call_allocation(&mut objects[allocation]);
            return;
        }
        if !of_it.iter().all(|&n| self.has(&objects[n])) {
            return;
        }
        let touched = by.iter().filter(|site| site.op.touches());
        let touched = touched.map(|site| line + u64::from(site.offset));
        let numbers: BTreeSet<u64> = touched
            .filter(|at| whole.contains(at))
            .map(|at| (at - self.start) / self.pointed.stride)
            .collect();
        for number in numbers {
            self.call_element(number, line, kind, objects);
        }
    }

    /// As [`Row::call`], of one of them.
    fn call_element(&self, number: u64, line: u64, kind: ObjectKind, objects: &mut Vec<Resolved>) {
        let stride = self.pointed.stride;
        let start = self.start + number * stride;
        let is_it = |object: &&mut Resolved| {
            (object.name.start, object.name.size) == (Some(start), Some(stride))
        };
        let Some(object) = objects.iter_mut().find(is_it) else {
            // Numbers that it is made of say less.
            objects.retain(|object| !overlaps(object, line, &(start..start + stride)));
            let mut object = self.one(kind, start);
            object.name.called = Some(self.element_name(number));
            object.name.is_reached = true;
            object.name.size = Some(stride);
            objects.push(object);
            return;
        };
        object.name.is_reached = true;
        // The source may come to the first of a row as to a single one.
        let is_own = |name: &str| number == 0 && name.strip_prefix('*') == Some(&self.pointed.name);
        let is_vague =
            |name: &String| !is_own(name) && (name.starts_with('*') || name.ends_with("[]"));
        if object.name.called.as_ref().is_none_or(is_vague) {
            object.name.called = Some(self.element_name(number));
            // What a library calls it, says less.
            object.parts.retain(|part| part.2.starts_with(['.', '[']));
        }
    }

    /// Whether an object that instructions told of is one of these, or a number in one.
    fn has(&self, object: &Resolved) -> bool {
        let (name, of) = (&object.name, &self.pointed);
        let Some((start, size)) = name.start.zip(name.size) else {
            return false;
        };
        let inside = start.wrapping_sub(self.start) % of.stride;
        if name.type_name.as_ref() == Some(&of.type_name) {
            return start >= self.start && inside == 0;
        }
        let has_parts = name.layout.as_ref().is_some_and(ObjectLayout::has_parts);
        !has_parts && name.name.is_none() && has_members(&of.module.elf, of.ty, inside, size)
    }

    /// How the source comes to all of it.
    fn name(&self) -> String {
        let name = &self.pointed.name;
        if self.count > 1 || self.pointed.is_reference {
            name.clone()
        } else {
            format!("*{name}")
        }
    }

    fn element_name(&self, number: u64) -> String {
        if self.count == 1 {
            self.name()
        } else {
            format!("{}[{number}]", self.pointed.name)
        }
    }

    /// One of these, without a name.
    fn one(&self, kind: ObjectKind, start: u64) -> Resolved {
        let of = &self.pointed;
        Resolved::of_type(&of.module, of.ty, &of.type_name, kind, Some(start))
    }

    /// Gives the name to an allocation that was seen and starts here, and the type where it has none.
    fn call_allocation(&self, object: &mut Resolved) {
        let name = &mut object.name;
        let type_name = self.pointed.type_name.as_str();
        let is_alike = name.type_name.as_ref().is_none_or(|told| {
            told.strip_prefix(type_name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(" ["))
        });
        if name.start != Some(self.start) || !is_alike || name.called.is_some() {
            return;
        }
        name.called = Some(self.name());
        if object.typed.is_some() || !object.parts.is_empty() {
            return;
        }
        let one = self.one(name.kind, self.start);
        object.typed = one.typed;
        (name.file, name.line) = (one.name.file, one.name.line);
        (name.type_name, name.layout) = (one.name.type_name, one.name.layout);
        if self.count > 1 {
            let (element, stride) = (name.type_name.take(), self.pointed.stride);
            name.type_name = Some(format!("{type_name} [{}]", self.count));
            name.layout = Some(ObjectLayout::row(
                element,
                stride,
                self.count,
                name.layout.take(),
            ));
            object.stride = Some(stride);
        }
    }
}

/// Whether an object of the line that begins at `line` lies in some addresses, as far as it is known where it lies.
fn overlaps(object: &Resolved, line: u64, addresses: &Range<u64>) -> bool {
    let parts = object.parts.iter().map(|part| line + u64::from(part.0));
    let start = object.name.start.or(parts.min());
    start.is_some_and(|start| {
        start < addresses.end && addresses.start < object.name.end().unwrap_or(start + 1)
    })
}
