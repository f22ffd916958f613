//! `hints.json`: which loads should fetch their line for ownership, for compilers, for people and for CI. One neutral
//! form that every converter and [`cohtrace as`](crate) reads; this is its stored shape, version 1.
//!
//! A load is named three ways, so that each reader takes what it has: the instruction (module, build-id, offset in the
//! file's own addresses), the source (file, line, column, discriminator, inlined-from chain) and the operand as the
//! assembler writes it. Absent is `null`, never 0 or "". Addresses are hexadecimal strings.

use serde::{Deserialize, Serialize};

use super::{
    load::{AARCH64, FETCH_FOR_OWNERSHIP, X86},
    your_code::{OneOffLoads, YourHints},
};
use crate::{coherence::Protocol, printable};

/// Value of [`HintFile::format`]: tells our file from any other JSON.
pub const FORMAT: &str = "cohtrace hints";
/// Version that this build writes, and the newest that it reads.
pub const VERSION: u32 = 1;

/// The whole file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HintFile {
    /// Always [`FORMAT`].
    pub format: String,
    /// [`VERSION`] of the writer.
    pub version: u32,
    /// Version of cohtrace that decided.
    pub tool_version: String,
    /// The session that was decided from, as it was named; of several, the first.
    pub session: Option<String>,
    /// What the session can prove, and by which protocol the savings were counted.
    pub evidence: Evidence,
    /// Loads that should fetch for ownership; those that save most first.
    pub hints: Vec<LoadHint>,
    /// Loads that were looked at and are left alone, those with most to save first.
    pub left: Vec<LeftLoad>,
    /// What a reader must know, as sentences.
    pub caveats: Vec<String>,
}

/// What the decisions rest on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The sessions that were decided from, as they were named.
    #[serde(default)]
    pub sessions: Vec<String>,
    /// Names of the sources: `emulate`, `watch`, ..
    pub sources: Vec<String>,
    /// Every access of the program was seen, in order; else only those of watch windows.
    pub complete_order: bool,
    /// Coherence granule, bytes.
    pub line_bytes: u64,
    /// The protocol, a field for each of its variants.
    #[serde(flatten)]
    pub protocol: Protocol,
    /// Accesses count from here on: `--after`.
    #[serde(default)]
    pub after: Option<String>,
    /// The hints in code that you build: what a rebuild reaches.
    #[serde(default)]
    pub your_code: Option<YourHints>,
    /// One-off loads, among those that are left.
    #[serde(default)]
    pub one_off: Option<OneOffLoads>,
    /// Messages of the protocol that all accesses took.
    pub transactions: u64,
    /// Of those, messages that served loads.
    pub load_transactions: u64,
    /// Messages that all accesses take with all hints of the file together, counted on the same order.
    #[serde(default)]
    pub hinted_transactions: Option<u64>,
    /// Of those, messages that serve loads.
    #[serde(default)]
    pub hinted_load_transactions: Option<u64>,
}

/// A load that should fetch for ownership.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadHint {
    /// `H1`, ..: number in the file.
    pub id: String,
    /// Always [`FETCH_FOR_OWNERSHIP`].
    pub kind: String,
    /// The load.
    pub load: HintedCode,
    /// What it loads into.
    pub class: LoadClass,
    /// The stores that follow, most frequent first.
    pub stores: Vec<FollowingStore>,
    /// The variable, and the field of it.
    pub object: Option<String>,
    /// Field that the load reads.
    pub field: Option<String>,
    /// What the session showed of it, and what the hint changes.
    pub expected: Expected,
    /// Where `cohtrace as` puts the prefetch, by the code of the program that was recorded.
    #[serde(default)]
    pub prefetch: Prefetch,
    /// Instruction for x86-64.
    pub x86: String,
    /// Instruction for aarch64.
    pub aarch64: String,
    /// What to do, for people.
    pub text: String,
}

/// Where the prefetch of a load goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prefetch {
    /// Right in front of the load.
    #[default]
    InFront,
    /// Before the loop, in which the load's address stays the same.
    BeforeLoop,
    /// Nowhere: in its loop it would be repeated for one line.
    LeftOut,
}

/// A load that is left as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeftLoad {
    /// The load.
    pub load: HintedCode,
    /// What it loads into.
    pub class: LoadClass,
    /// What the session showed of it, and what a hint would change.
    pub expected: Expected,
    /// Stable name of the reason, as its judge has it: `costs-more-than-it-saves`, .. Text, since nothing is decided by it and
    /// names of later versions are kept as they are.
    pub reason: String,
    /// The reason, for people.
    pub text: String,
}

