//! Rounds in which each contender takes each place in turn, and the tables made of them.

use std::{collections::BTreeMap, path::Path, process::Command};

use anyhow::{Context as _, Result};
use cohtrace_tests::figures::{Spread, Table, spread};

use crate::{
    addresses, agreement,
    contender::{Contender, Cost, Kind},
};

/// The first of them is ours; the others are compared with it.
const CONTENDERS: [(Kind, &str); 8] = [
    (Kind::Library("symbolizer"), "symbolizer"),
    (Kind::Library("symbolizer-32M"), "symbolizer, 32 MiB limit"),
    (Kind::Library("addr2line-raw"), "addr2line crate, raw names"),
    (Kind::Library("addr2line"), "addr2line crate, demangled"),
    (Kind::Library("blazesym"), "blazesym crate"),
    (Kind::Tool("llvm-symbolizer"), "llvm-symbolizer"),
    (Kind::Tool("llvm-addr2line"), "llvm-addr2line"),
    (Kind::Tool("addr2line"), "binutils addr2line"),
];

/// Addresses that the tools are asked for: a million would take minutes.
const FOR_TOOLS: usize = 20_000;
/// binutils takes several times as long as the others for each.
const FOR_BINUTILS: usize = 2_000;
/// Addresses whose answers are compared.
const COMPARED: usize = 5_000;
const THOUSAND: usize = 1_000;

/// One round of one contender.
struct Measured {
    first: Cost,
    thousand: Cost,
    /// Per address.
    pass: f64,
    again: f64,
    peak_mib: f64,
    anonymous_mib: f64,
}

pub fn run(file: &Path, rounds: usize, count: usize) -> Result<()> {
    let chosen = addresses::choose(file, count)?;
    let directory = tempfile::tempdir()?;
    let list = directory.path().join("addresses");
    addresses::write(&list, &chosen)?;
    println!(
        "{}: {} MB; {count} addresses for libraries, {FOR_TOOLS} for tools ({FOR_BINUTILS} for binutils), {rounds} rounds.",
        file.file_name().unwrap_or_default().to_string_lossy(),
        std::fs::metadata(file)?.len() / 1_000_000,
    );
    let present: Vec<(Kind, &str)> = CONTENDERS.into_iter().filter(is_present).collect();
    let mut measured: Vec<Vec<Measured>> = present.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for place in 0..present.len() {
            let which = (round + place) % present.len();
            let (kind, name) = present[which];
            let one = once(kind, file, &list, &chosen).with_context(|| name.to_owned())?;
            measured[which].push(one);
        }
    }
    let heading = [
        "contender",
        "first, ms CPU",
        "first, ms wall",
        "first 1,000, ms CPU",
        "all, us CPU each",
        "again, us CPU each",
        "peak MiB",
        "without files",
    ];
    let mut table = Table::new(&heading);
    for ((_, name), rounds) in present.iter().zip(&measured) {
        let column = |of: &dyn Fn(&Measured) -> f64, decimals| {
            spread(&rounds.iter().map(of).collect::<Vec<_>>(), decimals)
        };
        table.row([
            (*name).to_owned(),
            column(&|m| m.first.cpu.as_secs_f64() * 1e3, 1),
            column(&|m| m.first.wall.as_secs_f64() * 1e3, 1),
            column(&|m| (m.first.cpu + m.thousand.cpu).as_secs_f64() * 1e3, 1),
            column(&|m| m.pass, 3),
            column(&|m| m.again, 3),
            column(&|m| m.peak_mib, 0),
            column(&|m| m.anonymous_mib, 0),
        ]);
    }
    print!("{table}");
    println!(
        "Processor time. `all` starts with nothing read but what the first 1,000 needed; `again` asks the same once more."
    );
    ratios(&present, &measured);
    compare(&present, file, &list, &chosen)
}

fn is_present(contender: &(Kind, &str)) -> bool {
    match contender.0 {
        Kind::Library(_) => true,
        Kind::Tool(tool) => {
            let found = Command::new(tool).arg("--version").output().is_ok();
            if !found {
                println!("SKIPPED: {tool} is not installed");
            }
            found
        }
    }
}

