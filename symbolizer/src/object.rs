//! Data addresses to variables.

use std::sync::Arc;

use crate::{
    Module,
    demangle::try_demangle,
    dwarf::{DebugInfo, Die, Entry, Variable, View},
    language::Language,
    missing::Missing,
    spans::{Span, Spans},
    symbols::SymbolName,
    types::{FieldPath, Layout, Pointer, TypeRef, TypeTree},
};

/// Variables before an address that are tried when no symbol says which one covers it.
const MOST_TRIED: usize = 16;
/// Variables at one address that are tried. Linkers that drop a thread-local variable leave its description behind
/// with offset 0, which is where a living one is, too.
const MOST_SAME: usize = 1024;

/// A variable with a fixed place: global, static in a file, class or function, or thread-local.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// With namespaces, classes and functions: `ns::stats`, `count::calls`, `demo::STATS`.
    pub name: String,
    /// Name in the symbol table, where it has one.
    pub linkage_name: Option<String>,
    /// First byte: an svma; of a thread-local object, the offset in the module's thread-local segment. Of a variable
    /// that the optimiser split, where it would start if the part asked for were in its place.
    pub address: u64,
    /// Bytes.
    pub size: Option<u64>,
    /// Bytes that it starts at a multiple of because its declaration says so (`alignas`); absent where only its type tells,
    /// as [`Layout::alignment`] does.
    pub alignment: Option<u64>,
    /// Type, if debug info has it.
    pub ty: Option<TypeRef>,
    /// Name of the type.
    pub type_name: Option<String>,
    /// Where the variable is declared.
    pub file: Option<Arc<str>>,
    /// Line in `file`.
    pub line: Option<u32>,
    /// Source language.
    pub language: Option<Language>,
    /// Why there is no type.
    pub missing: Option<Missing>,
}

impl Module {
    /// The variable that covers an address.
    pub fn object(&self, svma: u64) -> Result<Object, Missing> {
        self.find_object(svma, &self.symbols().objects, |info| {
            Ok(&info.variables()?.globals)
        })
    }

    /// The thread-local variable at an offset of the module's thread-local segment.
    pub fn thread_local_object(&self, offset: u64) -> Result<Object, Missing> {
        self.find_object(offset, &self.symbols().thread_locals, |info| {
            Ok(&info.variables()?.thread_locals)
        })
    }

    /// Size and alignment in bytes of the thread-local segment, if the module has one.
    pub fn thread_local_segment(&self) -> Option<(u64, u64)> {
        let segment = self.image().thread_local?;
        Some((segment.memory_size, segment.alignment))
    }

    /// The member at `offset` of an object of type `ty`, for an access of `size` bytes.
    pub fn field(&self, ty: TypeRef, offset: u64, size: u64) -> Result<FieldPath, Missing> {
        self.debug_info()?.view().field(ty.0, offset, size)
    }

    /// The pointer at `offset` of an object of type `ty`; `None` where something else is there.
    pub fn pointer(&self, ty: TypeRef, offset: u64) -> Option<Pointer> {
        self.debug_info().ok()?.view().pointer(ty.0, offset)
    }

    /// Size, alignment and members of a type.
    pub fn layout(&self, ty: TypeRef) -> Result<Layout, Missing> {
        self.debug_info()?.view().layout(ty.0)
    }

    /// The type as its declaration nests it, with the holes between its members.
    pub fn type_tree(&self, ty: TypeRef) -> Result<TypeTree, Missing> {
        self.debug_info()?.view().type_tree(ty.0)
    }

    /// The variable by debug info, or by its symbol with the reason why there is no more.
    fn find_object<'m>(
        &'m self,
        address: u64,
        symbols: &Spans<SymbolName>,
        variables: impl Fn(&'m DebugInfo) -> Result<&'m [Variable], Missing>,
    ) -> Result<Object, Missing> {
        let symbol = symbols.covering(address).next();
        let described = self.debug_info().and_then(|info| {
            let view = info.view();
            let named = symbol.as_ref().map(|symbol| self.symbol_text(symbol.value));
            let covering = symbol.as_ref().zip(named.as_deref());
            let found = find_variable(&view, variables(info)?, address, covering);
            let (variable, size) = found.ok_or(info.not_covered())?;
            Ok(self.describe(&view, variable, size, symbol.as_ref()))
        });
        match (described, symbol) {
            (Ok(object), _) => Ok(object),
            (Err(missing), Some(symbol)) => Ok(self.object_of_symbol(&symbol, missing)),
            (Err(Missing::NoDebugInfo), None) => Err(self.symbols().missing()),
            (Err(missing), None) => Err(missing),
        }
    }

    /// What is known of a variable of the debug info.
    pub(crate) fn describe_variable(
        &self,
        view: &View<'_>,
        variable: Variable,
        thread_local: bool,
    ) -> Object {
        let symbols = if thread_local {
            &self.symbols().thread_locals
        } else {
            &self.symbols().objects
        };
        let symbol = symbols.covering(variable.address).next();
        self.describe(view, variable, size_of(view, &variable), symbol.as_ref())
    }

