//! Options of `hints`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{AnalysisArgs, Color, MemoryArgs, PairArgs};
use crate::{coherence::Protocol, finding::Filter, hint::file::StoreKind};

/// `hints`.
#[derive(Debug, Args)]
pub struct HintsArgs {
    /// Session directory (NAME.coh), or a hints.json.
    #[arg(value_name = "INPUT")]
    pub input: PathBuf,
    /// How to print.
    #[arg(long, value_enum, default_value_t = HintFormat::Json)]
    pub format: HintFormat,
    /// Write to a file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Only hints that save at least so many messages more than they add.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub min_saved: Option<i64>,
    /// Only hints for code of the module with this file name: leaves out libraries. Repeat for more.
    #[arg(long, value_name = "NAME")]
    pub module: Vec<String>,
    /// Only hints whose load is followed by this kind of store most often. Repeat, or separate by commas, for more.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub kind: Vec<FollowedBy>,
    /// In text, also the loads that are left alone, with the reason.
    #[arg(short, long)]
    pub verbose: bool,
    /// Edit sources too that are newer than the program, or whose program is not here: hints may be on other lines then.
    #[arg(long)]
    pub any_source: bool,
    /// Exit with code 1 when there is a hint.
    #[arg(long)]
    pub check: bool,
    /// When to use colours in text.
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
    /// How to decide which loads of a session to hint.
    #[arg(long, value_enum, default_value_t = HintFilter::Ours, default_value_if("model", "swift2005", "swift"))]
    pub filter: HintFilter,
    #[command(flatten)]
    pub protocol: ProtocolArgs,
    #[command(flatten)]
    pub analysis: AnalysisArgs,
    #[command(flatten)]
    pub memory: MemoryArgs,
    #[command(flatten)]
    pub pairs: PairArgs,
}

/// How to decide which loads to hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HintFilter {
    /// As SWIFT section 4.1: each load whose request was once followed, as the next request for its line, by one for
    /// ownership by the same processor.
    Swift,
    /// Loads whose hints save more messages than they add, counted by replaying the session with all of them.
    Ours,
}

impl HintFilter {
    /// As the decision takes it.
    pub fn filter(self) -> Filter {
        match self {
            HintFilter::Swift => Filter::Swift,
            HintFilter::Ours => Filter::Ours,
        }
    }
}

/// A published setting, by name: what other options are where they are not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Model {
    /// Collard, Jouppi and Yehia, PPoPP 2005: `--filter swift --line-size 128 --relinquish`.
    Swift2005,
}

/// The variant of the protocol.
#[derive(Debug, Clone, Copy, Args)]
pub struct ProtocolArgs {
    /// The setting of a paper, where other options do not say otherwise.
    #[arg(long, value_enum)]
    pub model: Option<Model>,
    /// A read of a line that no cache has gives the only copy, as MESI machines do: its store needs no request.
    #[arg(long)]
    pub exclusive_on_first_read: bool,
    /// A read of a line that another processor wrote takes it over with its ownership.
    #[arg(long)]
    pub migratory: bool,
    /// A read of a line that another processor wrote leaves that processor without a copy.
    #[arg(long, default_value_if("model", "swift2005", "true"))]
    pub relinquish: bool,
}

impl ProtocolArgs {
    /// As the model takes it.
    pub fn protocol(self) -> Protocol {
        Protocol {
            exclusive_on_first_read: self.exclusive_on_first_read,
            migratory: self.migratory,
            relinquish: self.relinquish,
        }
    }
}

/// How to print hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HintFormat {
    /// hints.json, which other tools and the other formats are made from.
    Json,
    /// file:line:col: message, as compilers print.
    Text,
    /// SARIF 2.1.0: hints, and the findings of the session.
    Sarif,
    /// Fixes in YAML, for clang-apply-replacements.
    ClangTidy,
    /// Unified diff, for patch -p1 and git apply in this directory.
    Diff,
}

/// What follows a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FollowedBy {
    /// A store, whose request the store buffer hides.
    Plain,
    /// One instruction that reads and writes, without a lock.
    ReadModifyWrite,
    /// A locked instruction or an exchange.
    Atomic,
    /// A compare-and-swap.
    CompareAndSwap,
    /// A store with a fence behind it.
    Fenced,
    /// What could not be read.
    Unknown,
}

impl FollowedBy {
    /// As the file says it.
    pub fn kind(self) -> StoreKind {
        match self {
            FollowedBy::Plain => StoreKind::Plain,
            FollowedBy::ReadModifyWrite => StoreKind::ReadModifyWrite,
            FollowedBy::Atomic => StoreKind::Atomic,
            FollowedBy::CompareAndSwap => StoreKind::CompareAndSwap,
            FollowedBy::Fenced => StoreKind::Fenced,
            FollowedBy::Unknown => StoreKind::Unknown,
        }
    }
}