/// An instruction, by all of its names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HintedCode {
    /// Path of the module.
    pub module: Option<String>,
    /// Its build-id, hexadecimal.
    pub build_id: Option<String>,
    /// Address of the instruction in the file's own addresses (ELF `p_vaddr`).
    pub offset: Option<String>,
    /// Address in the recorded process.
    pub ip: String,
    /// Function whose code it is, demangled; of inlined code the innermost one.
    pub function: Option<String>,
    /// Functions it was inlined into, outermost last.
    pub inlined_into: Vec<String>,
    /// Source file as the debug information names it.
    pub file: Option<String>,
    /// MD5 digest of that file's text as it was compiled: 32 lower-case hexadecimal digits. Where the debug information has
    /// none (it is in DWARF 5 of clang), of the file as it was found when the hints were made, if the program was there as
    /// recorded and the file was not newer.
    #[serde(default)]
    pub md5: Option<String>,
    /// Line, from 1.
    pub line: Option<u32>,
    /// Column, from 1.
    pub column: Option<u32>,
    /// DWARF discriminator.
    pub discriminator: Option<u32>,
    /// Of inlined code, where the calls are that were inlined: one for each of `inlined_into`, as far as it is known. A
    /// line of a standard library is told by them from its copies.
    #[serde(default)]
    pub inlined_at: Vec<CallPlace>,
    /// The instruction as GNU as writes it: `movq 8(%rdi), %rcx`.
    pub instruction: Option<String>,
    /// Its memory operand as GNU as writes it: `8(%rdi)`, `counter+8(%rip)`. A displacement of 0 is left out, which gcc
    /// writes without a base (`0(,%rax,8)`) and with the bases `%rbp` and `%r13`.
    pub operand: Option<String>,
}

/// Where a call is in the source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallPlace {
    /// Source file as the debug information names it.
    pub file: Option<String>,
    /// Line, from 1.
    pub line: Option<u32>,
    /// Column, from 1.
    pub column: Option<u32>,
}

/// What a load loads into; the paper hints integer loads (LDBIAS) and floating-point loads (FPBIAS) apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadClass {
    /// General registers, flags, or branches.
    Integer,
    /// Vector or x87 registers.
    FloatingPoint,
    /// The code could not be read.
    Unknown,
}

/// A store that follows a load on the same line by the same CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FollowingStore {
    /// The store.
    pub code: HintedCode,
    /// Requests of the load that it followed.
    pub count: u64,
    /// Whether the upgrade is hidden by the store buffer.
    pub kind: StoreKind,
}

/// What kind of store it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoreKind {
    /// Only a store: the store buffer hides its upgrade.
    Plain,
    /// One instruction reads and writes without a lock.
    ReadModifyWrite,
    /// A locked read-modify-write, or an exchange: the CPU waits for the upgrade.
    Atomic,
    /// A compare-and-swap, mostly of a loop that starts with the load: the CPU waits.
    CompareAndSwap,
    /// A plain store with a fence or a locked instruction right behind it: the CPU waits.
    Fenced,
    /// The code could not be read.
    Unknown,
}

/// Counts of one load over the log, and what a hint changes. All but the executions are of requests and messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// Executions of the load.
    pub executions: u64,
    /// Of those, executions that missed: each would fetch for ownership.
    pub requests: u64,
    /// Of the requests, those that the next request for the line followed by the same CPU, for ownership: the filter of
    /// SWIFT section 4.1.
    pub followed_by_store: u64,
    /// Of the requests: the line was in no other cache.
    pub found_idle: u64,
    /// Of the requests: other CPUs had copies, none owned it.
    pub found_shared: u64,
    /// Of the requests: another CPU owned it and had not written.
    pub found_clean: u64,
    /// Of the requests: another CPU owned it and had written.
    pub found_dirty: u64,
    /// Loads that would miss, or cost more, because of the hint, other than its own misses.
    pub readers_hurt: u64,
    /// Messages that the hint alone saves, in episodes (from a miss of the load until the line is again as it would be
    /// without the hint) that save some.
    pub saved: u64,
    /// Messages that the hint alone adds, in episodes that add some.
    pub lost: u64,
}