    /// What a symbol alone tells.
    fn object_of_symbol(&self, symbol: &Span<SymbolName>, missing: Missing) -> Object {
        let raw = self.symbol_text(symbol.value);
        Object {
            name: try_demangle(&raw).unwrap_or_else(|| raw.clone()),
            address: symbol.start,
            size: Some(symbol.end - symbol.start),
            alignment: None,
            ty: None,
            type_name: None,
            file: None,
            line: None,
            language: Language::of_symbol(&raw),
            linkage_name: Some(raw),
            missing: Some(missing.of_symbol()),
        }
    }

    /// Gathers what the definition and its declarations say.
    fn describe(
        &self,
        view: &View<'_>,
        variable: Variable,
        size: Option<u64>,
        symbol: Option<&Span<SymbolName>>,
    ) -> Object {
        let symbol =
            symbol.filter(|symbol| symbol.start == variable.address && variable.piece.is_none());
        let chain = view.chain(variable.die);
        let mut linkage_name = chain
            .iter()
            .find_map(|(_, entry)| entry.linkage_name)
            .map(|name| String::from_utf8_lossy(name).into_owned());
        if linkage_name.is_none() {
            linkage_name = symbol.map(|symbol| self.symbol_text(symbol.value));
        }
        let language = view.language_of(variable.die);
        let scoped = view.qualified_name(variable.die);
        // Rust's scopes name an `impl` by number; its mangled names spell it out.
        let unclear = scoped.as_ref().is_none_or(|name| name.contains("{impl#"));
        let spelled = linkage_name
            .as_deref()
            .filter(|_| unclear)
            .and_then(try_demangle)
            .map(without_brackets);
        let (mut file, mut line) = (None, None);
        for (die, entry) in &chain {
            let (declared_file, declared_line) = view.declared_at(*die, entry);
            line = line.or(declared_line);
            file = file.or(declared_file);
        }
        let ty = variable_type(view, variable.die);
        // The symbol knows better about a flexible array at the end.
        let symbol_size = symbol.map(|symbol| symbol.end - symbol.start);
        Object {
            name: spelled
                .or(scoped)
                .or_else(|| linkage_name.clone())
                .unwrap_or_else(|| "(unnamed)".into()),
            linkage_name,
            address: variable
                .address
                .wrapping_sub(variable.piece.map_or(0, |piece| piece.offset)),
            size: size.max(symbol_size),
            alignment: chain.iter().filter_map(|(_, entry)| entry.alignment).max(),
            ty: ty.map(TypeRef),
            type_name: ty.map(|ty| view.type_name(Some(ty))),
            file,
            line,
            language,
            missing: match ty {
                Some(ty) => view.peel(ty).err(),
                None => Some(Missing::NoType),
            },
        }
    }
}

/// `<demo::Stats>::hit::CALLS` of the v0 mangling is `demo::Stats::hit::CALLS` in the source. A trait's
/// (`<T as Trait>::..`) stays.
pub(crate) fn without_brackets(name: String) -> String {
    match name
        .strip_prefix('<')
        .and_then(|rest| rest.split_once(">::"))
    {
        Some((ty, rest)) if !ty.contains(['<', ' ']) => format!("{ty}::{rest}"),
        _ => name,
    }
}

/// The type stated by the definition, else by the declaration it completes.
fn variable_type(view: &View<'_>, die: Die) -> Option<Die> {
    view.chain(die).iter().find_map(|(_, entry)| entry.ty)
}

/// Bytes, by its type.
fn size_of(view: &View<'_>, variable: &Variable) -> Option<u64> {
    variable_type(view, variable.die).and_then(|ty| view.size(ty).ok().flatten())
}

/// The variable that covers an address, and its size. A symbol that covers the address says where it starts;
/// without one, the sizes of the types before it must tell.
fn find_variable(
    view: &View<'_>,
    variables: &[Variable],
    address: u64,
    symbol: Option<(&Span<SymbolName>, &str)>,
) -> Option<(Variable, Option<u64>)> {
    if let Some((symbol, name)) = symbol {
        let first = variables.partition_point(|variable| variable.address < symbol.start);
        let same = variables[first..]
            .iter()
            .take_while(|variable| variable.address == symbol.start)
            .take(MOST_SAME);
        let is_named_so = |variable: &Variable| {
            let name = Some(name.as_bytes());
            let has_name =
                |(_, entry): &(Die, Entry<'_>)| entry.linkage_name.or(entry.name) == name;
            view.chain(variable.die).iter().any(has_name)
        };
        // Several units may describe one variable; the one that knows its size knows its type. Others only seem to be
        // there: they have another name or another size.
        if let Some(found) = same
            .map(|variable| (*variable, size_of(view, variable)))
            .max_by_key(|(variable, size)| {
                let fits = *size == Some(symbol.end - symbol.start);
                (is_named_so(variable), fits, size.is_some())
            })
        {
            return Some(found);
        }
    }
    let upto = variables.partition_point(|variable| variable.address <= address);
    variables[..upto]
        .iter()
        .rev()
        .take(MOST_TRIED)
        .find_map(|variable| {
            let size = size_of(view, variable);
            let here = variable.piece.map_or(size, |piece| Some(piece.size))?;
            (address - variable.address < here).then_some((*variable, size))
        })
}
