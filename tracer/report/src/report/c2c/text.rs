//! The tables as text.

use super::{
    Counts, Event,
    grid::{Column, Grid},
    name::{C2c, NamedLine, NamedRow},
};
use crate::report::printable::printable;

const RULE: &str = "=================================================\n";

const fn right(group: &'static str, name: &'static str) -> Column {
    Column {
        group,
        name,
        left: false,
    }
}

const fn left(group: &'static str, name: &'static str) -> Column {
    Column {
        group,
        name,
        left: true,
    }
}

const LINES: &[Column] = &[
    right("", "Index"),
    right("Cacheline", "Address"),
    right("Cacheline", "PA cnt"),
    right("Tot", "Hitm"),
    right("Load Hitm", "Total"),
    right("Load Hitm", "LclHitm"),
    right("Load Hitm", "RmtHitm"),
    right("Load Peer", "Local"),
    right("Load Peer", "Remote"),
    right("Total", "records"),
    right("Total", "Loads"),
    right("Total", "Stores"),
    right("Stores", "L1Hit"),
    right("Stores", "L1Miss"),
    right("Stores", "N/A"),
    right("Core Load Hit", "FB"),
    right("Core Load Hit", "L1"),
    right("Core Load Hit", "L2"),
    right("LLC Load Hit", "LclHit"),
    right("LLC Load Hit", "LclHitm"),
    right("RMT Load Hit", "RmtHit"),
    right("RMT Load Hit", "RmtHitm"),
    right("Load Dram", "Lcl"),
    right("Load Dram", "Rmt"),
    right("cohtrace", "Samples"),
    left("cohtrace", "Verdict"),
    left("cohtrace", "Variable"),
];

const ROWS: &[Column] = &[
    right("", "Num"),
    right("HITM", "RmtHitm"),
    right("HITM", "LclHitm"),
    right("Store Refs", "L1 Hit"),
    right("Store Refs", "L1 Miss"),
    right("Store Refs", "N/A"),
    right("Data address", "Offset"),
    right("Data address", "PA cnt"),
    right("", "Pid"),
    right("", "Code address"),
    right("cycles", "rmt hitm"),
    right("cycles", "lcl hitm"),
    right("cycles", "load"),
    right("Total", "records"),
    right("cpu", "cnt"),
    left("", "Symbol"),
    left("Shared", "Object"),
    left("", "Source:Line"),
    right("cohtrace", "Samples"),
    left("cohtrace", "Field"),
];

/// All tables.
pub fn render(tables: &C2c) -> String {
    let mut out = heading("            Trace Event Information              ");
    for (label, value) in trace_events(&tables.totals) {
        out += &entry(label, &value);
    }
    if tables.without_address > 0 {
        out += &format!(
            "\n  Besides, {} records have no data address. They are no accesses and not counted above; perf counts\n  \
             them in the total and as \"no mapping\" or \"Unable to parse data source\".\n",
            tables.without_address
        );
    }
    out += "\n";
    out += &heading("    Global Shared Cache Line Event Information   ");
    for (label, value) in shared_lines(tables) {
        out += &entry(label, &value.to_string());
    }
    out += "\n";
    out += &heading("           Shared Data Cache Line Table          ");
    out += "#\n";
    let cells: Vec<Vec<String>> = (tables.lines.iter().enumerate())
        .map(|(n, line)| line_cells(n, line, &tables.totals))
        .collect();
    let grid = Grid::new(LINES, cells.iter());
    out += &grid.headings();
    for row in &cells {
        out += &grid.row(row);
    }
    out += "\n";
    out += &heading("      Shared Cache Line Distribution Pareto      ");
    out += "#\n";
    pareto(&mut out, tables);
    if tables.incomplete {
        out += "\nThere are more lines or rows than could be kept: the tables of lines are not complete.\n";
    }
    out
}

fn heading(title: &str) -> String {
    format!("{RULE}{title}\n{RULE}")
}

fn entry(label: &str, value: &str) -> String {
    format!("  {label:<34}: {value:>10}\n")
}