impl Expected {
    /// Messages saved less messages added; negative where the hint costs.
    pub fn net(&self) -> i64 {
        let difference = i128::from(self.saved) - i128::from(self.lost);
        difference.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

/// Why a text is no hints file that can be used.
#[derive(Debug, thiserror::Error)]
pub enum HintFileError {
    /// Not JSON, or not of this shape.
    #[error("not a hints file: {0}")]
    Malformed(#[from] serde_json::Error),
    /// Something else in JSON.
    #[error("not a hints file: its format is {0:?}, not \"cohtrace hints\"")]
    NotOurs(String),
    /// Written by a newer version.
    #[error("hints of version {found}, and this cohtrace reads up to {VERSION}: update cohtrace")]
    Newer {
        /// Version of the file.
        found: u32,
    },
}

impl LoadHint {
    /// A hint for a load of which nothing else is known yet; set the public fields.
    pub fn new(id: String, load: HintedCode) -> LoadHint {
        LoadHint {
            id,
            kind: FETCH_FOR_OWNERSHIP.to_owned(),
            load,
            class: LoadClass::Unknown,
            stores: Vec::new(),
            object: None,
            field: None,
            expected: Expected::default(),
            prefetch: Prefetch::default(),
            x86: X86.to_owned(),
            aarch64: AARCH64.to_owned(),
            text: String::new(),
        }
    }
}

impl Default for HintFile {
    /// A file by this version of which nothing else is known yet; set the public fields.
    fn default() -> HintFile {
        HintFile {
            format: FORMAT.to_owned(),
            version: VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            session: None,
            evidence: Evidence::default(),
            hints: Vec::new(),
            left: Vec::new(),
            caveats: Vec::new(),
        }
    }
}

impl HintFile {
    /// Reads a file's text.
    pub fn parse(text: &str) -> Result<HintFile, HintFileError> {
        #[derive(Deserialize)]
        struct Head {
            #[serde(default)]
            format: String,
            #[serde(default)]
            version: u32,
        }
        let head: Head = serde_json::from_str(text)?;
        if head.format != FORMAT {
            return Err(HintFileError::NotOurs(head.format));
        }
        if head.version > VERSION {
            return Err(HintFileError::Newer {
                found: head.version,
            });
        }
        Ok(serde_json::from_str(text)?)
    }

    /// The file's text, safe to print.
    pub fn render(&self) -> String {
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        printable::json(&text) + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> HintFile {
        let load = HintedCode {
            ip: "0x401136".to_owned(),
            line: Some(7),
            operand: Some("8(%rdi)".to_owned()),
            ..HintedCode::default()
        };
        HintFile {
            session: Some("a.coh".to_owned()),
            evidence: Evidence {
                sources: vec!["emulate".to_owned()],
                complete_order: true,
                line_bytes: 64,
                ..Evidence::default()
            },
            hints: vec![LoadHint {
                class: LoadClass::FloatingPoint,
                stores: vec![FollowingStore {
                    code: HintedCode::default(),
                    count: 9,
                    kind: StoreKind::CompareAndSwap,
                }],
                expected: Expected {
                    saved: 20,
                    lost: 2,
                    ..Expected::default()
                },
                ..LoadHint::new("H1".to_owned(), load)
            }],
            ..HintFile::default()
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let text = file().render();
        assert_eq!(HintFile::parse(&text).unwrap(), file());
        assert!(text.contains("\"compare-and-swap\"") && text.contains("\"floating-point\""));
    }

    #[test]
    fn words_of_later_versions_are_kept_where_they_decide_nothing() {
        let mut later = file();
        "of a later version".clone_into(&mut later.hints[0].kind);
        later.left.push(LeftLoad {
            load: HintedCode::default(),
            class: LoadClass::Unknown,
            expected: Expected::default(),
            reason: "of-a-later-version".to_owned(),
            text: String::new(),
        });
        let text = later.render();
        assert_eq!(HintFile::parse(&text).expect("read").render(), text);
        let refused = HintFile::parse(&text.replace("\"in-front\"", "\"behind\""));
        let why = refused.expect_err("a place decides").to_string();
        assert!(
            why.contains("unknown variant `behind`, expected one of `in-front`"),
            "{why}"
        );
    }

    #[test]
    fn newer_and_other_files_are_refused_with_the_reason() {
        let mut newer = file();
        newer.version = VERSION + 1;
        let refused = |text: &str| HintFile::parse(text).unwrap_err().to_string();
        assert!(refused(&newer.render()).contains("version 2"));
        assert!(refused("{\"format\": \"other\"}").contains("\"other\""));
        assert!(refused("{}").contains("not a hints file"));
        assert!(refused("nonsense").contains("not a hints file"));
    }

    #[test]
    fn what_a_hint_costs_is_negative() {
        let expected = |saved, lost| Expected {
            saved,
            lost,
            ..Expected::default()
        };
        assert_eq!(expected(20, 2).net(), 18);
        assert_eq!(expected(2, 20).net(), -18);
        assert_eq!(expected(u64::MAX, 0).net(), i64::MAX);
    }
}
