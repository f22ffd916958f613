//! The answering side of [`Names`]: address spaces, modules and kernel symbols.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use symbolizer::{Frame, Missing, Module, TypeRef};

use super::{
    CodeName, ElementLayout, FieldName, Language, MemberLayout, Names, ObjectKind, ObjectLayout,
    ObjectName, ThreadName,
};
use crate::{
    access::{LineKey, LineSize, Place, SpaceId, Tid},
    event::Mapping,
    heap::HeapIndex,
    module::{LoadedModule, ModuleStore},
    space::AddressSpaces,
};

/// How many mappings below an anonymous one may belong to the module whose zero-initialised data it
/// holds: text, read-only data, relocated data, data.
const MODULE_MAPPINGS: usize = 6;

/// An object with what it takes to name its parts.
struct Resolved {
    name: ObjectName,
    typed: Option<(Arc<LoadedModule>, TypeRef)>,
}

/// Answers from recorded or live context.
pub struct Resolver<'a> {
    pub(super) heap: Option<&'a HeapIndex>,
    spaces: &'a AddressSpaces,
    modules: &'a ModuleStore,
    objects: RefCell<HashMap<LineKey, Arc<Vec<Resolved>>>>,
    missing: RefCell<BTreeMap<(String, String), u64>>,
}

