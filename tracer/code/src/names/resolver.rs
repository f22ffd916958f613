//! The answering side of [`Names`]: address spaces, modules and kernel symbols.

mod meaning;
mod resolved;
mod shape;
mod typed;

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    sync::Arc,
};

use symbolizer::Missing;

pub use self::shape::layout;
use self::typed::{Instructions, Part};
pub(super) use self::{resolved::Resolved, shape::has_members};
use super::{
    AccessedBy, CodeFrame, CodeName, Coverage, FieldName, Names, ObjectKind, ObjectName, Owned,
    ThreadName, TypeTree, Untyped, WordUse,
    go::{GoSpaces, is_same_stack},
    kernel::KernelCode,
    language::language,
    local_storage::{Programs, source_name, threads},
    missed::{Missed, Unnamed},
    owner,
    reached::PointersOf,
    source::{source_path, telling},
};
use crate::{
    access::{LineKey, LineSize, Place, SpaceId, Tid},
    event::{DELETED, Mapping},
    heap::HeapIndex,
    module::{LoadedModule, ModuleStore, code_of},
    space::AddressSpaces,
};

/// The objects of a line.
struct OnLine {
    /// The instructions that were asked.
    by: Vec<AccessedBy>,
    objects: Arc<Vec<Resolved>>,
}

/// Answers from recorded or live context.
pub struct Resolver<'a> {
    pub(super) heap: Option<&'a HeapIndex>,
    pub(super) spaces: &'a AddressSpaces,
    pub(super) modules: &'a ModuleStore,
    objects: RefCell<HashMap<LineKey, OnLine>>,
    instructions: RefCell<Instructions>,
    missing: Missed,
    /// What is asked of lines that may never be printed is not missing.
    asides: Cell<bool>,
    /// Lines whose object was not asked for, for want of time.
    apart: Cell<bool>,
    programs: Programs,
    pub(super) go: GoSpaces,
    pub(super) kernel_code: KernelCode,
    pub(super) pointers: PointersOf,
    word_uses: RefCell<HashMap<(SpaceId, u64, bool), Option<WordUse>>>,
}