/// The rows of the first table, with perf's labels.
fn trace_events(counts: &Counts) -> Vec<(&'static str, String)> {
    let n = |event: Event| counts.get(event).to_string();
    let misses = counts.llc_misses();
    let of_misses = |event: Event| share(counts.get(event), misses, 1);
    vec![
        ("Total records", n(Event::Records)),
        ("Locked Load/Store Operations", n(Event::Locked)),
        ("Load Operations", n(Event::Loads)),
        ("Loads - uncacheable", n(Event::LoadUncacheable)),
        ("Loads - IO", n(Event::LoadIo)),
        ("Loads - Miss", n(Event::LoadMiss)),
        ("Loads - no mapping", n(Event::LoadNoAddress)),
        ("Load Fill Buffer Hit", n(Event::LoadFillBuffer)),
        ("Load L1D hit", n(Event::LoadL1)),
        ("Load L2D hit", n(Event::LoadL2)),
        ("Load LLC hit", counts.llc_hits().to_string()),
        ("Load Local HITM", n(Event::LocalHitm)),
        ("Load Remote HITM", n(Event::RemoteHitm)),
        ("Load Remote HIT", n(Event::RemoteHit)),
        ("Load Local DRAM", n(Event::LocalDram)),
        ("Load Remote DRAM", n(Event::RemoteDram)),
        ("Load MESI State Exclusive", n(Event::Exclusive)),
        ("Load MESI State Shared", n(Event::Shared)),
        ("Load LLC Misses", misses.to_string()),
        ("Load access blocked by data", n(Event::BlockedByData)),
        ("Load access blocked by address", n(Event::BlockedByAddress)),
        ("Load HIT Local Peer", n(Event::LocalPeer)),
        ("Load HIT Remote Peer", n(Event::RemotePeer)),
        ("LLC Misses to Local DRAM", of_misses(Event::LocalDram)),
        ("LLC Misses to Remote DRAM", of_misses(Event::RemoteDram)),
        (
            "LLC Misses to Remote cache (HIT)",
            of_misses(Event::RemoteHit),
        ),
        (
            "LLC Misses to Remote cache (HITM)",
            of_misses(Event::RemoteHitm),
        ),
        ("Store Operations", n(Event::Stores)),
        ("Store - uncacheable", n(Event::StoreUncacheable)),
        ("Store - no mapping", n(Event::StoreNoAddress)),
        ("Store L1D Hit", n(Event::StoreL1Hit)),
        ("Store L1D Miss", n(Event::StoreL1Miss)),
        ("Store No available memory level", n(Event::StoreNoLevel)),
        ("No Page Map Rejects", n(Event::NoMapping)),
        ("Unable to parse data source", n(Event::Unparsed)),
    ]
}

/// The rows of the second table, with perf's labels.
fn shared_lines(tables: &C2c) -> Vec<(&'static str, u64)> {
    let counts = &tables.shared;
    let n = |event: Event| counts.get(event);
    vec![
        ("Total Shared Cache Lines", tables.shared_lines),
        ("Load HITs on shared lines", n(Event::Loads)),
        ("Fill Buffer Hits on shared lines", n(Event::LoadFillBuffer)),
        ("L1D hits on shared lines", n(Event::LoadL1)),
        ("L2D hits on shared lines", n(Event::LoadL2)),
        ("LLC hits on shared lines", counts.llc_hits()),
        ("Load hits on peer cache or nodes", counts.peer()),
        ("Locked Access on shared lines", n(Event::Locked)),
        (
            "Blocked Access on shared lines",
            n(Event::BlockedByData) + n(Event::BlockedByAddress),
        ),
        ("Store HITs on shared lines", n(Event::Stores)),
        ("Store L1D hits on shared lines", n(Event::StoreL1Hit)),
        ("Store No available memory level", n(Event::StoreNoLevel)),
        ("Total Merged records", counts.hitm() + n(Event::Stores)),
    ]
}

