//! Words for addresses: what the report says instead of numbers.
//!
//! [`Names`] is the seam between judging and reporting: the report asks it and never opens a file.
//! What could not be named is `None` beside a reason that [`Names::caveats`] counts.

use std::collections::BTreeMap;

mod by_instruction;
mod go;
mod heap;
mod jit;
mod kernel;
mod language;
mod local_storage;
mod lookup;
mod lost_module;
mod missed;
mod nameless;
mod owner;
mod reached;
mod resolver;
mod source;
mod types;
mod watch_text;
mod word_use;

pub use heap::AllocationName;
pub use language::Language;
pub use lookup::{Located, LookupError, find_variable};
pub use nameless::type_words;
pub use owner::{Owned, Owner, Unit};
pub use resolver::{Resolver, layout as layout_of};
pub use source::Author;
pub use types::{Hole, Part, Role, TypeKind, TypeTree, Untyped};
pub use watch_text::{WatchSpec, WatchTextError, parse_watch};

pub use crate::decode::{Outcome, WordUse, Written};

use crate::access::{LineKey, LineSize, Op, SpaceId, Tid};

/// What kind of memory a byte belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// A variable of a program or library.
    Global,
    /// `[heap]` or a private anonymous mapping: malloc and its kin.
    Heap,
    /// A thread's stack.
    Stack,
    /// A thread's local storage.
    Tls,
    /// A shared or file mapping that is no program's variable.
    Mapping,
    /// Kernel memory.
    Kernel,
    /// No mapping is known there.
    #[default]
    Unknown,
}

impl ObjectKind {
    /// Stable name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            ObjectKind::Global => "global",
            ObjectKind::Heap => "heap",
            ObjectKind::Stack => "stack",
            ObjectKind::Tls => "tls",
            ObjectKind::Mapping => "mapping",
            ObjectKind::Kernel => "kernel",
            ObjectKind::Unknown => "unknown",
        }
    }
}

/// The object that holds some byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectName {
    /// What kind of memory.
    pub kind: ObjectKind,
    /// `stats`, `ns::table`; where nothing is known but the file, a place in it, `/dev/shm/ring+0x40`, `prog+0x4040`;
    /// `None` when nothing better than the kind is known.
    pub name: Option<String>,
    /// How the source comes to it from a variable, for memory without a name: `recs[3]`, `*current`.
    pub called: Option<String>,
    /// The variable in `called` led to it whenever it was looked at.
    pub is_reached: bool,
    /// Of a thread-local variable: whose it is.
    pub thread: Option<Tid>,
    /// Type as the source says it.
    pub type_name: Option<String>,
    /// File of the declaration.
    pub file: Option<String>,
    /// Line of the declaration.
    pub line: Option<u32>,
    /// Position of the object's first byte in its place's numbering (see `Place::position`), where known.
    pub start: Option<u64>,
    /// Bytes, where known.
    pub size: Option<u64>,
    /// Bytes that the program asks it to start at a multiple of: by its declaration (`alignas`) or by its type, as stated there
    /// or as the ABI gives it; `None` where neither is known.
    pub alignment: Option<u64>,
    /// Source language, where known.
    pub language: Option<Language>,
    /// Members and their offsets, where the type is known; for layout advice.
    pub layout: Option<ObjectLayout>,
    /// Where it was allocated, for an object of the heap whose allocation was seen.
    pub allocation: Option<AllocationName>,
}

impl ObjectName {
    /// What stands for it in sentences: the variable, or how the source comes to it. The name of an allocation tells only
    /// where it is from.
    pub fn spoken(&self) -> Option<&str> {
        let (name, called) = (self.name.as_deref(), self.called.as_deref());
        if self.allocation.is_some() {
            called.or(name)
        } else {
            name.or(called)
        }
    }

    /// Bytes that it starts at a multiple of in every run, as far as the program asks for it; `None` where that is not known,
    /// or where it does not start so: what asked for it was not heard.
    pub fn kept_alignment(&self) -> Option<u64> {
        let (start, asked) = self.start.zip(self.alignment)?;
        (asked > 0 && start.is_multiple_of(asked)).then_some(asked)
    }

    /// Position one past the object's last byte, where known.
    pub fn end(&self) -> Option<u64> {
        self.start?.checked_add(self.size?)
    }
}

/// The shape of an object's type, as far as layout advice needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectLayout {
    /// Bytes of the whole object.
    pub size: u64,
    /// An array's element: name of its type, bytes per element, number of elements.
    pub element: Option<ElementLayout>,
    /// Members of the struct (of the element's struct for arrays), in offset order.
    pub members: Vec<MemberLayout>,
    /// Who declares the struct, and so can move its members.
    pub author: Author,
}

impl ObjectLayout {
    /// It has elements or members, unlike a number.
    pub fn has_parts(&self) -> bool {
        self.element.is_some() || !self.members.is_empty()
    }

    /// The shape of so many of one type, one every `stride` bytes, by the shape of one.
    pub fn row(
        type_name: Option<String>,
        stride: u64,
        count: u64,
        one: Option<ObjectLayout>,
    ) -> ObjectLayout {
        ObjectLayout {
            size: stride.saturating_mul(count),
            element: Some(ElementLayout {
                type_name,
                stride,
                count,
            }),
            author: one.as_ref().map_or_else(Author::default, |one| one.author),
            members: one.map(|one| one.members).unwrap_or_default(),
        }
    }
}

/// One element of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementLayout {
    /// Type as the source says it.
    pub type_name: Option<String>,
    /// Bytes from one element to the next.
    pub stride: u64,
    /// Number of elements.
    pub count: u64,
}

