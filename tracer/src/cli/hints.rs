//! `hints`: loads that should fetch for ownership, in each form.

use std::{fs, io::Read, path::Path, process::ExitCode};

use anyhow::{Context as _, Result, bail};

use super::{
    args::{HintFormat, HintsArgs},
    deciding::{self, DecideOptions},
    output, report,
    source_files::SourceFiles,
};
use crate::{
    hint::file::HintFile,
    report::load_hints::{
        self, Edits, Sources, render_clang_tidy, render_diff, render_sarif, render_text, store_kind,
    },
};

/// Largest hints file: far more loads than a program has.
const MOST_BYTES: u64 = 1 << 30;

/// Prints the hints.
pub(super) fn run(args: &HintsArgs) -> Result<ExitCode> {
    output::check(args.output.as_deref())?;
    let session = match &args.input[..] {
        [one] if one.is_dir() => Some(one),
        _ => None,
    };
    let mut file = match &args.input[..] {
        [one] if session.is_none() => read(one)?,
        sessions => deciding::of_sessions(sessions, &options(args))?,
    };
    select(&mut file, args);
    let sources = SourceFiles::new(args.any_source).context("the current directory")?;
    let rendered = match args.format {
        HintFormat::Json => file.render(),
        HintFormat::Text => {
            let options = output::text_options(args.color, args.output.as_deref());
            let yours = args.your_code.your_code();
            render_text(&file, &sources, &yours, options, args.verbose)
        }
        HintFormat::Sarif => {
            let findings = session.map(|session| {
                let pairs = args.pairs.thresholds();
                report::of_session(session, &args.analysis, pairs, &args.reading)
            });
            render_sarif(Some(&file), findings.transpose()?.as_ref(), &sources)
        }
        HintFormat::ClangTidy => edited(&file, &sources, render_clang_tidy),
        HintFormat::Diff => edited(&file, &sources, render_diff),
    };
    output::write_text(&rendered, args.output.as_deref())?;
    if file.hints.is_empty() {
        output::say("cohtrace: no load hints");
    }
    let found = args.check && !file.hints.is_empty();
    Ok(ExitCode::from(u8::from(found)))
}

/// How to decide.
fn options(args: &HintsArgs) -> DecideOptions {
    DecideOptions {
        filter: args.filter.filter(),
        line_size: report::line_size(args.analysis.line_size),
        protocol: args.protocol.protocol(),
        policy: args.policy.policy(),
        limits: args.limits.limits(),
        after: args.after.after.clone(),
        your_code: Some(args.your_code.your_code()),
        quiet: args.reading.quiet,
    }
}

/// A hints file as it is stored.
fn read(path: &Path) -> Result<HintFile> {
    let named = || path.display().to_string();
    let mut text = String::new();
    let file = fs::File::open(path).with_context(named)?;
    let read = file
        .take(MOST_BYTES + 1)
        .read_to_string(&mut text)
        .with_context(named)?;
    if read as u64 > MOST_BYTES {
        bail!("{}: too large for a hints file", named());
    }
    HintFile::parse(&text).with_context(named)
}

/// Drops the hints that were not asked for.
fn select(file: &mut HintFile, args: &HintsArgs) {
    let decided = file.hints.len();
    if let Some(least) = args.min_saved {
        file.hints.retain(|hint| hint.expected.net() >= least);
    }
    let yours = args.your_code.your_code();
    file.hints.retain(|hint| yours.is_named(&hint.load));
    if !args.kind.is_empty() {
        let asked: Vec<_> = args.kind.iter().map(|kind| kind.kind()).collect();
        file.hints.retain(|hint| asked.contains(&store_kind(hint)));
    }
    if file.hints.len() < decided {
        // Sums are of the hints that the file has, or of none.
        let evidence = &mut file.evidence;
        let here = (evidence.your_code).filter(|counted| {
            let all = file.hints.iter().all(|hint| yours.has_hint(hint));
            all && counted.hints == file.hints.len() as u64
        });
        evidence.your_code = here;
        evidence.hinted_transactions = here.map(|here| here.transactions);
        evidence.hinted_load_transactions = here.map(|here| here.load_transactions);
    }
}

/// The edits; hints that get none are told on standard error.
fn edited(
    file: &HintFile,
    sources: &dyn Sources,
    render: fn(&Edits, &dyn Sources) -> String,
) -> String {
    let edits = load_hints::edits(file, sources);
    output::say_all(&load_hints::omitted_lines(&edits));
    render(&edits, sources)
}
