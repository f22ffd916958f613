//! Names for heap memory: by whom it was allocated.

use super::{
    CodeName, Names as _, ObjectKind, ObjectLayout, ObjectName, Resolver, resolver::Resolved,
    source::is_library,
};
use crate::{
    access::{LineKey, LineSize, Place, SpaceId, Tid},
    heap::HeapObject,
};

/// Files of allocators and of the libraries that call them for others.
const RUNTIMES: [&str; 9] = [
    "libc.so",
    "libc-",
    "ld-musl-",
    "ld-linux",
    "libstdc++",
    "libc++",
    "libjemalloc",
    "libtcmalloc",
    "libmimalloc",
];

/// Functions whose callers ask for alignment.
const ALIGNING: [&str; 5] = [
    "aligned_alloc",
    "posix_memalign",
    "memalign",
    "valloc",
    "pvalloc",
];
/// Why they do, mostly: lines of caches, or pages.
const LINE: u64 = 64;

/// Functions that allocate for their callers, by how their names start.
const ALLOCATING: [&str; 14] = [
    "operator new",
    "std::",
    "alloc::",
    "core::",
    "<alloc::",
    "<core::",
    "<std::",
    "hashbrown::",
    "__gnu_cxx::",
    "__rust_",
    "__rdl_",
    "__rustc",
    "malloc",
    "calloc",
];

/// Where an object of the heap comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocationName {
    /// Bytes asked for.
    pub size: u64,
    /// It was surely alive in most of its accesses; else its free may have been missed.
    pub certain: bool,
    /// `malloc`, `operator new`, ..
    pub function: String,
    /// The calls that led to it, innermost first.
    pub stack: Vec<CodeName>,
    /// Which of them is the program's own: neither an allocator nor a language's library.
    pub own: Option<usize>,
    /// Thread that allocated it.
    pub tid: Tid,
    /// That thread's name, where it was seen.
    pub comm: Option<String>,
    /// When, CLOCK_MONOTONIC, nanoseconds.
    pub time_ns: u64,
}

impl AllocationName {
    /// The call in the program's own code.
    pub fn site(&self) -> Option<&CodeName> {
        self.stack.get(self.own?)
    }

    /// `malloc of 64 bytes at queue.c:31 (in make_queue)`.
    fn words(&self) -> String {
        let bytes = if self.size == 1 { "byte" } else { "bytes" };
        let what = format!("{} of {} {bytes}", self.function, self.size);
        let Some(site) = self.site() else {
            return what;
        };
        let symbol = site.symbol.as_deref().map(without_arguments);
        let place = site.file.as_deref().zip(site.line).map(|(file, line)| {
            let name = file.rsplit('/').next().unwrap_or(file);
            format!("{name}:{line}")
        });
        match (place, symbol) {
            (Some(place), Some(symbol)) => format!("{what} at {place} (in {symbol})"),
            (Some(place), None) => format!("{what} at {place}"),
            (None, Some(symbol)) => format!("{what} in {symbol}"),
            (None, None) => what,
        }
    }
}

