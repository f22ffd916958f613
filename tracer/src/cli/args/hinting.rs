//! Options of `hints`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{AnalysisArgs, Color, PairArgs, ReadingArgs};
use crate::{
    cli::{counting::After, deciding::OwnLimits},
    coherence::Protocol,
    finding::{Filter, Policy},
    hint::{file::StoreKind, your_code::YourCode},
};

/// `hints`.
#[derive(Debug, Args)]
pub(crate) struct HintsArgs {
    /// Session directories (NAME.coh) of one program, or a hints.json. Several runs with different inputs teach more than
    /// one.
    #[arg(value_name = "INPUT", required = true)]
    pub input: Vec<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t = HintFormat::Json)]
    pub format: HintFormat,
    /// Write to a file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Only hints that save at least so many messages more than they add.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub min_saved: Option<i64>,
    #[command(flatten)]
    pub your_code: YourCodeArgs,
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
    /// Of several sessions, what a hint must do.
    #[arg(long, value_enum, default_value_t = HintPolicy::Each)]
    pub policy: HintPolicy,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub after: AfterArgs,
    #[command(flatten)]
    pub protocol: ProtocolArgs,
    #[command(flatten)]
    pub analysis: AnalysisArgs,
    #[command(flatten)]
    pub reading: ReadingArgs,
    #[command(flatten)]
    pub pairs: PairArgs,
}

/// What a rebuild reaches.
#[derive(Debug, Clone, Args)]
pub(crate) struct YourCodeArgs {
    /// The code that you build is that of modules with this file name [default: all with source lines, but for the
    /// system's libraries]; hints leaves out the other hints. Repeat for more.
    #[arg(long, value_name = "NAME")]
    pub module: Vec<String>,
    /// Count in it also what `cohtrace as` leaves out, since its prefetch would be repeated for one line in a loop: as
    /// `cohtrace as --everywhere` builds.
    #[arg(long)]
    pub everywhere: bool,
}

impl YourCodeArgs {
    /// As the decision takes it.
    pub(crate) fn your_code(&self) -> YourCode {
        YourCode::new(&self.module).everywhere(self.everywhere)
    }
}

/// How several sessions decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HintPolicy {
    /// It costs messages in none of them, and saves in their sum.
    Each,
    /// It saves in their sum.
    Sum,
}

impl HintPolicy {
    /// As the decision takes it.
    pub(crate) fn policy(self) -> Policy {
        match self {
            HintPolicy::Each => Policy::Each,
            HintPolicy::Sum => Policy::Sum,
        }
    }
}

/// Which hints are too dear, or too rare.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct LimitArgs {
    /// Most percent by which all hints together may raise the messages that loads wait for. A hint moves messages from
    /// stores, which wait in a buffer, to loads, which are waited for: 1, the default, keeps that small; more lets hints pass
    /// that save many messages in all.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub load_growth: Option<f64>,
    /// Leave loads alone, as one-off, that ask for their line fewer times than this [default: 8, and none that saves 1 %
    /// of all messages; 1 leaves none alone].
    #[arg(long, value_name = "N")]
    pub min_requests: Option<u64>,
    /// Leave loads alone, as seldom-stored, of whose misses a store follows fewer than these, as the line's next request
    /// [default: 50]. Of others most prefetches take a line that is not written next; they may save messages all the same.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub min_stored: Option<f64>,
}

impl LimitArgs {
    /// As the decision takes them.
    pub(crate) fn limits(self) -> OwnLimits {
        OwnLimits {
            load_growth: self.load_growth.map(|percent| percent / 100.0),
            requests: self.min_requests,
            stored: self.min_stored.map(|percent| percent / 100.0),
        }
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    match number.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => Err("not a number of percent, such as 1 or 12.5".to_owned()),
    }
}

/// From where on accesses count.
#[derive(Debug, Clone, Args)]
pub(crate) struct AfterArgs {
    /// Count messages from the first instruction of this function on, in any thread, inlined or not; or, with
    /// second-thread, from the first access of a second thread on. What was before changes only where lines are.
    #[arg(long, value_name = "FUNCTION")]
    pub after: Option<After>,
}

/// How to decide which loads to hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HintFilter {
    /// As SWIFT section 4.1: each load whose request was once followed, as the next request for its line, by one for
    /// ownership by the same processor.
    Swift,
    /// Loads whose hints save more messages than they add, counted by replaying the session with all of them.
    Ours,
}

impl HintFilter {
    /// As the decision takes it.
    pub(crate) fn filter(self) -> Filter {
        match self {
            HintFilter::Swift => Filter::Swift,
            HintFilter::Ours => Filter::Ours,
        }
    }
}

/// A published setting, by name: what other options are where they are not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Model {
    /// Collard, Jouppi and Yehia, PPoPP 2005: `--filter swift --line-size 128 --relinquish`.
    Swift2005,
}

/// The variant of the protocol.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct ProtocolArgs {
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
    pub(crate) fn protocol(self) -> Protocol {
        Protocol {
            exclusive_on_first_read: self.exclusive_on_first_read,
            migratory: self.migratory,
            relinquish: self.relinquish,
        }
    }
}

/// How to print hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HintFormat {
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
pub(crate) enum FollowedBy {
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
    pub(crate) fn kind(self) -> StoreKind {
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