impl<'a> Resolver<'a> {
    /// Nothing named yet.
    pub fn new(spaces: &'a AddressSpaces, modules: &'a ModuleStore) -> Resolver<'a> {
        Resolver {
            heap: None,
            spaces,
            modules,
            objects: RefCell::default(),
            missing: RefCell::default(),
        }
    }

    /// Names heap memory by its allocations.
    #[must_use]
    pub fn with_heap(self, heap: &'a HeapIndex) -> Resolver<'a> {
        Resolver {
            heap: Some(heap),
            ..self
        }
    }

    fn miss(&self, module: &str, reason: &impl ToString) {
        let key = (module.to_owned(), reason.to_string());
        *self.missing.borrow_mut().entry(key).or_default() += 1;
    }

    /// A space and virtual address of a place.
    fn locate(&self, place: Place) -> Option<(SpaceId, u64)> {
        match place {
            Place::Private { space, addr } => Some((space, addr)),
            Place::Shared { .. } => self.spaces.find_shared(place),
            Place::Kernel { .. } => None,
        }
    }

    fn resolve(&self, key: LineKey, size: LineSize) -> Arc<Vec<Resolved>> {
        if let Some(known) = self.objects.borrow().get(&key) {
            return known.clone();
        }
        let mut found: Vec<Resolved> = Vec::new();
        // Mappings are cut at pages, so a whole line is in one module or in none.
        let data = self
            .locate(key.0)
            .and_then(|(space, addr)| self.module_data(space, addr));
        if let Some((module, line)) = &data {
            let first = key.0.position();
            let mut offset = 0;
            while offset < size.bytes() {
                let mut next = offset + 1;
                if let Some(object) =
                    self.variable(module, line.wrapping_add(offset), first + offset)
                {
                    next = object
                        .name
                        .end()
                        .map_or(next, |end| end.saturating_sub(first))
                        .max(next);
                    found.push(object);
                }
                offset = next;
            }
        }
        if found.is_empty() {
            let kind = self.kind(key.0, data.as_ref());
            if kind == ObjectKind::Heap {
                let allocated = self.allocations(key, size).into_iter();
                found.extend(allocated.map(|name| Resolved { name, typed: None }));
            }
        }
        if found.is_empty() {
            let kind = self.kind(key.0, data.as_ref());
            let name = ObjectName {
                kind,
                name: self.mapping_name(key.0, kind),
                ..ObjectName::default()
            };
            found.push(Resolved { name, typed: None });
        }
        let found = Arc::new(found);
        self.objects.borrow_mut().insert(key, found.clone());
        found
    }

    /// The module's variable at an address, if there is one; `position` is the address in the numbering
    /// of the variable's place.
    fn variable(&self, module: &Arc<LoadedModule>, svma: u64, position: u64) -> Option<Resolved> {
        let object = match module.elf.object(svma) {
            Ok(object) => object,
            Err(reason) => {
                if reason != Missing::NotCovered {
                    self.miss(&module.path, &reason);
                }
                return None;
            }
        };
        let inside = svma.checked_sub(object.address)?;
        if object.ty.is_none() {
            self.miss(&module.path, &Missing::NoDebugInfo);
        }
        let layout = object.ty.and_then(|ty| layout(&module.elf, ty));
        let name = ObjectName {
            kind: ObjectKind::Global,
            name: Some(object.name),
            type_name: object.type_name,
            file: object.file.as_deref().map(source_path),
            line: object.line,
            start: position.checked_sub(inside),
            size: object.size,
            language: object.language.and_then(language),
            layout,
            allocation: None,
        };
        Some(Resolved {
            name,
            typed: object.ty.map(|ty| (module.clone(), ty)),
        })
    }

    /// The module whose data an address is: by its own mapping, or for zero-initialised data (which the
    /// kernel maps as anonymous memory after the file's) by the nearest file mapping below.
    fn module_data(&self, space: SpaceId, addr: u64) -> Option<(Arc<LoadedModule>, u64)> {
        let mapping = self.spaces.mapping(space, addr)?;
        if !mapping.is_file() && (mapping.shared || mapping.inode != 0) {
            return None;
        }
        let below: Vec<&Arc<Mapping>> = self
            .spaces
            .mappings(space)
            .take_while(|m| m.start <= addr)
            .collect();
        let nearest = below
            .iter()
            .rev()
            .take(MODULE_MAPPINGS)
            .find(|m| m.is_file())?;
        // Two data segments may share a page of the file, so only the code's mapping tells the bias.
        let of_file = |m: &&&Arc<Mapping>| (m.dev, m.inode) == (nearest.dev, nearest.inode);
        let code = below
            .iter()
            .rev()
            .filter(of_file)
            .find(|m| m.executable)
            .unwrap_or(nearest);
        let module = self.modules.open(self.spaces.pid(space)?, code).ok()?;
        let svma = module.svma(code, addr)?;
        Some((module, svma))
    }

    /// Kind of the memory at a place that no named variable covers; `data` is its module, if any.
    fn kind(&self, place: Place, data: Option<&(Arc<LoadedModule>, u64)>) -> ObjectKind {
        let (space, addr) = match place {
            Place::Kernel { .. } => return ObjectKind::Kernel,
            Place::Shared { .. } => return ObjectKind::Mapping,
            Place::Private { space, addr } => (space, addr),
        };
        if data.is_some_and(|(module, svma)| module.elf.memory().contains(svma)) {
            return ObjectKind::Global;
        }
        match self.spaces.mapping(space, addr) {
            None => ObjectKind::Unknown,
            Some(mapping) if mapping.is_file() => ObjectKind::Mapping,
            Some(mapping) => self.anonymous(space, addr, mapping),
        }
    }

    /// The path or label of what is mapped at a place, unless that is nobody's in particular.
    fn mapping_name(&self, place: Place, kind: ObjectKind) -> Option<String> {
        let (space, addr) = self.locate(place)?;
        let mapping = self.spaces.mapping(space, addr)?;
        let named = mapping.is_file() && kind == ObjectKind::Mapping;
        named.then(|| mapping.name.clone())
    }

    fn anonymous(&self, space: SpaceId, addr: u64, mapping: &Mapping) -> ObjectKind {
        if mapping.name.starts_with("[heap]") {
            return ObjectKind::Heap;
        }
        let pid = self.spaces.pid(space);
        let own_threads = || self.spaces.threads().filter(|(_, t)| Some(t.pid) == pid);
        // On x86-64 a thread's static local storage lies just below its thread pointer ("ELF Handling
        // For Thread-Local Storage", variant II).
        let storage = self.local_storage_size(space);
        let in_storage = |tp: u64| addr < tp && tp - addr <= storage;
        if own_threads().any(|(_, t)| t.tp.is_some_and(in_storage)) {
            return ObjectKind::Tls;
        }
        let stack = mapping.name.starts_with("[stack")
            || own_threads().any(|(_, t)| t.sp.is_some_and(|sp| mapping.contains(sp)));
        if stack {
            ObjectKind::Stack
        } else {
            ObjectKind::Heap
        }
    }

    /// Bytes of static thread-local storage of a space's modules, for each of its threads.
    fn local_storage_size(&self, space: SpaceId) -> u64 {
        let Some(pid) = self.spaces.pid(space) else {
            return 0;
        };
        let code = self
            .spaces
            .mappings(space)
            .filter(|m| m.is_file() && m.executable);
        code.filter_map(|m| self.modules.open(pid, m).ok())
            .filter_map(|module| module.elf.thread_local_segment())
            .map(|(size, _)| size)
            .sum()
    }
}