impl Resolver<'_> {
    /// The allocations that were accessed on a line of this kind; none where the heap was not followed.
    pub(super) fn allocations(
        &self,
        key: LineKey,
        size: LineSize,
        kind: ObjectKind,
    ) -> Vec<ObjectName> {
        let (Some(heap), Some((space, addr))) = (self.heap, self.locate(key.0)) else {
            return Vec::new();
        };
        let found = heap.objects(space, addr, size.bytes());
        // What is shared has one place, and an address in each process.
        let moved = key.0.position().wrapping_sub(addr);
        // A file says more than the call that mapped it, but for the one that stands for memory of its own.
        let file = self.place_name(key.0, kind, None);
        let file = file.filter(|file| !file.starts_with("/dev/zero+"));
        let named = found.iter().filter_map(|object| {
            let named = self.allocated(space, object)?;
            Some(ObjectName {
                kind,
                name: file.clone().or(named.name),
                start: named.start.map(|start| start.wrapping_add(moved)),
                ..named
            })
        });
        named.collect()
    }

    /// The kind of a line that is `kind` by what the kernel told of mappings: it tells nothing of `mremap`, which may put
    /// pages where nothing is known or where a file was.
    pub(super) fn remapped(&self, key: LineKey, size: LineSize, kind: ObjectKind) -> ObjectKind {
        let (Some(heap), Place::Private { space, addr }) = (self.heap, key.0) else {
            return kind;
        };
        if !matches!(kind, ObjectKind::Mapping | ObjectKind::Unknown) {
            return kind;
        }
        let told = self
            .spaces
            .mapping(space, addr)
            .map(|mapping| mapping.start);
        let is_newer = |object: &HeapObject| object.is_mapping && Some(object.addr) != told;
        if heap.objects(space, addr, size.bytes()).iter().any(is_newer) {
            ObjectKind::Heap
        } else {
            kind
        }
    }

    /// The objects of a line of the heap, or of mapped memory: its allocations, with the types that instructions told of them; where the heap was
    /// not followed, what instructions told alone.
    pub(super) fn allocated_objects(
        &self,
        key: LineKey,
        size: LineSize,
        kind: ObjectKind,
        typed: Vec<Resolved>,
    ) -> Vec<Resolved> {
        let allocations = self.allocations(key, size, kind).into_iter();
        let mut objects: Vec<Resolved> = allocations.map(Resolved::untyped).collect();
        let mut apart: Vec<Resolved> = Vec::new();
        let mut inside: Vec<Vec<Resolved>> = objects.iter().map(|_| Vec::new()).collect();
        let line = key.0.position();
        for told in typed {
            let first = told.parts.iter().map(|part| line + u64::from(part.0)).min();
            let start = told.name.start.or(first);
            let end = told.name.end().or(start);
            let holds = |object: &Resolved| {
                let range = object.name.start.zip(object.name.end());
                range
                    .zip(start.zip(end))
                    .is_some_and(|((from, to), (start, end))| from <= start && end <= to)
            };
            match objects.iter().position(holds) {
                // An array starts where the allocation does: else a constant offset led into something larger.
                Some(index) if told.concluded && !is_element(&objects[index], &told) => {}
                Some(index) => inside[index].push(told),
                None => apart.push(told),
            }
        }
        for (object, told) in objects.iter_mut().zip(inside) {
            give_type(object, told);
        }
        objects.extend(apart);
        objects
    }

    /// `None` for pages that an allocator or libc maps for itself: what lies in them is not the program's mapping.
    fn allocated(&self, space: SpaceId, object: &HeapObject) -> Option<ObjectName> {
        let stack: Vec<CodeName> = (object.stack.iter().skip(1))
            // The call before the return address.
            .map(|ip| self.code(Some(space), ip.saturating_sub(1), false))
            .collect();
        if object.is_mapping && stack.first().is_some_and(is_of_runtime) {
            return None;
        }
        let own = stack.iter().position(|frame| !is_runtime(frame));
        let inner = &stack[..own.unwrap_or(stack.len())];
        // What the program called: `operator new` rather than the malloc that it calls.
        let operator = inner.iter().rev().find_map(|frame| {
            let symbol = frame.symbol.as_deref()?;
            symbol.starts_with("operator new").then_some(symbol)
        });
        let function = match operator {
            Some(operator) => Some(operator.to_owned()),
            None => object
                .stack
                .first()
                .and_then(|ip| self.code(Some(space), *ip, false).symbol),
        };
        let function = function
            .as_deref()
            .map_or("an allocation", without_arguments);
        let function = public_name(function);
        let allocation = AllocationName {
            size: object.size,
            certain: object.is_certain(),
            function: function.to_owned(),
            own,
            tid: object.tid,
            comm: self.thread(object.tid).comm,
            time_ns: object.since_ns,
            stack,
        };
        Some(ObjectName {
            kind: ObjectKind::Heap,
            name: Some(allocation.words()),
            start: Some(object.addr),
            size: Some(object.size),
            alignment: asked_alignment(function, object.addr),
            language: allocation.site().and_then(|site| site.language),
            allocation: Some(allocation),
            ..ObjectName::default()
        })
    }
}

