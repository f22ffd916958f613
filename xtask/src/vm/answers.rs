//! What each command must have answered in a guest: a column of the table each.
//!
//! Sampled findings are asked for at any cost (`--threshold 0`) and without windows: under software emulation no store
//! waits for a line, so a share of the time says nothing there, and most hits of breakpoints are missed. What must be
//! there is what does not depend on either: who shares what, by name, as the keys of the workloads say.

use anyhow::{Context as _, Result, ensure};
use cohtrace_tests::{
    answer::{Answer, Variant},
    compare::differences,
    report::Report,
    workload,
};
use serde_json::Value;

use super::{Guest, records::Records};

/// A column.
#[derive(Clone, Copy)]
pub(super) struct Column {
    pub name: &'static str,
    pub about: &'static str,
    check: fn(&Records, Guest) -> Result<()>,
    /// Why another answer is right in some guests; `check` then wants that one.
    known: fn(Guest) -> Option<&'static str>,
}

/// How a column came out.
pub(super) enum Cell {
    Right,
    /// It is what must be there, which is not what elsewhere is; why.
    Known(&'static str),
    Wrong(String),
}

impl Cell {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Cell::Right => "ok",
            Cell::Known(_) => "known",
            Cell::Wrong(_) => "WRONG",
        }
    }
}

/// With one CPU, threads take turns on it, and no line moves.
const ONE_CPU: &str = "threads take turns on one CPU, so nothing is shared: what would be a finding must be listed as none, \
                       with this as the reason";
/// The reason in reports.
const ONE_CPU_SAID: &str = "all of it ran on one CPU";

fn one_cpu(guest: Guest) -> Option<&'static str> {
    (guest.machine.cpus == 1).then_some(ONE_CPU)
}

fn nothing(_: Guest) -> Option<&'static str> {
    None
}

/// In the order in which the guest runs them.
pub(super) static COLUMNS: [Column; 9] = [
    Column {
        name: "doctor",
        about: "kernel, CPUs and nodes are what they are, and all that the tool tries works",
        check: doctor,
        known: nothing,
    },
    Column {
        name: "measure",
        about: "pairs of CPUs are looked at, and some of them measured; what there was no time for is said",
        check: measure,
        known: nothing,
    },
    Column {
        name: "attach",
        about: "a falsely shared variable by its fields, functions and lines; none of its padded twin",
        check: attach,
        known: one_cpu,
    },
    Column {
        name: "record",
        about: "record, then report: the same, and each sample accounted for",
        check: record,
        known: one_cpu,
    },
    Column {
        name: "heap",
        about: "--heap: the line that allocated what is falsely shared",
        check: heap,
        known: one_cpu,
    },
    Column {
        name: "all",
        about: "record -a, then report: the same of a process among all",
        check: all,
        known: one_cpu,
    },
    Column {
        name: "watch",
        about: "--watch: windows that trap stores to the named field, and to no other",
        check: watch,
        known: nothing,
    },
    Column {
        name: "kill",
        about: "record --heap killed: no program, map, link, breakpoint or probe is left, the target runs, the session reads",
        check: kill,
        known: nothing,
    },
    Column {
        name: "log",
        about: "the kernel found no fault of its own, and the guest came to its end",
        check: log,
        known: nothing,
    },
];

impl Column {
    pub(super) fn judge(&self, records: &Records, guest: Guest) -> Cell {
        match ((self.check)(records, guest), (self.known)(guest)) {
            (Err(why), _) => Cell::Wrong(format!("{why:#}")),
            (Ok(()), Some(reason)) => Cell::Known(reason),
            (Ok(()), None) => Cell::Right,
        }
    }
}

fn doctor(records: &Records, guest: Guest) -> Result<()> {
    let said = records.json("doctor")?;
    let machine = &said["machine"];
    let version = &machine["kernel"]["version"];
    let version = format!("{}.{}", version[0], version[1]);
    equal("kernel", &version, &guest.kernel.version.to_owned())?;
    let cpus = machine["cpus_online"].as_array().map(Vec::len);
    equal("CPUs online", &cpus, &Some(guest.machine.cpus))?;
    let nodes = machine["numa_nodes"].as_u64();
    equal("NUMA nodes", &nodes, &Some(guest.machine.nodes as u64))?;
    equal("BTF", &machine["kernel"]["btf"], &Value::Bool(true))?;
    let tried = said["attempts"].as_object().context("no attempts")?;
    for (what, outcome) in tried {
        ensure!(outcome["ok"] == true, "{what}: {outcome}");
    }
    let free = &said["hardware"]["breakpoints"]["free"];
    equal("free breakpoints", free, &Value::from(4))?;
    let sources = said["sources"].as_array().context("no sources")?;
    for wanted in ["timer", "watch"] {
        let source = sources.iter().find(|source| source["name"] == wanted);
        let source = source.with_context(|| format!("no source {wanted}"))?;
        ensure!(source["status"] == "available", "{wanted}: {source}");
    }
    Ok(())
}

