//! What hinting loads changes, as data: the tables of SWIFT section 5.2 for sessions that were simulated.
//!
//! # JSON, schema 1
//!
//! `{schema, tool_version, after, machine, sessions}`. `after` is what had to happen before accesses counted
//! (`--after`), null where all did. `machine` is the simulated one: `line_bytes`, `l2_bytes`, `l2_ways`,
//! `l3_bytes`, `l3_ways`, and the variants `exclusive_on_first_read`, `migratory` and `relinquish`; the filter of the paper
//! sees the last `log_kept` of each `log_every` requests. Each of `sessions` has
//!
//! - `name`, `role` (`own`: hints decided from itself; `train`: decided from it, for others too; `given`: from
//!   elsewhere), and `hints`: `from` (a session or a hints file), the numbers of `integer`, `floating_point` and
//!   `unknown` loads, the same of those in `your_code`, the names of the `unmatched` ones, which did not run here, and
//!   how many `loads` were left as `one_off`, with the messages that hints for them would have `saved`;
//! - `threads`, each of them a processor, and `lines` of memory that were used;
//! - `executed`: `loads`, `biased_loads` (the program's own), `stores`, and what was left out as `ignored`, `sampled`
//!   and `unnumbered`;
//! - `unmodified`; `your_code_integer_hinted` and `your_code_all_hinted`, with the hints in code that you build, which a
//!   rebuild reaches; `integer_hinted` and `all_hinted`, with all: `transactions` (messages that served requests, table
//!   4) and `messages`, the same by kind; `load_transactions` (of those, for loads, table 5); `biased_loads` (executions
//!   of loads that fetch for ownership); `requests`; `l2_misses`; `l3_misses` (table 6); `write_backs` and `drops`, which
//!   are messages of evictions and in no other number;
//! - `instructions` and `top_lines` with most transactions in `unmodified`, `--top` of them. Each has `transactions`,
//!   `load_transactions` and `l3_misses`, lists of five numbers: unmodified, integer loads hinted, all hinted, and these
//!   two in code that you build. An instruction has
//!   `module`, `build_id`, `ip` (in the module's own addresses, hexadecimal), `function`, `inlined`, `file`, `line`,
//!   `column`, `executions`, and `followed_by_ownership`: requests that SWIFT's filter finds. A line has its `key` (as in
//!   reports), `address`, and the names of its `objects`;
//! - `caveats`: sentences.
//!
//! Unknown is null.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{named::Hex, printable};
use crate::{
    access::{LineKey, LineSize},
    analysis::{
        Instruction, Simulated, SimulatedCosts, SimulatedInstruction, SimulatedLine,
        SimulatedTotals,
    },
    coherence::SystemModel,
    hint::your_code::OneOffLoads,
    names::{Names, ObjectName},
};

/// Version of the JSON form.
const SCHEMA: u32 = 1;
/// Scenarios of a simulation: unmodified; integer loads hinted; all hinted; and these two in code that you build.
pub const SCENARIOS: usize = 5;

/// Everything.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SimulationReport {
    /// Version of this shape.
    pub schema: u32,
    /// Version of cohtrace.
    pub tool_version: &'static str,
    /// What had to happen before accesses counted.
    pub after: Option<String>,
    /// What was simulated.
    pub machine: Machine,
    /// One row of each table for each.
    pub sessions: Vec<SimulatedSession>,
}

/// The simulated machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Bytes that travel together.
    pub line_bytes: u64,
    /// Second level of a processor.
    pub l2_bytes: u64,
    /// Its ways.
    pub l2_ways: u32,
    /// Third level of a processor.
    pub l3_bytes: u64,
    /// Its ways.
    pub l3_ways: u32,
    /// Variant of the protocol.
    pub exclusive_on_first_read: bool,
    /// Variant of the protocol.
    pub migratory: bool,
    /// Variant of the protocol.
    pub relinquish: bool,
    /// Requests that the log has, of each `log_every`; the same number where it has all.
    pub log_kept: u64,
    /// Requests from one reading of the log's buffer to the next.
    pub log_every: u64,
}

/// Where a session's hints come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionRole {
    /// From itself.
    Own,
    /// From itself, and other sessions have them too.
    Train,
    /// From elsewhere.
    Given,
}

/// The hints that were simulated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HintsUsed {
    /// The session, or the file of hints.
    pub from: String,
    /// In code that you build.
    pub your_code: HintCounts,
    /// All.
    #[serde(flatten)]
    pub all: HintCounts,
    /// Names of those that did not run in this session.
    pub unmatched: Vec<String>,
    /// Loads that were left as one-offs; `None` where whoever decided does not tell.
    pub one_off: Option<OneOffLoads>,
}

