//! `export`: session → a file of another tool.

use std::{fs, io::BufWriter, path::Path, process::ExitCode};

use anyhow::{Context as _, Result, bail};

use super::{
    args::ExportArgs, destination, machine_costs::boot_id, output, progress::Progress,
    report::modules_of,
};
use crate::{
    event::{Batch, ContextKind},
    export::{BuildIds, Description, Exported, KernelText, MemoryNode, PerfDataWriter},
    machine::{Machine, kallsyms::Kallsyms},
    session::SessionReader,
    sys::stop_signal::StopSignal,
};

/// Writes the file beside its place and moves it there when it is whole. Nothing is replaced unasked, and nothing but a
/// file ever is: moving one over a device would remove it.
pub(super) fn run(args: &ExportArgs) -> Result<ExitCode> {
    let path = &args.perf_data;
    let (place, found) = destination::regular(path)?;
    if found.is_some() && !args.force {
        bail!("{} exists; --force replaces it", path.display());
    }
    let reader = SessionReader::open(&args.session)?;
    let stop = StopSignal::install().context("installing signal handlers")?;
    let folder = destination::folder(&place);
    // Gone when dropped, whatever happens; mode 0600, as perf wants it.
    let file = tempfile::Builder::new()
        .prefix(".cohtrace-export-")
        .tempfile_in(folder)
        .with_context(|| format!("writing in {}", folder.display()))?;
    let mut progress = Progress::new(args.quiet);
    let out = BufWriter::with_capacity(1 << 16, file.as_file());
    let written = write(reader, out, &stop, &mut progress);
    progress.clear();
    let (exported, caveats) = written.with_context(|| format!("writing {}", path.display()))?;
    file.as_file()
        .sync_all()
        .with_context(|| format!("writing {}", path.display()))?;
    if args.force {
        file.persist(&place).map(drop)
    } else {
        file.persist_noclobber(&place).map(drop)
    }
    .with_context(|| format!("writing {}", path.display()))?;
    if !args.quiet {
        output::say_all(&summary(&exported, &caveats, path));
    }
    Ok(ExitCode::SUCCESS)
}

fn write(
    mut reader: SessionReader,
    out: BufWriter<&fs::File>,
    stop: &StopSignal,
    progress: &mut Progress,
) -> Result<(Exported, Vec<String>)> {
    let meta = reader.meta();
    let boot = meta.boot_id.clone();
    let of_this_boot = boot.is_some() && boot == boot_id();
    let unit = meta.cost_unit;
    let modules = modules_of(meta);
    let mut description = Description::of(meta);
    if of_this_boot {
        description.nodes = memory_nodes();
        let text = modules.kernel().ok().and_then(Kallsyms::text);
        description.kernel_text = text.map(|address| KernelText {
            symbol: "_stext",
            address,
        });
    }
    let mut build_ids = BuildIds::default();
    let mut writer = PerfDataWriter::new(out, description, unit)?;
    let mut batch = Batch::default();
    while reader.next_batch(&mut batch)? {
        if stop.arrived() {
            bail!("interrupted; nothing was written");
        }
        for context in &batch.context {
            if let ContextKind::Mapping { pid, mapping } = &context.kind {
                let of_file = || modules.open(*pid, mapping).ok()?.build_id();
                build_ids.note(mapping, || mapping.build_id.clone().or_else(of_file));
            }
        }
        writer.append(&batch)?;
        progress.update(|| format!("{} accesses", writer.counts().accesses));
    }
    let (_, exported) = writer.finish(&build_ids)?;
    let caveats = reader.caveats().iter().map(ToString::to_string).collect();
    Ok((exported, caveats))
}

/// The nodes of this machine and their CPUs.
fn memory_nodes() -> Vec<MemoryNode> {
    let machine = Machine::probe(Path::new("/"));
    let mut nodes: Vec<MemoryNode> = Vec::new();
    for (cpu, place) in &machine.topology.cpus {
        let Some(number) = place.node else {
            return Vec::new();
        };
        match nodes.iter_mut().find(|node| node.number == number) {
            Some(node) => node.cpus.push(cpu.0),
            None => nodes.push(MemoryNode {
                number,
                cpus: vec![cpu.0],
            }),
        }
    }
    nodes.sort_by_key(|node| node.number);
    nodes
}

fn summary(exported: &Exported, caveats: &[String], path: &Path) -> Vec<String> {
    let mut lines = vec![format!(
        "exported {} accesses and {} mappings, names, births and ends of threads to {}",
        exported.accesses,
        exported.context,
        path.display()
    )];
    if exported.left_out > 0 {
        lines.push(format!(
            "left out {} accesses of CPUs with impossible numbers",
            exported.left_out
        ));
    }
    if exported.repeats > 0 {
        lines.push(format!(
            "left out {} repeated executions of emulated accesses: a record of perf's stands for one",
            exported.repeats
        ));
    }
    lines.extend(caveats.iter().map(|caveat| format!("note: {caveat}")));
    lines
}