/// That it runs and what it says of itself: times mean nothing in an emulated machine.
fn measure(records: &Records, guest: Guest) -> Result<()> {
    let cpus = guest.machine.cpus;
    if cpus == 1 {
        let refused = records.get("measure")?;
        equal("its exit code", &refused.code, &2)?;
        ensure!(
            refused.errors.contains("only one CPU"),
            "{}",
            refused.errors
        );
        return Ok(());
    }
    let said = records.json("measure")?;
    let complete = said["complete"]
        .as_bool()
        .context("no word on what is missing")?;
    let map = said["map"].as_array().context("no map")?;
    let all = cpus * (cpus - 1) / 2;
    ensure!(
        !map.is_empty() && map.len() <= all && (map.len() == all || !complete),
        "{} of {all} pairs, complete: {complete}",
        map.len()
    );
    let classes = said["classes"].as_array().context("no classes")?;
    let sizes = classes
        .iter()
        .map(|class| class["pairs"].as_array().map_or(0, Vec::len));
    equal("pairs in classes", &sizes.sum::<usize>(), &map.len())?;
    let doubts = said["doubts"].as_array().context("no doubts")?;
    ensure!(
        doubts.iter().any(|doubt| doubt["kind"] == "emulated"),
        "believes times of an emulated machine: {doubts:?}"
    );
    let costs = said["pairs"].as_array().context("no costs")?;
    ensure!(!complete || !costs.is_empty(), "no pair was measured");
    for pair in costs {
        equal("a third CPU", &pair["third"].is_u64(), &(cpus > 2))?;
        let of_three = pair["costs"].as_array().into_iter().flatten();
        let of_three = of_three
            .filter(|cost| cost["state"] == "shared-by-three")
            .count();
        ensure!(cpus > 2 || of_three == 0, "three CPUs of two: {pair}");
    }
    Ok(())
}

fn attach(records: &Records, guest: Guest) -> Result<()> {
    shared(&records.checked("attach")?, "two_counters", guest)?;
    let padded = records.checked("padded")?;
    accounted(&padded)?;
    let found = padded.findings.iter().any(is_counters);
    ensure!(!found, "the padded twin has a finding about its counters");
    Ok(())
}

fn record(records: &Records, guest: Guest) -> Result<()> {
    records.succeeded("record")?;
    shared(&records.checked("report")?, "two_counters", guest)
}

fn heap(records: &Records, guest: Guest) -> Result<()> {
    let report = records.checked("heap")?;
    shared(&report, "calloc_slots", guest)?;
    let entries = entries(&report).map(|(_, entry)| &entry["object"]["allocation"]["stack"]);
    let mut frames = entries.filter_map(Value::as_array).flatten();
    let made = frames.any(|frame| frame["symbol"] == "make_slots" && frame["line"].is_u64());
    ensure!(made, "no line is of an allocation in make_slots");
    Ok(())
}

fn all(records: &Records, guest: Guest) -> Result<()> {
    records.succeeded("all")?;
    shared(&records.checked("all-report")?, "two_counters", guest)
}

/// Each sample is accounted for, and what the workload's key says is shared is a finding, by name; or, with one CPU, listed
/// as none for this reason.
fn shared(report: &Report, name: &str, guest: Guest) -> Result<()> {
    accounted(report)?;
    let workload = workload::named(name)?;
    let answer = workload.answer(Variant::Plain)?;
    if guest.machine.cpus > 1 {
        let told = differences(&workload, &sampled(answer), report, None);
        let told: Vec<String> = told.iter().map(ToString::to_string).collect();
        ensure!(told.is_empty(), "{}", told.join("\n"));
        return Ok(());
    }
    let functions: Vec<&str> = answer.findings[0]
        .fields
        .iter()
        .map(|field| &*field.function)
        .collect();
    let mut about =
        entries(report).filter(|(_, entry)| functions.iter().all(|function| runs(entry, function)));
    let (list, entry) = about
        .next()
        .with_context(|| format!("no line is of {}", functions.join(" and ")))?;
    equal("its list", &list, &"insignificant")?;
    let reason = &entry["insignificant_because"];
    equal("its reason", reason, &Value::from(ONE_CPU_SAID))
}