impl<'a> Resolver<'a> {
    /// Nothing named yet.
    pub fn new(spaces: &'a AddressSpaces, modules: &'a ModuleStore) -> Resolver<'a> {
        Resolver {
            heap: None,
            spaces,
            modules,
            objects: RefCell::default(),
            instructions: RefCell::default(),
            missing: Missed::default(),
            asides: Cell::new(false),
            apart: Cell::new(false),
            programs: Programs::default(),
            go: GoSpaces::default(),
            kernel_code: KernelCode::default(),
            pointers: PointersOf::default(),
            word_uses: RefCell::default(),
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

    pub(super) fn miss(&self, module: &str, reason: &impl ToString, what: Unnamed) {
        if !self.asides.get() {
            self.missing.count(module, reason, what);
        }
    }

    /// A space and virtual address of a place.
    pub(super) fn locate(&self, place: Place) -> Option<(SpaceId, u64)> {
        match place {
            Place::Private { space, addr } => Some((space, addr)),
            Place::Shared { .. } => self.spaces.find_shared(place),
            Place::Kernel { .. } | Place::Physical { .. } => None,
        }
    }

    /// The objects of a line. Instructions not asked before add what they tell.
    fn resolve(&self, key: LineKey, size: LineSize, by: &[AccessedBy]) -> Arc<Vec<Resolved>> {
        let mut asked = Vec::new();
        if let Some(known) = self.objects.borrow().get(&key) {
            let same = |site: &&AccessedBy| {
                let at = |site: &AccessedBy| (site.space, site.ip, site.op, site.offset, site.size);
                known.by.iter().any(|known| at(known) == at(site))
            };
            if by.iter().all(|site| same(&site)) {
                return known.objects.clone();
            }
            asked.clone_from(&known.by);
            asked.extend(by.iter().filter(|site| !same(site)));
        } else {
            asked.extend(by);
        }
        let objects = Arc::new(self.objects_of(key, size, &asked));
        let found = OnLine {
            by: asked,
            objects: objects.clone(),
        };
        self.objects.borrow_mut().insert(key, found);
        objects
    }

    fn objects_of(&self, key: LineKey, size: LineSize, by: &[AccessedBy]) -> Vec<Resolved> {
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
        if let Place::Kernel { addr } = key.0 {
            found = self.kernel_objects(addr, size);
        }
        if found.is_empty() {
            found = self.thread_local_variables(key, size);
        }
        let kind = self.kind(key.0, data.as_ref());
        let kind = self.remapped(key, size, kind);
        let typed = self.typed_objects(key, size, by, &found, kind);
        if matches!(kind, ObjectKind::Heap | ObjectKind::Mapping) && found.is_empty() {
            found = self.allocated_objects(key, size, kind, typed);
            self.call_by_pointers(key, size, by, kind, &mut found);
        } else {
            found.extend(typed);
        }
        found.sort_by_key(|object| (object.name.start.is_none(), object.name.start));
        if found.is_empty() {
            if let Place::Kernel { addr } = key.0 {
                self.miss_kernel_data(addr);
            }
            let name = ObjectName {
                kind,
                name: self.place_name(key.0, kind, data.as_ref()),
                ..ObjectName::default()
            };
            found.push(Resolved::untyped(name));
        }
        found
    }

    /// Variables of threads' local storage on a line.
    fn thread_local_variables(&self, key: LineKey, size: LineSize) -> Vec<Resolved> {
        let mut found: Vec<Resolved> = Vec::new();
        let Place::Private { space, addr } = key.0 else {
            return found;
        };
        let threads = threads(self.spaces, space);
        let mut at = addr;
        let end = addr.saturating_add(size.bytes());
        while at < end {
            let mut next = at + 1;
            let threads = (space, &threads[..]);
            let block = (self.programs).block_at(self.spaces, self.modules, threads, at);
            if let Some(block) = block
                && let Ok(mut object) = block.module.elf.thread_local_object(at - block.start)
                && let Some(start) = block.start.checked_add(object.address)
            {
                object.name = source_name(object.name);
                let mut resolved = Resolved::variable(&block.module, object, Some(start));
                resolved.name.kind = ObjectKind::Tls;
                resolved.name.thread = Some(block.thread);
                next = resolved.name.end().map_or(next, |end| end.max(next));
                found.push(resolved);
            }
            at = next;
        }
        found
    }

    /// The module's variable at an address, if there is one; `position` is the address in the numbering
    /// of the variable's place.
    pub(super) fn variable(
        &self,
        module: &Arc<LoadedModule>,
        svma: u64,
        position: u64,
    ) -> Option<Resolved> {
        let object = match module.elf.object(svma) {
            Ok(object) => object,
            Err(reason) => {
                if reason != Missing::NotCovered {
                    self.miss(&module.path, &reason, Unnamed::Data(svma));
                }
                return None;
            }
        };
        let inside = svma.checked_sub(object.address)?;
        Some(Resolved::variable(
            module,
            object,
            position.checked_sub(inside),
        ))
    }

    /// The instruction at a module's own address; `shown` is what the module is called.
    pub(super) fn module_code(
        &self,
        module: &LoadedModule,
        shown: Option<String>,
        svma: u64,
    ) -> CodeName {
        let code = module.elf.frames(svma);
        if let Some(reason) = &code.missing {
            self.miss(&module.path, reason, Unnamed::Code(svma));
        }
        let mut frames = code.frames;
        let place = telling(&frames).cloned();
        let inline_chain = frames.iter().map(CodeFrame::of).collect();
        let outer = frames.pop();
        CodeName {
            inline_chain,
            module: shown,
            build_id: module.build_id(),
            ip: svma,
            symbol: outer
                .and_then(|f| f.function)
                .map(|f| f.to_string())
                .or(code.symbol.ok().map(|s| s.to_string())),
            symbol_offset: None,
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

    /// The module whose data an address is.
    fn module_data(&self, space: SpaceId, addr: u64) -> Option<(Arc<LoadedModule>, u64)> {
        let mapping = self.spaces.mapping(space, addr)?;
        if !mapping.is_file() && (mapping.shared || mapping.inode != 0) {
            return None;
        }
        let code = code_of(self.spaces.mappings(space), addr)?;
        let module = self
            .modules
            .open_to_name(self.spaces.pid(space)?, code)
            .ok()?;
        let svma = module.svma(code, addr)?;
        Some((module, svma))
    }

    /// Kind of the memory at a place that no named variable covers; `data` is its module, if any.
    fn kind(&self, place: Place, data: Option<&(Arc<LoadedModule>, u64)>) -> ObjectKind {
        let (space, addr) = match place {
            Place::Kernel { .. } => return ObjectKind::Kernel,
            Place::Shared { .. } => return ObjectKind::Mapping,
            Place::Physical { .. } => return ObjectKind::Unknown,
            Place::Private { space, addr } => (space, addr),
        };
        if data.is_some_and(|(module, svma)| module.elf.memory().contains(svma)) {
            return ObjectKind::Global;
        }
        if data.is_none() && self.data_of_lost_module(space, addr).is_some() {
            return ObjectKind::Global;
        }
        match self.spaces.mapping(space, addr) {
            None => ObjectKind::Unknown,
            Some(mapping) if mapping.is_file() => ObjectKind::Mapping,
            Some(mapping) => self.anonymous(space, addr, mapping),
        }
    }

    /// A place in the file behind it, where nothing better is known: it is the same in every run.
    pub(super) fn place_name(
        &self,
        place: Place,
        kind: ObjectKind,
        data: Option<&(Arc<LoadedModule>, u64)>,
    ) -> Option<String> {
        let file = |path: &str| path.trim_end_matches(DELETED).to_owned();
        match (kind, data) {
            (ObjectKind::Global, Some((module, svma))) => {
                let path = file(&module.path);
                let name = path.rsplit('/').next().unwrap_or(&path);
                Some(format!("{name}+{svma:#x}"))
            }
            (ObjectKind::Global, None) => {
                let (space, addr) = self.locate(place)?;
                self.data_of_lost_module(space, addr)
            }
            (ObjectKind::Mapping, _) => {
                let (space, addr) = self.locate(place)?;
                let mapping = self.spaces.mapping(space, addr)?;
                let offset = (addr - mapping.start).wrapping_add(mapping.file_offset);
                let is_named = mapping.is_file();
                is_named.then(|| format!("{}+{offset:#x}", file(&mapping.name)))
            }
            _ => None,
        }
    }

    fn anonymous(&self, space: SpaceId, addr: u64, mapping: &Mapping) -> ObjectKind {
        if mapping.name.starts_with("[heap]") {
            return ObjectKind::Heap;
        }
        let pid = self.spaces.pid(space);
        let own_threads = || self.spaces.threads().filter(|(_, t)| Some(t.pid) == pid);
        // On x86-64 a thread's static local storage lies just below its thread pointer ("ELF Handling
        // For Thread-Local Storage", variant II).
        let storage = (self.programs).storage_size(self.spaces, self.modules, space);
        let in_storage = |tp: u64| addr < tp && tp - addr <= storage;
        if own_threads().any(|(_, t)| t.tp.is_some_and(in_storage)) {
            return ObjectKind::Tls;
        }
        let is_go_arena = self.is_go_arena(space, mapping);
        let is_near = |sp: u64| {
            if is_go_arena {
                is_same_stack(addr, sp)
            } else {
                mapping.contains(sp)
            }
        };
        let stack = mapping.name.starts_with("[stack")
            || own_threads().any(|(_, t)| t.sp.is_some_and(is_near));
        if stack {
            ObjectKind::Stack
        } else {
            ObjectKind::Heap
        }
    }
}

impl Resolver<'_> {
    /// The part of one of a line's objects that `bytes` bytes from `offset` on the line are.
    fn field_of(
        &self,
        objects: &[Resolved],
        key: LineKey,
        offset: u8,
        bytes: u16,
    ) -> Option<FieldName> {
        let position = key.0.position() + u64::from(offset);
        let covers = |r: &Resolved| {
            r.name.start.is_some_and(|start| start <= position)
                && r.name.end().is_some_and(|end| position < end)
        };
        let part_of = |r: &Resolved| -> Option<String> {
            let is_it = |part: &&Part| (part.0, u16::from(part.1)) == (offset, bytes);
            r.parts.iter().find(is_it).map(|part| part.2.clone())
        };
        let (object, resolved) = objects
            .iter()
            .enumerate()
            .find(|(_, r)| covers(r) || part_of(r).is_some())?;
        let by_type = resolved.typed.as_ref().and_then(|(module, ty)| {
            let inside = position.checked_sub(resolved.name.start?)?;
            let (element, inside) = match resolved.stride.filter(|&stride| stride > 0) {
                Some(stride) => (format!("[{}]", inside / stride), inside % stride),
                None => (String::new(), inside),
            };
            match module.elf.field(*ty, inside, u64::from(bytes)) {
                Ok(field) => Some(element + &field.path).filter(|p| !p.is_empty()),
                Err(reason) => {
                    self.miss(&module.path, &reason, Unnamed::Data(position));
                    None
                }
            }
        });
        // Of those on the line, only what is accessed is missed.
        if let Some((module, address, reason)) = &resolved.untyped {
            self.miss(&module.path, reason, Unnamed::Data(*address));
        }
        let of_kernel = || self.kernel_field(resolved, position, u64::from(bytes));
        // The whole of a number has no part to name.
        let named = || part_of(resolved).filter(|path| !path.is_empty());
        Some(FieldName {
            object,
            path: by_type.or_else(of_kernel).or_else(named),
        })
    }
}

impl Names for Resolver<'_> {
    fn objects(&self, key: LineKey, size: LineSize, by: &[AccessedBy]) -> Vec<ObjectName> {
        self.resolve(key, size, by)
            .iter()
            .map(|r| r.name.clone())
            .collect()
    }

    fn field(&self, key: LineKey, size: LineSize, offset: u8, bytes: u16) -> Option<FieldName> {
        self.field_of(&self.resolve(key, size, &[]), key, offset, bytes)
    }

    fn owner(&self, key: LineKey, size: LineSize, by: &[AccessedBy]) -> Option<Owned> {
        if self.modules.is_short_of_time() {
            self.apart.set(true);
            return None;
        }
        self.asides.set(true);
        let resolved = self.objects_of(key, size, by);
        let objects: Vec<ObjectName> = resolved.iter().map(|r| r.name.clone()).collect();
        let field = |offset, bytes| self.field_of(&resolved, key, offset, bytes);
        let owner = owner::owner(key, size, by, &objects, field);
        self.asides.set(false);
        owner
    }

    fn type_tree(&self, key: LineKey, size: LineSize, object: usize) -> Result<TypeTree, Untyped> {
        let objects = self.resolve(key, size, &[]);
        let object = objects.get(object).ok_or(Untyped::NoObject)?;
        let no_type = |module: &LoadedModule, reason: &Missing| Untyped::NoType {
            module: module.path.clone(),
            reason: reason.to_string(),
        };
        match &object.typed {
            Some((module, ty)) => module.elf.type_tree(*ty).map_err(|e| no_type(module, &e)),
            None if object.name.kind == ObjectKind::Global => {
                let data = self
                    .locate(key.0)
                    .and_then(|(space, addr)| self.module_data(space, addr));
                let (module, svma) = data.ok_or(Untyped::NoObject)?;
                let inside = object.name.start.unwrap_or(key.0.position());
                let svma = svma.wrapping_add(inside.wrapping_sub(key.0.position()));
                let found = module.elf.object(svma).map(|object| object.missing);
                let reason = found.map_or_else(|e| e, |e| e.unwrap_or(Missing::NoType));
                Err(no_type(&module, &reason))
            }
            None => Err(Untyped::Memory(object.name.kind)),
        }
    }

    fn address(&self, key: LineKey) -> Option<u64> {
        match key.0 {
            Place::Kernel { addr } => Some(addr),
            place => self.locate(place).map(|(_, addr)| addr),
        }
    }

    fn code(&self, space: Option<SpaceId>, ip: u64, kernel: bool) -> CodeName {
        if kernel {
            return self.kernel_code(ip);
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
        let module = match self.modules.open_to_name(pid, mapping) {
            Ok(module) => module,
            Err(reason) => return self.compiled_code(space, pid, mapping, ip, &reason),
        };
        let Some(svma) = module.svma(mapping, ip) else {
            return CodeName {
                module: module_name,
                ..unnamed
            };
        };
        self.module_code(&module, module_name, svma)
    }

    fn word_use(&self, space: SpaceId, ip: u64, kernel: bool) -> Option<WordUse> {
        let key = (space, ip, kernel);
        if let Some(known) = self.word_uses.borrow().get(&key) {
            return *known;
        }
        let does = self.use_of_word(space, ip, kernel);
        self.word_uses.borrow_mut().insert(key, does);
        does
    }

    fn thread(&self, tid: Tid) -> ThreadName {
        ThreadName {
            comm: self.spaces.thread(tid).and_then(|t| t.comm.clone()),
        }
    }

    fn coverage(&self) -> Coverage {
        self.instructions.borrow().coverage()
    }

    fn caveats(&self) -> Vec<String> {
        let apart = self.apart.get().then(|| {
            "lines of one object may be listed apart: the run was asked to stop before they were put together".to_owned()
        });
        let missing = self.missing.sentences(self.modules);
        missing.into_iter().chain(apart).collect()
    }
}

#[cfg(test)]
mod tests;