/// Bytes that memory starts at a multiple of because its function was asked for it. How many it was asked for is not known, but
/// that a start of a line is no chance.
fn asked_alignment(function: &str, addr: u64) -> Option<u64> {
    let is_asked = ALIGNING.contains(&function) && addr.is_multiple_of(LINE);
    is_asked.then_some(LINE)
}

/// Whether an object is one of those that an allocation has room for, one behind the other.
fn is_element(allocation: &Resolved, told: &Resolved) -> bool {
    let from = allocation.name.start.zip(told.name.start);
    let size = told.name.size.filter(|size| *size > 0);
    from.zip(size).is_some_and(|((from, start), size)| {
        start
            .checked_sub(from)
            .is_some_and(|inside| inside.is_multiple_of(size))
    })
}

/// Gives an allocation the type of what was told to be inside of it: of the whole, or of its elements where several of
/// them were seen. A part that begins elsewhere (behind an allocator's or a language's header) gives names to its own
/// bytes only.
fn give_type(object: &mut Resolved, told: Vec<Resolved>) {
    let (Some(start), Some(size)) = (object.name.start, object.name.size) else {
        return;
    };
    if let Some(first) = told.first() {
        let bytes = first.name.size.unwrap_or(0);
        let same = |other: &Resolved| {
            (&other.name.type_name, other.name.size) == (&first.name.type_name, first.name.size)
                && other
                    .name
                    .start
                    .is_some_and(|at| bytes > 0 && (at - start).is_multiple_of(bytes))
        };
        if told.iter().all(same) {
            let layout = first.name.layout.clone();
            if told.len() > 1 && size.is_multiple_of(bytes) {
                let count = size / bytes;
                let type_name = first.name.type_name.clone();
                object.name.type_name = type_name.as_ref().map(|name| format!("{name} [{count}]"));
                object.name.layout = Some(ObjectLayout::row(type_name, bytes, count, layout));
                object.stride = Some(bytes);
                object.name.alignment = object.name.alignment.max(first.name.alignment);
                object.typed.clone_from(&first.typed);
            } else if first.name.start == Some(start) {
                object.name.type_name.clone_from(&first.name.type_name);
                object.name.layout = layout;
                object.name.alignment = object.name.alignment.max(first.name.alignment);
                object.typed.clone_from(&first.typed);
            }
        }
    }
    object.name.called = match told.as_slice() {
        [only] => only.name.called.clone(),
        _ => None,
    };
    object.parts = told.into_iter().flat_map(|told| told.parts).collect();
}

/// The name that programs call a function of libc by: debug information has its inner one.
fn public_name(function: &str) -> &str {
    let plain = function.strip_prefix("__GI_").unwrap_or(function);
    let plain = plain.strip_prefix("__libc_").unwrap_or(plain);
    if plain.ends_with("mmap64") {
        // With 64-bit offsets, as all of them are on 64-bit machines, both are one function.
        "mmap"
    } else if plain.starts_with("__") && !plain.contains(':') {
        let plain = plain.trim_start_matches('_');
        plain.strip_prefix("libc_").unwrap_or(plain)
    } else {
        plain
    }
}

/// Whether a frame is in the file of an allocator or of a language's library.
fn is_of_runtime(frame: &CodeName) -> bool {
    frame.module.as_deref().is_some_and(is_runtime_file)
}

/// Whether a file is one of an allocator or of a language's library.
pub(super) fn is_runtime_file(module: &str) -> bool {
    let name = module.rsplit('/').next().unwrap_or(module);
    RUNTIMES.iter().any(|runtime| name.starts_with(runtime))
}