/// The key of a run without windows, at any cost, on a machine where the kernel shares lines too.
fn sampled(answer: &Answer) -> Answer {
    Answer {
        other_findings_because: Some("--threshold 0".to_owned()),
        unconfirmed_because: Some("--no-watch".to_owned()),
        ..answer.clone()
    }
}

fn is_counters(finding: &cohtrace_tests::report::Finding) -> bool {
    finding.object_name.as_deref() == Some("counters")
}

/// Lines of a report, each with the list that it is in.
fn entries(report: &Report) -> impl Iterator<Item = (&'static str, &Value)> {
    let list = |name: &'static str| {
        let entries = report.json[name].as_array().into_iter().flatten();
        entries.map(move |entry| (name, entry))
    };
    list("findings").chain(list("insignificant"))
}

fn accesses(entry: &Value) -> impl Iterator<Item = &Value> {
    entry["accesses"].as_array().into_iter().flatten()
}

/// Whether a line is accessed in a function.
fn runs(entry: &Value, function: &str) -> bool {
    accesses(entry).any(|access| access["code"]["symbol"] == function)
}

/// No sample is missing without a word.
fn accounted(report: &Report) -> Result<()> {
    let count = |name: &str| report.run_count(name);
    let (produced, samples, lost) = (count("produced")?, count("samples")?, count("lost")?);
    ensure!(samples > 0, "nothing was sampled");
    ensure!(
        produced == samples + lost,
        "{produced} samples were taken, {samples} arrived and {lost} were lost"
    );
    Ok(())
}

fn watch(records: &Records, _: Guest) -> Result<()> {
    let report = records.report("watch")?;
    let watch = report.watch.as_ref().context("there were no windows")?;
    ensure!(watch.windows > 0 && watch.hits > 0, "{watch:?}");
    equal("hits that were not told", &watch.unresolved.len(), &0)?;
    let trapped = |access: &&Value| access["trapped"].as_u64().unwrap_or(0) > 0;
    let lines = entries(&report).flat_map(|(_, entry)| accesses(entry));
    let mut told = 0;
    for access in lines.filter(trapped) {
        let field = access["field"].as_str().unwrap_or_default();
        ensure!(field.ends_with("hits"), "trapped: {access}");
        equal(
            "its function",
            &access["code"]["symbol"],
            &"count_hits".into(),
        )?;
        told += access["trapped"].as_u64().unwrap_or(0);
    }
    equal(
        "accesses that hits became",
        &told,
        &(watch.hits - watch.lost),
    )
}

fn kill(records: &Records, guest: Guest) -> Result<()> {
    let nothing = serde_json::json!({
        "programs": 0, "maps": 0, "links": 0, "changed_code": 0,
        "breakpoints": vec![4; guest.machine.cpus],
    });
    equal("held before", &records.json("before")?, &nothing)?;
    let during = records.json("during")?;
    for held in ["programs", "maps", "changed_code"] {
        let at_work = during[held].as_u64().is_some_and(|held| held > 0);
        ensure!(at_work, "not at work when it was killed: {during}");
    }
    equal("left behind", &records.json("after")?, &nothing)?;
    records.succeeded("target").context("the target")?;
    let report = records.report("killed-report")?;
    accounted(&report)?;
    let said = |caveat: &String| caveat.contains("did not end normally");
    ensure!(
        report.caveats.iter().any(said),
        "not a word of a recorder that did not end normally"
    );
    let mut lines = entries(&report);
    ensure!(
        lines.any(|(_, entry)| runs(entry, "serve")),
        "no line is of the target"
    );
    Ok(())
}

/// Words by which kernels report their own faults.
const FAULTS: [&str; 10] = [
    "BUG:",
    "kernel BUG at",
    "WARNING:",
    "Oops",
    "cut here",
    "Call Trace",
    "general protection fault",
    "self-detected stall",
    "detected stalls",
    "blocked for more than",
];

fn log(records: &Records, _: Guest) -> Result<()> {
    let log = &records.succeeded("kernel-log")?.output;
    let faults = faults(log);
    ensure!(faults.is_empty(), "the kernel says\n{}", faults.join("\n"));
    records.succeeded("ended")?;
    match &records.trouble {
        Some(trouble) => anyhow::bail!("{trouble}"),
        None => Ok(()),
    }
}

/// Lines of a kernel's log that are of its own faults.
fn faults(log: &str) -> Vec<&str> {
    let is_fault = |line: &&str| FAULTS.iter().any(|fault| line.contains(fault));
    log.lines().filter(is_fault).collect()
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, got: &T, wanted: &T) -> Result<()> {
    ensure!(got == wanted, "{what}: {got:?}, not {wanted:?}");
    Ok(())
}

#[cfg(test)]
mod tests;
