//! The printed forms of whole reports, kept in the source and blessed in place.
#![allow(
    clippy::needless_raw_string_hashes,
    reason = "expect-test writes its blocks with them"
)]

mod agree;
mod compiled;
mod emulated;
mod findings;
mod gains;
mod hostile;
mod latent;
mod layout;
mod objects;
mod pipeline;
mod pmu;
mod rows;
mod runs;
mod schema;
mod spread;
mod waits;
mod watched;

use expect_test::Expect;

use super::{
    fixture::{FakeNames, LINE, judgement, object, site, with_bytes},
    model::{Caveat, Report, Weight},
    printable::{columns, is_hostile, printable},
    text::{self, TextOptions, WIDTH},
};
use crate::{
    access::Op,
    finding::{Judgement, Verdict},
    names::{Author, Language, MemberLayout, ObjectKind, ObjectLayout, Outcome, WordUse},
};

/// The plain text, after checks that hold for every report in every style.
fn plain(report: &Report) -> String {
    for n in 0..8 {
        let (colour, unicode, verbose) = (n & 1 != 0, n & 2 != 0, n & 4 != 0);
        let options = TextOptions {
            colour,
            unicode,
            verbose,
        };
        let text = text::render(report, options);
        let mut bare = String::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once("\x1b[") {
            assert!(colour, "an escape without colours");
            bare.push_str(before);
            rest = after.split_once('m').expect("every colour code ends").1;
        }
        bare.push_str(rest);
        for line in bare.lines() {
            assert!(columns(line) <= WIDTH, "{} columns: {line}", columns(line));
            assert_eq!(line, line.trim_end());
        }
        assert!(!bare.chars().any(|c| c != '\n' && is_hostile(c)));
        assert!(unicode || bare.is_ascii(), "{bare}");
        assert!(bare.ends_with('\n') && !bare.contains("\n\n\n"));
        let must_be_known = |caveat: &Caveat| caveat.weight == Weight::Reading;
        let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for caveat in report
            .caveats
            .iter()
            .filter(|c| verbose || must_be_known(c))
        {
            let words = one_line(&printable(&caveat.text, !unicode));
            assert!(one_line(&bare).contains(&words), "{words}");
        }
        let is_clean = report.findings.is_empty() && !report.insignificant.iter().any(|f| f.moves);
        if is_clean && !verbose && !report.caveats.iter().any(must_be_known) {
            // One of them for a name that fills a line.
            assert!(bare.lines().count() <= 9, "{bare}");
        }
    }
    text::render(report, TextOptions::default())
}

/// The plain text with everything that is known.
fn verbose(report: &Report) -> String {
    let options = TextOptions {
        verbose: true,
        ..TextOptions::default()
    };
    text::render(report, options)
}

fn check(report: &Report, expected: &Expect) {
    expected.assert_eq(&plain(report));
}

fn two_counters() -> (Judgement, FakeNames) {
    let mut stats = object("stats", ObjectKind::Global, LINE, 24);
    stats.type_name = Some("struct stats".to_owned());
    (stats.file, stats.line) = (Some("/src/demo/demo.c".to_owned()), Some(12));
    stats.language = Some(Language::C);
    let member = |name: &str, offset| MemberLayout {
        name: name.to_owned(),
        offset,
        size: 8,
        type_name: Some("unsigned long".to_owned()),
        ..MemberLayout::default()
    };
    stats.layout = Some(ObjectLayout {
        author: Author::Program,
        size: 24,
        element: None,
        members: vec![member("hits", 0), member("misses", 8), member("total", 16)],
    });
    let names = FakeNames {
        objects: vec![stats],
        ..FakeNames::default()
    }
    .field(0, 8, 0, ".hits")
    .field(8, 16, 0, ".misses")
    .code(0x401136, "count_hits", "/src/demo/demo.c", 31, Language::C)
    .code(
        0x401166,
        "count_misses",
        "/src/demo/demo.c",
        40,
        Language::C,
    )
    .comm(4001, "worker")
    .comm(4002, "worker");
    let sites = vec![
        site(0, 8, Op::Rmw, 4001, 0x401136, 2400, 300),
        site(8, 8, Op::Rmw, 4002, 0x401166, 2200, 100),
    ];
    (
        with_bytes(judgement(Verdict::FalseSharing, 0.0, sites), 0, 0xffff),
        names,
    )
}

fn one_atomic() -> (Judgement, FakeNames) {
    let mut total = object("demo::TOTAL", ObjectKind::Global, LINE + 8, 8);
    total.type_name = Some("core::sync::atomic::AtomicU64".to_owned());
    total.language = Some(Language::Rust);
    let mut names = FakeNames {
        objects: vec![total],
        ..FakeNames::default()
    }
    .field(8, 16, 0, "")
    .code(
        0x401200,
        "demo::work",
        "/src/demo/main.rs",
        17,
        Language::Rust,
    )
    .does(
        0x401200,
        WordUse::Add {
            step: Some(1),
            outcome: Outcome::Unused,
        },
    );
    if let Some(code) = names.code.get_mut(&0x401200) {
        code.inlined = vec!["core::sync::atomic::AtomicU64::fetch_add".to_owned()];
    }
    let mut sites = Vec::new();
    for tid in 4001..=4004 {
        names = names.comm(tid, "demo-worker");
        let mut site = site(8, 8, Op::Rmw, tid, 0x401200, 1500, 40);
        site.site.locked = true;
        sites.push(site);
    }
    (
        with_bytes(judgement(Verdict::TrueSharing, 1.0, sites), 0xff00, 0),
        names,
    )
}