/// Hinted loads by what they load into.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct HintCounts {
    /// Loads into general registers.
    pub integer: u64,
    /// Loads into vector or x87 registers.
    pub floating_point: u64,
    /// Loads whose code could not be read; hinted with the integer ones.
    pub unknown: u64,
}

impl HintCounts {
    /// All.
    pub fn sum(&self) -> u64 {
        self.integer + self.floating_point + self.unknown
    }
}

/// What ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExecutedCounts {
    /// Loads executed.
    pub loads: u64,
    /// The program's own loads with bias and prefetches for ownership.
    pub biased_loads: u64,
    /// Stores and read-modify-writes.
    pub stores: u64,
    /// Plain prefetches and accesses of unknown direction, left out.
    pub ignored: u64,
    /// Accesses that no emulator saw, left out.
    pub sampled: u64,
    /// Accesses to more lines than can be told apart, left out.
    pub unnumbered: u64,
}

/// What one scenario took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScenarioCounts {
    /// Messages that served requests.
    pub transactions: u64,
    /// The same by kind.
    pub messages: BTreeMap<&'static str, u64>,
    /// Of the messages, those that served loads.
    pub load_transactions: u64,
    /// Executions of loads that fetch for ownership, hinted ones and the program's own.
    pub biased_loads: u64,
    /// Requests that left the cache.
    pub requests: u64,
    /// Misses of the second level.
    pub l2_misses: u64,
    /// Misses of the third level.
    pub l3_misses: u64,
    /// Dirty lines that made room.
    pub write_backs: u64,
    /// Clean lines that made room.
    pub drops: u64,
}

/// What an instruction or a line took, by scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Costs {
    /// Messages that served requests.
    pub transactions: Vec<u64>,
    /// Of those, for loads.
    pub load_transactions: Vec<u64>,
    /// Misses of the third level.
    pub l3_misses: Vec<u64>,
}

/// One of the instructions with most messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TopInstruction {
    /// File of the code.
    pub module: Option<String>,
    /// Its build-id.
    pub build_id: Option<String>,
    /// Address in the module's own numbering; of the process where there is no module.
    pub ip: Hex,
    /// Function that holds it.
    pub function: Option<String>,
    /// Functions inlined there, innermost first.
    pub inlined: Vec<String>,
    /// Source file.
    pub file: Option<String>,
    /// Source line.
    pub line: Option<u32>,
    /// Source column.
    pub column: Option<u32>,
    /// Times it ran.
    pub executions: u64,
    /// Requests that SWIFT's filter finds.
    pub followed_by_ownership: u64,
    /// What it took.
    #[serde(flatten)]
    pub costs: Costs,
}

/// One of the lines with most messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TopLine {
    /// As in reports.
    pub key: LineKey,
    /// A virtual address of it.
    pub address: Option<Hex>,
    /// Names of what is on it.
    pub objects: Vec<String>,
    /// What it took.
    #[serde(flatten)]
    pub costs: Costs,
}

/// One session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SimulatedSession {
    /// The session's name.
    pub name: String,
    /// Where its hints come from.
    pub role: SessionRole,
    /// Its hints.
    pub hints: HintsUsed,
    /// Threads; each is a processor.
    pub threads: u64,
    /// Lines of memory that were used.
    pub lines: u64,
    /// What ran, in each scenario.
    pub executed: ExecutedCounts,
    /// No load is hinted.
    pub unmodified: ScenarioCounts,
    /// Integer loads in code that you build are.
    pub your_code_integer_hinted: ScenarioCounts,
    /// Integer and floating-point loads in code that you build are.
    pub your_code_all_hinted: ScenarioCounts,
    /// Integer loads are.
    pub integer_hinted: ScenarioCounts,
    /// Integer and floating-point loads are.
    pub all_hinted: ScenarioCounts,
    /// Instructions with most messages.
    pub instructions: Vec<TopInstruction>,
    /// Lines with most messages.
    pub top_lines: Vec<TopLine>,
    /// What must be known.
    pub caveats: Vec<String>,
}

impl SimulationReport {
    /// Puts sessions together.
    pub fn new(
        model: &SystemModel,
        after: Option<String>,
        sessions: Vec<SimulatedSession>,
    ) -> SimulationReport {
        SimulationReport {
            schema: SCHEMA,
            tool_version: env!("CARGO_PKG_VERSION"),
            after,
            machine: Machine {
                line_bytes: model.line.bytes(),
                l2_bytes: model.l2.bytes,
                l2_ways: model.l2.ways,
                l3_bytes: model.l3.bytes,
                l3_ways: model.l3.ways,
                exclusive_on_first_read: model.protocol.exclusive_on_first_read,
                migratory: model.protocol.migratory,
                relinquish: model.protocol.relinquish,
                log_kept: model.log.kept(),
                log_every: model.log.every(),
            },
            sessions,
        }
    }
}