fn line_cells(index: usize, line: &NamedLine, totals: &Counts) -> Vec<String> {
    let counts = &line.counts;
    let n = |event: Event| counts.get(event).to_string();
    let loads = counts.served_loads();
    vec![
        index.to_string(),
        line.address
            .map_or_else(|| "-".to_owned(), |a| format!("{a:#x}")),
        line.pages.to_string(),
        share(counts.hitm(), totals.hitm(), 2),
        counts.hitm().to_string(),
        n(Event::LocalHitm),
        n(Event::RemoteHitm),
        n(Event::LocalPeer),
        n(Event::RemotePeer),
        (loads + counts.levelled_stores()).to_string(),
        loads.to_string(),
        n(Event::Stores),
        n(Event::StoreL1Hit),
        n(Event::StoreL1Miss),
        n(Event::StoreNoLevel),
        n(Event::LoadFillBuffer),
        n(Event::LoadL1),
        n(Event::LoadL2),
        n(Event::LoadLlc),
        n(Event::LocalHitm),
        n(Event::RemoteHit),
        n(Event::RemoteHitm),
        n(Event::LocalDram),
        n(Event::RemoteDram),
        n(Event::Records),
        word(line.verdict.as_deref()),
        word(line.variable.as_deref()),
    ]
}

fn pareto(out: &mut String, tables: &C2c) {
    let cells: Vec<Vec<Vec<String>>> = (tables.lines.iter().enumerate())
        .map(|(n, line)| {
            let rows = line.rows.iter().map(|row| row_cells(row, &line.counts));
            std::iter::once(sum_cells(n, line)).chain(rows).collect()
        })
        .collect();
    let grid = Grid::new(ROWS, cells.iter().flatten());
    *out += &grid.headings();
    let rule = format!("  {}\n", "-".repeat(70));
    for (n, rows) in cells.iter().enumerate() {
        if n > 0 {
            *out += "\n";
        }
        for (n, row) in rows.iter().enumerate() {
            if n == 0 {
                *out += &rule;
            }
            *out += &grid.row(row);
            if n == 0 {
                *out += &rule;
            }
        }
    }
}

/// The line itself: counts where its rows have shares.
fn sum_cells(index: usize, line: &NamedLine) -> Vec<String> {
    let n = |event: Event| line.counts.get(event).to_string();
    let mut cells = vec![
        index.to_string(),
        n(Event::RemoteHitm),
        n(Event::LocalHitm),
        n(Event::StoreL1Hit),
        n(Event::StoreL1Miss),
        n(Event::StoreNoLevel),
        line.address
            .map_or_else(|| "-".to_owned(), |a| format!("{a:#x}")),
    ];
    cells.resize(ROWS.len() - 2, String::new());
    cells.push(n(Event::Records));
    cells.push(word(line.variable.as_deref()));
    cells
}

fn row_cells(row: &NamedRow, of: &Counts) -> Vec<String> {
    let counts = &row.counts;
    let percent = |event: Event| {
        let whole = of.get(event);
        if whole == 0 {
            "0.00%".to_owned()
        } else {
            share(counts.get(event), whole, 2)
        }
    };
    let [remote, local, load] = row.cycles.map(|cycles| format!("{cycles:.0}"));
    vec![
        String::new(),
        percent(Event::RemoteHitm),
        percent(Event::LocalHitm),
        percent(Event::StoreL1Hit),
        percent(Event::StoreL1Miss),
        percent(Event::StoreNoLevel),
        format!("{:#x}", row.key.offset),
        row.pages.to_string(),
        row.key.pid.0.to_string(),
        format!("{:#x}", row.key.ip),
        remote,
        local,
        load,
        (counts.served_loads() + counts.levelled_stores()).to_string(),
        row.cpus.to_string(),
        word(row.symbol.as_deref()),
        word(
            row.module
                .as_deref()
                .map(|path| path.rsplit('/').next().unwrap_or(path)),
        ),
        word(row.source.as_deref()),
        counts.get(Event::Records).to_string(),
        word(row.field.as_deref()),
    ]
}

fn word(text: Option<&str>) -> String {
    text.map_or_else(
        || "-".to_owned(),
        |text| printable(text, false).into_owned(),
    )
}

/// Per cent with so many digits; of nothing, `n/a`.
fn share(part: u64, whole: u64, digits: usize) -> String {
    if whole == 0 {
        return "n/a".to_owned();
    }
    format!("{:.digits$}%", part as f64 / whole as f64 * 100.0)
}
