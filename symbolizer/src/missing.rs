//! Why an answer is absent. Reasons are data: they are counted and printed, never thrown away.

use std::fmt;

/// Why a name, a line or a type could not be given. The text of [`fmt::Display`] tells the reader what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Missing {
    /// Neither the file nor a debug file of it has DWARF.
    NoDebugInfo,
    /// No exported symbol covers the address, and neither the file nor a debug file of it has the others.
    NoSymbols,
    /// There are symbols or debug info, but none for this address.
    NotCovered,
    /// There is debug info, and a symbol for this address, but no debug info.
    Undescribed,
    /// A debug file was found, but it belongs to another build.
    BuildIdMismatch,
    /// A debug file was found by `.gnu_debuglink`, but its checksum is another one.
    ChecksumMismatch,
    /// The debug info contradicts itself or ends too early.
    Malformed,
    /// The type is declared, but no unit of this module defines it.
    DeclarationOnly,
    /// The debug info is in a `.dwo` file, which is not where it was compiled to, nor in a `.dwp` package.
    DwoNotFound,
    /// The `.dwo` file or `.dwp` package found is of another compilation: its `dwo_id` differs.
    DwoMismatch,
    /// A part of the debug info is in a supplementary file (made by dwz), which was not found.
    AltFileNotFound,
    /// The supplementary file found is of another build.
    AltFileMismatch,
    /// The variable or member has no type.
    NoType,
    /// The offset lies beyond the end of the type.
    OutOfBounds,
    /// The bytes may belong to a virtual base class, whose place only the running program knows.
    VirtualBase,
    /// Types are nested deeper than any real program nests them.
    TooDeep,
    /// The symbols or the debug info would take more memory than there is for names.
    NoMemory,
    /// It was not read before somebody asked to stop, and there was no time for it afterwards.
    NoTime,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Missing::NoDebugInfo => "no debug info: compile with -g or install the -dbgsym package",
            Missing::NoSymbols => {
                "no symbols: the file is stripped; use the unstripped file or install the -dbgsym package"
            }
            Missing::NotCovered => "no symbol or debug info covers this address",
            Missing::Undescribed => {
                "no debug info of this part of the file, which has some of others: it was compiled without -g, or is of assembly or the linker's own"
            }
            Missing::BuildIdMismatch => {
                "the debug file found is of another build (build-id differs): install the one of this version"
            }
            Missing::ChecksumMismatch => {
                "the debug file found has another checksum: install the one of this version"
            }
            Missing::Malformed => "the debug info is damaged: rebuild or reinstall the file",
            Missing::DeclarationOnly => {
                "the type is only declared in this module: compile its defining file with -g (clang: -fstandalone-debug)"
            }
            Missing::DwoNotFound => {
                "the debug info is in a .dwo file that is gone: keep the .dwo files where they were compiled, put a .dwp beside the binary (dwp -e BINARY), or compile without -gsplit-dwarf"
            }
            Missing::DwoMismatch => {
                "the .dwo or .dwp file found is of another compilation (dwo_id differs): keep the one of this build"
            }
            Missing::AltFileNotFound => {
                "a part of the debug info is in a file shared between packages (dwz) that was not found: install the whole -dbgsym or -debuginfo package"
            }
            Missing::AltFileMismatch => {
                "the shared debug file found (dwz) is of another build (build-id differs): install the -dbgsym or -debuginfo package of this version"
            }
            Missing::NoType => "the debug info states no type",
            Missing::OutOfBounds => "the offset lies outside of the type",
            Missing::VirtualBase => {
                "the bytes may be of a virtual base class, which has no fixed place in the object"
            }
            Missing::NoMemory => {
                "its symbols or debug info need more memory than there is for names: raise the bound (--memory)"
            }
            Missing::NoTime => {
                "not looked up, since the run was asked to stop: let it end by itself (--duration) to have all names"
            }
            Missing::TooDeep => "types are nested too deeply to follow",
        })
    }
}

impl Missing {
    /// The reason, of something that a symbol covers.
    pub(crate) fn of_symbol(self) -> Missing {
        match self {
            Missing::NotCovered => Missing::Undescribed,
            other => other,
        }
    }
}

impl std::error::Error for Missing {}

/// What the DWARF reader rejects is damage in the file, whatever the detail.
impl From<gimli::Error> for Missing {
    fn from(_: gimli::Error) -> Missing {
        Missing::Malformed
    }
}

/// Why a file cannot be used at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// The magic number is absent.
    #[error("not an ELF file: its addresses can only be shown as file and offset")]
    NotElf,
    /// The headers point outside of the file.
    #[error("damaged ELF file ({0}): its addresses can only be shown as file and offset")]
    Malformed(String),
    /// 32-bit or big-endian file, or another instruction set.
    #[error(
        "unsupported ELF file ({0}): only 64-bit little-endian x86-64 and aarch64 files are read"
    )]
    Unsupported(String),
}
