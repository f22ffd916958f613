//! All names of an instruction, and what its bytes say.

use symbolizer::Frame;

use super::digests::Digests;
use crate::{
    access::{LineSize, Op},
    analysis::{Following, Instruction, Load},
    cli::session_code::{InFile, SessionCode},
    decode::{self, LONGEST_INSTRUCTION, Reference, Symbol, assembly, store_kind},
    hint::{
        assembly::prefetch_of,
        file::{CallPlace, HintedCode, LoadClass, Prefetch, StoreKind},
        repeated::Repeated,
    },
    module::LoadedModule,
    names::{AccessedBy, Names as _, Resolver},
    space::AddressSpaces,
};

/// Bytes behind a store that are looked at for a fence: the store and the instructions that count, at their longest.
const STORE_TEXT: u64 = 5 * LONGEST_INSTRUCTION as u64;
/// Modules that begin below are linked to no fixed address.
const LOWEST_FIXED: u64 = 0x10000;

/// Reads the code of a session's modules.
pub(super) struct CodeReader<'a> {
    spaces: &'a AddressSpaces,
    code: &'a SessionCode,
    names: &'a Resolver<'a>,
    line_size: LineSize,
    digests: Digests,
}

impl<'a> CodeReader<'a> {
    pub(super) fn new(
        spaces: &'a AddressSpaces,
        code: &'a SessionCode,
        names: &'a Resolver<'a>,
        line_size: LineSize,
    ) -> CodeReader<'a> {
        CodeReader {
            spaces,
            code,
            names,
            line_size,
            digests: Digests::new(),
        }
    }

    /// Whether an instruction is of this session.
    pub(super) fn knows(&self, at: Instruction) -> bool {
        self.spaces.has(at.space)
    }

    /// The instruction in its file.
    fn in_file(&self, at: Instruction) -> Option<InFile> {
        (!at.kernel).then(|| self.code.at(self.spaces, at.space, at.ip))?
    }

    /// All names of an instruction.
    pub(super) fn named(&self, at: Instruction) -> HintedCode {
        // Counts what has no name, for the caveats; and is all there is for the kernel and for compiled code.
        let name = self.names.code(Some(at.space), at.ip, at.kernel);
        let mut named = HintedCode {
            module: name.module,
            build_id: name.build_id,
            ip: format!("{:#x}", at.ip),
            function: name.inlined.first().cloned().or(name.symbol.clone()),
            inlined_into: if name.inlined.is_empty() {
                Vec::new()
            } else {
                (name.inlined.iter().skip(1).cloned())
                    .chain(name.symbol)
                    .collect()
            },
            file: name.file,
            line: name.line,
            column: name.column,
            ..HintedCode::default()
        };
        let Some(found) = self.in_file(at) else {
            return named;
        };
        let (module, svma) = (&found.module, found.svma);
        named.offset = Some(format!("{svma:#x}"));
        // The innermost frame, library or not: assembly has its line at the instruction.
        let path = |frame: &Frame| (frame.file.as_deref()).map(|path| path.replace("/./", "/"));
        let frames = module.elf.frames(svma).frames;
        if let Some((frame, callers)) = frames.split_first() {
            named.file = path(frame);
            named.line = frame.line;
            named.column = frame.column;
            named.discriminator = frame.discriminator;
            let call = |frame: &Frame| CallPlace {
                file: path(frame),
                line: frame.line,
                column: frame.column,
            };
            named.inlined_at = callers.iter().map(call).collect();
            let path = frame.file.as_deref();
            named.md5 = path.and_then(|path| self.digests.of(&found, path, &named));
        }
        if let Some(text) = found.text(LONGEST_INSTRUCTION as u64)
            && let Some(assembly) = assembly(text, svma, &mut |reference| symbol(module, reference))
        {
            named.instruction = Some(assembly.instruction);
            named.operand = Some(assembly.operand);
        }
        named
    }

    /// Where the prefetch of a load goes.
    pub(super) fn prefetch(&self, at: Instruction, repeated: Option<Repeated>) -> Prefetch {
        let of_function = |found: InFile| {
            found.text(LONGEST_INSTRUCTION as u64)?;
            let elf = &found.module.elf;
            let function = elf.function(found.svma)?;
            let code = elf.code(function.start, function.end)?;
            Some(prefetch_of(code, function.start, found.svma, repeated))
        };
        let found = repeated.and_then(|_| self.in_file(at));
        found.and_then(of_function).unwrap_or_default()
    }

    /// What a load loads into.
    pub(super) fn class(&self, at: Instruction) -> LoadClass {
        (self.in_file(at)).map_or(LoadClass::Unknown, |found| found.load_class())
    }

    /// What kind of store it is: by its code, or else as far as the access tells.
    pub(super) fn store_kind(&self, store: &Following) -> StoreKind {
        let found = self.in_file(store.instruction);
        let text = found.as_ref().and_then(|found| found.text(STORE_TEXT));
        match text.and_then(store_kind) {
            Some(decode::StoreKind::Plain) => StoreKind::Plain,
            Some(decode::StoreKind::ReadModifyWrite) => StoreKind::ReadModifyWrite,
            Some(decode::StoreKind::Atomic) => StoreKind::Atomic,
            Some(decode::StoreKind::CompareAndSwap) => StoreKind::CompareAndSwap,
            Some(decode::StoreKind::Fenced) => StoreKind::Fenced,
            None if store.locked => StoreKind::Atomic,
            None if store.op == Op::Rmw => StoreKind::ReadModifyWrite,
            None => StoreKind::Unknown,
        }
    }

    /// The object that the load missed most, and the part of it.
    pub(super) fn object(&self, load: &Load) -> (Option<String>, Option<String>) {
        let Some(line) = load.lines.first() else {
            return (None, None);
        };
        let by = AccessedBy {
            space: load.instruction.space,
            ip: load.instruction.ip,
            kernel: load.instruction.kernel,
            op: Op::Load,
            offset: line.offset,
            size: line.size,
            count: line.requests,
        };
        let objects = self.names.objects(line.line, self.line_size, &[by]);
        let size = u16::from(line.size);
        let field = (self.names).field(line.line, self.line_size, line.offset, size);
        let Some(field) = field else {
            return (None, None);
        };
        let object = objects.get(field.object);
        let object = object.and_then(|object| object.name.clone().or(object.type_name.clone()));
        (object, field.path)
    }
}

/// What an address in an instruction of a module is.
fn symbol(module: &LoadedModule, reference: Reference) -> Symbol {
    let memory = module.elf.memory();
    let address = match reference {
        Reference::Relative(address) => address,
        Reference::Absolute(address)
            if memory.start >= LOWEST_FIXED && memory.contains(&address) =>
        {
            address
        }
        Reference::Absolute(_) => return Symbol::Number,
    };
    let Ok(object) = module.elf.object(address) else {
        return Symbol::Nameless;
    };
    let plain = matches!(object.language, None | Some(symbolizer::Language::C))
        && !object.name.contains("::");
    let Some(name) = object.linkage_name.or(plain.then_some(object.name)) else {
        return Symbol::Nameless;
    };
    match address.wrapping_sub(object.address) {
        0 => Symbol::Named(name),
        inside => Symbol::Named(format!("{name}+{inside}")),
    }
}