/// Whether a frame allocates for its caller.
fn is_runtime(frame: &CodeName) -> bool {
    let of_library = |file: &String| is_library(file);
    is_of_runtime(frame)
        || frame.file.as_ref().is_some_and(of_library)
        || frame.file.is_none()
            && (frame.symbol.as_deref())
                .is_some_and(|symbol| ALLOCATING.iter().any(|name| symbol.starts_with(name)))
}

/// `operator new(unsigned long)` without what is in parentheses; a name that starts with one stays.
fn without_arguments(symbol: &str) -> &str {
    match symbol.find('(') {
        Some(at) if at > 0 => &symbol[..at],
        _ => symbol,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(module: &str, symbol: &str, file: Option<&str>) -> CodeName {
        CodeName {
            module: Some(module.to_owned()),
            symbol: Some(symbol.to_owned()),
            file: file.map(str::to_owned),
            line: file.map(|_| 31),
            ..CodeName::default()
        }
    }

    #[test]
    fn only_functions_that_are_asked_for_alignment_keep_a_start_with_a_line() {
        assert_eq!(asked_alignment("aligned_alloc", 0x5000), Some(64));
        assert_eq!(asked_alignment("posix_memalign", 0x5040), Some(64));
        assert_eq!(asked_alignment("aligned_alloc", 0x5020), None);
        assert_eq!(asked_alignment("malloc", 0x5040), None);
    }

    #[test]
    fn allocators_and_libraries_allocate_for_others_and_programs_for_themselves() {
        for (module, symbol, file) in [
            (
                "/lib/x86_64-linux-gnu/libstdc++.so.6",
                "operator new(unsigned long)",
                None,
            ),
            ("/lib/libjemalloc.so.2", "x", None),
            ("/a/prog", "alloc::alloc::exchange_malloc", None),
            (
                "/a/prog",
                "f",
                Some("/usr/include/c++/12/bits/new_allocator.h"),
            ),
            (
                "/a/prog",
                "f",
                Some("/rustc/abc/library/alloc/src/vec/mod.rs"),
            ),
        ] {
            assert!(
                is_runtime(&frame(module, symbol, file)),
                "{module} {symbol}"
            );
        }
        for (module, symbol, file) in [
            ("/a/prog", "make_queue", Some("/src/queue.c")),
            ("/a/prog", "make_queue", None),
            ("/a/libcurl.so", "curl_easy_init", None),
        ] {
            let frame = frame(module, symbol, file);
            assert!(
                !is_runtime(&frame) && !is_of_runtime(&frame),
                "{module} {symbol}"
            );
        }
    }

    #[test]
    fn inner_names_of_libc_are_called_as_programs_call_them() {
        for (inner, public) in [
            ("malloc", "malloc"),
            ("__GI___libc_malloc", "malloc"),
            ("__libc_calloc", "calloc"),
            ("__posix_memalign", "posix_memalign"),
            ("___libc_free", "free"),
            ("operator new", "operator new"),
            ("mi_malloc", "mi_malloc"),
            ("__mmap64", "mmap"),
            ("__munmap", "munmap"),
            ("_rjem_malloc", "_rjem_malloc"),
        ] {
            assert_eq!(public_name(inner), public);
        }
    }

    #[test]
    fn an_allocation_is_called_by_its_function_its_size_and_its_place() {
        let mut name = AllocationName {
            size: 64,
            certain: true,
            function: "malloc".to_owned(),
            stack: vec![frame("/a/prog", "make_queue(int)", Some("/src/queue.c"))],
            own: Some(0),
            tid: Tid(1),
            comm: None,
            time_ns: 0,
        };
        assert_eq!(
            name.words(),
            "malloc of 64 bytes at queue.c:31 (in make_queue)"
        );
        name.stack[0].file = None;
        assert_eq!(name.words(), "malloc of 64 bytes in make_queue");
        name.own = None;
        name.size = 1;
        assert_eq!(name.words(), "malloc of 1 byte");
    }
}