fn once(kind: Kind, file: &Path, list: &Path, addresses: &[u64]) -> Result<Measured> {
    let count = match kind {
        // Decoding again and again, it is as slow as the tools.
        Kind::Library("symbolizer-32M") => addresses.len().min(FOR_TOOLS),
        Kind::Library(_) => addresses.len(),
        Kind::Tool("addr2line") => addresses.len().min(FOR_BINUTILS),
        Kind::Tool(_) => addresses.len().min(FOR_TOOLS),
    };
    let mut contender = Contender::start(kind, file, list)?;
    let first = contender.ask(addresses, 0, 1)?;
    let thousand = contender.ask(addresses, 1, THOUSAND)?;
    let each = |cost: Cost, count: usize| cost.cpu.as_secs_f64() * 1e6 / count as f64;
    let pass = each(contender.ask(addresses, THOUSAND, count)?, count - THOUSAND);
    let again = each(contender.ask(addresses, 0, count)?, count);
    let (peak, anonymous) = contender.memory()?;
    Ok(Measured {
        first,
        thousand,
        pass,
        again,
        peak_mib: peak as f64 / 1024.0,
        anonymous_mib: anonymous as f64 / 1024.0,
    })
}

/// Theirs over ours, of the same round.
fn ratios(present: &[(Kind, &str)], measured: &[Vec<Measured>]) {
    let mut table = Table::new(&["times ours", "first", "first 1,000", "all", "again", "peak"]);
    for ((_, name), theirs) in present.iter().zip(measured).skip(1) {
        let column = |of: &dyn Fn(&Measured) -> f64| {
            let ratios = theirs
                .iter()
                .zip(&measured[0])
                .map(|(theirs, ours)| of(theirs) / of(ours));
            Spread::of(&ratios.collect::<Vec<_>>())
                .map_or_else(|| "-".to_owned(), |spread| spread.text(2))
        };
        table.row([
            (*name).to_owned(),
            column(&|m| m.first.cpu.as_secs_f64()),
            column(&|m| (m.first.cpu + m.thousand.cpu).as_secs_f64()),
            column(&|m| m.pass),
            column(&|m| m.again),
            column(&|m| m.peak_mib),
        ]);
    }
    print!("{table}");
}

/// Answers to the same addresses, beside ours.
fn compare(present: &[(Kind, &str)], file: &Path, list: &Path, addresses: &[u64]) -> Result<()> {
    let count = COMPARED.min(addresses.len());
    let answers = |kind: Kind| -> Result<_> {
        let count = if kind == Kind::Tool("addr2line") {
            count.min(FOR_BINUTILS)
        } else {
            count
        };
        Contender::start(kind, file, list)?.answers(addresses, 0, count)
    };
    let (own, _) = present[0];
    let ours = answers(own)?;
    let mut table = Table::new(&[
        "differ from ours, of the first",
        "compared",
        "function",
        "file or line",
        "inlined depth",
    ]);
    let mut examples = String::new();
    for &(kind, name) in &present[1..] {
        let theirs = answers(kind)?;
        let mut shown: BTreeMap<String, usize> = BTreeMap::new();
        let found = agreement::compare(&ours, &theirs, |index, what| {
            let shown = shown.entry(what.to_owned()).or_default();
            *shown += 1;
            if *shown <= 2 {
                let first = |answer: &agreement::Answer| {
                    answer.first().map_or_else(String::new, |place| {
                        format!(
                            "{} frames, {} {}:{}",
                            answer.len(),
                            place.function,
                            place.file,
                            place.line
                        )
                    })
                };
                examples += &format!(
                    "{name}, {what} at {:#x}:\n  ours   {}\n  theirs {}\n",
                    addresses[index],
                    first(&ours[index]),
                    first(&theirs[index])
                );
            }
        });
        let percent = |count: usize| {
            format!(
                "{count} ({:.2}%)",
                100.0 * count as f64 / found.compared.max(1) as f64
            )
        };
        table.row([
            name.to_owned(),
            found.compared.to_string(),
            percent(found.function),
            percent(found.place),
            percent(found.depth),
        ]);
    }
    print!("{table}");
    println!(
        "Names by their last part, files by theirs: styles of scopes and directories differ between tools."
    );
    print!("{examples}");
    Ok(())
}