impl Names for Resolver<'_> {
    fn objects(&self, key: LineKey, size: LineSize) -> Vec<ObjectName> {
        self.resolve(key, size)
            .iter()
            .map(|r| r.name.clone())
            .collect()
    }

    fn field(&self, key: LineKey, size: LineSize, offset: u8, bytes: u16) -> Option<FieldName> {
        let objects = self.resolve(key, size);
        let position = key.0.position() + u64::from(offset);
        let (object, resolved) = objects.iter().enumerate().find(|(_, r)| {
            r.name.start.is_some_and(|start| start <= position)
                && r.name.end().is_some_and(|end| position < end)
        })?;
        let path = resolved.typed.as_ref().and_then(|(module, ty)| {
            let inside = position - resolved.name.start?;
            match module.elf.field(*ty, inside, u64::from(bytes)) {
                Ok(field) => Some(field.path).filter(|p| !p.is_empty()),
                Err(reason) => {
                    self.miss(&module.path, &reason);
                    None
                }
            }
        });
        Some(FieldName { object, path })
    }

    fn address(&self, key: LineKey) -> Option<u64> {
        match key.0 {
            Place::Kernel { addr } => Some(addr),
            place => self.locate(place).map(|(_, addr)| addr),
        }
    }

    fn code(&self, space: Option<SpaceId>, ip: u64, kernel: bool) -> CodeName {
        if kernel {
            let symbol = self
                .modules
                .kernel()
                .and_then(|k| k.function(ip))
                .map(|(_, _, n)| n.to_owned());
            if symbol.is_none() {
                self.miss("[kernel]", &Missing::NoSymbols);
            }
            return CodeName {
                module: Some("[kernel]".into()),
                ip,
                symbol,
                ..CodeName::default()
            };
        }
        let unnamed = CodeName {
            ip,
            ..CodeName::default()
        };
        let Some(space) = space else { return unnamed };
        let Some(mapping) = self.spaces.mapping(space, ip) else {
            return unnamed;
        };
        let Some(pid) = self.spaces.pid(space) else {
            return unnamed;
        };
        let module_name = Some(mapping.name.clone()).filter(|n| !n.is_empty());
        let module = match self.modules.open(pid, mapping) {
            Ok(module) => module,
            Err(reason) => {
                self.miss(
                    module_name.as_deref().unwrap_or("code without a file"),
                    &reason,
                );
                return CodeName {
                    module: module_name,
                    ..unnamed
                };
            }
        };
        let Some(svma) = module.svma(mapping, ip) else {
            return CodeName {
                module: module_name,
                ..unnamed
            };
        };
        let code = module.elf.frames(svma);
        if let Some(reason) = &code.missing {
            self.miss(&module.path, reason);
        }
        let mut frames = code.frames;
        let file = |frame: &Frame| frame.file.as_deref().is_some_and(|path| !is_library(path));
        let place = frames
            .iter()
            .find(|frame| file(frame))
            .or(frames.first())
            .cloned();
        let outer = frames.pop();
        CodeName {
            module: module_name,
            build_id: module.build_id(),
            ip: svma,
            symbol: outer
                .and_then(|f| f.function)
                .map(|f| f.to_string())
                .or(code.symbol.ok().map(|s| s.to_string())),
            inlined: frames
                .into_iter()
                .filter_map(|f| f.function)
                .map(|f| f.to_string())
                .collect(),
            file: place
                .as_ref()
                .and_then(|f| f.file.as_deref())
                .map(source_path),
            line: place.as_ref().and_then(|f| f.line),
            column: place.as_ref().and_then(|f| f.column),
            language: module.elf.language(svma).and_then(language),
        }
    }

    fn thread(&self, tid: Tid) -> ThreadName {
        ThreadName {
            comm: self.spaces.thread(tid).and_then(|t| t.comm.clone()),
        }
    }

    fn caveats(&self) -> Vec<String> {
        self.missing
            .borrow()
            .iter()
            .map(|((module, reason), count)| {
                let addresses = if *count == 1 { "address" } else { "addresses" };
                format!("{count} {addresses} in {module}: {reason}")
            })
            .collect()
    }
}

/// Whether a source file is a language's own library. An atomic's `fetch_add` is inlined from there, and
/// says nothing of who called it.
pub(super) fn is_library(path: &str) -> bool {
    const LIBRARIES: [&str; 5] = [
        "/rustc/",
        "/lib/rustlib/src/",
        "/usr/include/",
        "/usr/lib/gcc",
        "/include/c++/",
    ];
    LIBRARIES.iter().any(|part| path.contains(part))
}

/// A path without its empty steps: compilers join a directory `.` and a file `./x.c` as they are.
fn source_path(path: &str) -> String {
    let path = path.replace("/./", "/");
    path.trim_start_matches("./").to_owned()
}

fn language(language: symbolizer::Language) -> Option<Language> {
    match language {
        symbolizer::Language::C => Some(Language::C),
        symbolizer::Language::Cpp => Some(Language::Cpp),
        symbolizer::Language::Rust => Some(Language::Rust),
        symbolizer::Language::Other(_) => None,
    }
}

/// The shape of a type: of an array, with the members of its element.
fn layout(module: &Module, ty: TypeRef) -> Option<ObjectLayout> {
    let whole = module.layout(ty).ok()?;
    let mut members = whole.members;
    let mut element = None;
    if let Some((array, count)) = whole.element.and_then(|array| Some((array, array.count?))) {
        let of_element = module.layout(array.ty).ok();
        element = Some(ElementLayout {
            type_name: of_element.as_ref().map(|layout| layout.type_name.clone()),
            stride: array.stride,
            count,
        });
        members = of_element.map(|layout| layout.members).unwrap_or_default();
    }
    let members = members
        .into_iter()
        .filter_map(|member| {
            Some(MemberLayout {
                name: member.path.trim_start_matches('.').to_owned(),
                offset: member.offset,
                size: member.size?,
                type_name: Some(member.type_name),
            })
        })
        .collect();
    Some(ObjectLayout {
        size: whole.size?,
        element,
        members,
    })
}