impl SimulatedSession {
    /// Of a simulation of the [`SCENARIOS`], with `top` instructions and lines by name.
    pub fn new(
        name: String,
        role: SessionRole,
        hints: HintsUsed,
        simulation: &Simulated,
        top: usize,
        names: &dyn Names,
        mut caveats: Vec<String>,
    ) -> SimulatedSession {
        let mut scenarios = simulation.totals().map(counts);
        let mut scenario = || {
            scenarios
                .next()
                .unwrap_or_else(|| counts(&SimulatedTotals::default()))
        };
        let executed = simulation.executed();
        let size = simulation.model().line;
        let instructions = simulation.instructions(top);
        let lines = simulation.lines(top);
        let session = SimulatedSession {
            name,
            role,
            hints,
            threads: simulation.threads(),
            lines: simulation.line_count(),
            executed: ExecutedCounts {
                loads: executed.loads,
                biased_loads: executed.biased_loads,
                stores: executed.stores,
                ignored: executed.ignored,
                sampled: executed.sampled,
                unnumbered: executed.unnumbered,
            },
            unmodified: scenario(),
            integer_hinted: scenario(),
            all_hinted: scenario(),
            your_code_integer_hinted: scenario(),
            your_code_all_hinted: scenario(),
            instructions: (instructions.iter())
                .map(|instruction| top_instruction(instruction, names))
                .collect(),
            top_lines: (lines.iter())
                .map(|line| TopLine {
                    key: line.key,
                    address: names.address(line.key).map(Hex),
                    objects: objects(line, size, names),
                    costs: costs(&line.costs),
                })
                .collect(),
            caveats: Vec::new(),
        };
        caveats.extend(names.caveats());
        SimulatedSession { caveats, ..session }
    }

    /// Unmodified, integer loads hinted, all hinted; in code that you build, or anywhere.
    pub fn scenarios(&self, yours: bool) -> [&ScenarioCounts; 3] {
        let [integer, all] = if yours {
            [&self.your_code_integer_hinted, &self.your_code_all_hinted]
        } else {
            [&self.integer_hinted, &self.all_hinted]
        };
        [&self.unmodified, integer, all]
    }

    /// Which of the scenarios is what a rebuild reaches: all hints in code that you build; all hints where none is there.
    pub fn reached(&self) -> usize {
        if self.hints.your_code.sum() > 0 { 4 } else { 2 }
    }
}

fn counts(totals: &SimulatedTotals) -> ScenarioCounts {
    let kinds = totals.transactions.iter();
    ScenarioCounts {
        transactions: totals.transactions.total(),
        messages: kinds.map(|(kind, count)| (kind.name(), count)).collect(),
        load_transactions: totals.load_transactions,
        biased_loads: totals.biased_loads,
        requests: totals.requests,
        l2_misses: totals.l2_misses,
        l3_misses: totals.l3_misses,
        write_backs: totals.write_backs,
        drops: totals.drops,
    }
}

fn costs(by_scenario: &[SimulatedCosts]) -> Costs {
    let of = |what: fn(&SimulatedCosts) -> u64| by_scenario.iter().map(what).collect();
    Costs {
        transactions: of(|costs| costs.transactions),
        load_transactions: of(|costs| costs.load_transactions),
        l3_misses: of(|costs| costs.l3_misses),
    }
}

fn top_instruction(instruction: &SimulatedInstruction, names: &dyn Names) -> TopInstruction {
    let Instruction { space, ip, kernel } = instruction.instruction;
    let code = names.code(Some(space), ip, kernel);
    TopInstruction {
        module: code.module,
        build_id: code.build_id,
        ip: Hex(code.ip),
        function: code.symbol,
        inlined: code.inlined,
        file: code.file,
        line: code.line,
        column: code.column,
        executions: instruction.executions,
        followed_by_ownership: instruction.followed_by_ownership,
        costs: costs(&instruction.costs),
    }
}

/// Names of what is on a line; the kind of memory where there is none.
fn objects(line: &SimulatedLine, size: LineSize, names: &dyn Names) -> Vec<String> {
    let objects = names.objects(line.key, size, &[]);
    let name = |object: &ObjectName| match &object.name {
        Some(name) => name.clone(),
        None => object.kind.name().to_owned(),
    };
    let mut named: Vec<String> = objects.iter().map(name).collect();
    named.dedup();
    named
}

/// One JSON document, safe to print.
pub fn render_json(report: &SimulationReport) -> String {
    let text = serde_json::to_string_pretty(report);
    let text = text.expect("the report has string keys only, so serialising it cannot fail");
    printable::json(&(text + "\n"))
}