/// One member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberLayout {
    /// Without a leading dot.
    pub name: String,
    /// Bytes from the struct's start.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// Type as the source says it.
    pub type_name: Option<String>,
    /// Bytes that it starts at a multiple of, where that is known.
    pub alignment: Option<u64>,
    /// It is a bit-field: its size is that of the bytes it touches.
    pub is_bit_field: bool,
    /// It is declared in a base class or in an anonymous member of the struct, not in the struct itself.
    pub is_inner: bool,
}

/// Some bytes of a line: which object, and which part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldName {
    /// Index into [`Names::objects`] of the same line.
    pub object: usize,
    /// `.hits`, `[3].hits`, `between .misses and .total`; `None` for the whole object or when the
    /// type is unknown.
    pub path: Option<String>,
}

/// An instruction in words.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CodeName {
    /// File of the module, or `[kernel]`, `[vdso]`.
    pub module: Option<String>,
    /// Hex.
    pub build_id: Option<String>,
    /// Address in the module's own numbering; the runtime address where there is no module.
    pub ip: u64,
    /// The function that holds the instruction, demangled.
    pub symbol: Option<String>,
    /// Bytes from the function's start, of code in no file: the kernel is loaded elsewhere each time.
    pub symbol_offset: Option<u64>,
    /// Functions inlined at the instruction, innermost first.
    pub inlined: Vec<String>,
    /// Those functions with where in them the instruction is, then the function that holds it; empty without debug info.
    pub inline_chain: Vec<CodeFrame>,
    /// Source file.
    pub file: Option<String>,
    /// Source line.
    pub line: Option<u32>,
    /// Source column.
    pub column: Option<u32>,
    /// Language of the source.
    pub language: Option<Language>,
}

/// A function of the source, and where in it.
#[derive(Clone, Debug, PartialEq, Eq, Default, serde::Serialize)]
pub struct CodeFrame {
    /// Demangled.
    pub function: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Source line: of the instruction in the innermost, of the call before in the others.
    pub line: Option<u32>,
    /// Source column.
    pub column: Option<u32>,
}

impl CodeFrame {
    fn of(frame: &symbolizer::Frame) -> CodeFrame {
        CodeFrame {
            function: frame.function.as_deref().map(str::to_owned),
            file: frame.file.as_deref().map(source::source_path),
            line: frame.line,
            column: frame.column,
        }
    }
}

/// A thread in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadName {
    /// The kernel's name of the thread, where it was seen.
    pub comm: Option<String>,
}

/// An instruction that accesses bytes of a line. Its operand tells the type of memory that has no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessedBy {
    /// Address space that names the code.
    pub space: SpaceId,
    /// Virtual address of the instruction.
    pub ip: u64,
    /// Executed in kernel mode.
    pub kernel: bool,
    /// Direction.
    pub op: Op,
    /// First byte touched, from the line's start.
    pub offset: u8,
    /// Bytes of the line touched.
    pub size: u8,
    /// Times that it was seen.
    pub count: u64,
}

/// How many of the instructions that were asked for the type behind their operand told it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Coverage {
    /// Instructions whose operand has a type.
    pub named: u64,
    /// The others, by reason: its stable name, and what it means, which is not in JSON.
    #[serde(serialize_with = "by_name")]
    pub untraced: BTreeMap<(&'static str, String), u64>,
}

fn by_name<S: serde::Serializer>(
    counts: &BTreeMap<(&'static str, String), u64>,
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_map(counts.iter().map(|((name, _), n)| (name, n)))
}

/// Turns keys and addresses into words.
pub trait Names {
    /// The objects that have bytes on the line, in address order. `by` are the instructions known to access it.
    fn objects(&self, key: LineKey, size: LineSize, by: &[AccessedBy]) -> Vec<ObjectName>;
    /// The part of an object that `bytes` bytes from `offset` on the line are, as far as the instructions given
    /// to [`Names::objects`] tell.
    fn field(&self, key: LineKey, size: LineSize, offset: u8, bytes: u16) -> Option<FieldName>;
    /// What the line is a part of, with other lines; `None` where nothing is known but that somebody accesses it. Asked of
    /// many lines once, so that nothing is kept for it. `by` as in [`Names::objects`].
    fn owner(&self, key: LineKey, size: LineSize, by: &[AccessedBy]) -> Option<Owned> {
        let objects = self.objects(key, size, by);
        let field = |offset, bytes| self.field(key, size, offset, bytes);
        owner::owner(key, size, by, &objects, field)
    }
    /// The whole type of an object of the line (an index into [`Names::objects`]).
    fn type_tree(&self, key: LineKey, size: LineSize, object: usize) -> Result<TypeTree, Untyped>;
    /// A virtual address at which the line was mapped: in the given space, where it is private or was seen.
    fn address(&self, key: LineKey) -> Option<u64>;
    /// The instruction at a runtime address.
    fn code(&self, space: Option<SpaceId>, ip: u64, kernel: bool) -> CodeName;
    /// What the instruction at a runtime address does with the word that it accesses; `None` where its code cannot be read
    /// or does not tell.
    fn word_use(&self, _space: SpaceId, _ip: u64, _kernel: bool) -> Option<WordUse> {
        None
    }
    /// The thread's name.
    fn thread(&self, tid: Tid) -> ThreadName;
    /// What could not be named, counted by reason, in words a user can act on.
    fn caveats(&self) -> Vec<String>;
    /// What instructions told of memory that has no name.
    fn coverage(&self) -> Coverage;
}
