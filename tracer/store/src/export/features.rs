//! The feature sections behind the data: `HEADER_*` of the file format.

use super::{
    attr::{ATTR_BYTES, Event},
    build_ids::BuildIds,
    description::{Description, MemoryNode},
};
use crate::{
    number::ranges,
    perf_format::{
        bytes::{PutBytes as _, c_string},
        feature as number, record,
    },
};

/// perf pads names so.
const NAME_ALIGN: usize = 64;
const MOST_TEXT: usize = 4095;
/// Arguments of the command line kept.
const MOST_ARGUMENTS: usize = 1024;
/// A block of the memory map: with physical addresses of at most 52 bits, 4096 of these are all memory.
const MEMORY_BLOCK: u64 = 1 << 40;
const MEMORY_BLOCKS: u64 = 1 << 12;

/// No kernel has more CPUs; perf allocates by their number, and so do we.
pub(super) const MOST_CPUS: u32 = 1 << 16;

/// What the records have shown.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The largest CPU number.
    pub(super) last_cpu: Option<u32>,
    /// First and last time of an access, nanoseconds.
    pub(super) times: Option<(u64, u64)>,
}

/// Numbers and contents of the features, in the order of their numbers.
pub(super) fn sections(
    description: &Description,
    seen: &Seen,
    build_ids: &BuildIds,
) -> Vec<(u32, Vec<u8>)> {
    let mut all = Vec::new();
    let mut add = |number: u32, put: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        put(&mut bytes);
        if !bytes.is_empty() {
            all.push((number, bytes));
        }
    };
    let text = |value: &Option<String>| {
        let value = value.clone();
        move |out: &mut Vec<u8>| {
            if let Some(value) = &value {
                string(out, value);
            }
        }
    };
    let version = concat!("cohtrace ", env!("CARGO_PKG_VERSION"));
    let nodes = nodes(description, seen);
    let cpus = cpus(description, seen);
    add(number::BUILD_ID, &|out| put_build_ids(out, build_ids));
    add(number::HOSTNAME, &text(&description.host));
    add(number::OSRELEASE, &text(&description.kernel_release));
    add(number::VERSION, &|out| string(out, version));
    add(number::ARCH, &text(&description.arch));
    add(number::NRCPUS, &|out| {
        out.u32(cpus);
        out.u32(description.online_cpus.unwrap_or(cpus));
    });
    add(number::CPUDESC, &text(&description.cpu_model));
    add(number::CMDLINE, &|out| command_line(out, description));
    add(number::EVENT_DESC, &|out| {
        event_descriptions(out, description);
    });
    add(number::NUMA_TOPOLOGY, &|out| numa_topology(out, &nodes));
    if let Some((first, last)) = seen.times {
        add(number::SAMPLE_TIME, &|out| {
            out.u64(first);
            out.u64(last);
        });
    }
    add(number::MEM_TOPOLOGY, &|out| memory_topology(out, &nodes));
    if let Some(clock) = description.clock {
        // Nanoseconds per tick.
        add(number::CLOCKID, &|out| out.u64(1));
        if let Some((wall_ns, clock_ns)) = description.clocks_ns {
            add(number::CLOCK_DATA, &|out| {
                out.u32(1);
                out.u32(clock);
                out.u64(wall_ns);
                out.u64(clock_ns);
            });
        }
    }
    all
}

fn string(out: &mut Vec<u8>, value: &str) {
    let text = c_string(value, MOST_TEXT);
    out.u32((text.len() + 1).next_multiple_of(NAME_ALIGN) as u32);
    out.text(text, NAME_ALIGN);
}

/// One more than the largest number that a sample has: perf keeps bitmaps of this many.
fn cpus(description: &Description, seen: &Seen) -> u32 {
    let of_nodes = description.nodes.iter().flat_map(|node| &node.cpus).max();
    [seen.last_cpu, of_nodes.copied()]
        .into_iter()
        .flatten()
        .map(|cpu| cpu.saturating_add(1))
        .chain(description.online_cpus)
        .max()
        .unwrap_or(1)
        .clamp(1, MOST_CPUS)
}

/// Nodes that have every CPU: perf indexes by the node of a sample's CPU.
fn nodes(description: &Description, seen: &Seen) -> Vec<MemoryNode> {
    let mut nodes = description.nodes.clone();
    if nodes.is_empty() {
        nodes.push(MemoryNode {
            number: 0,
            cpus: Vec::new(),
        });
    }
    let cpus = cpus(description, seen);
    let mut known = vec![false; cpus as usize];
    for node in &mut nodes {
        // Twice in the list, perf calls it a bug of the topology and stops.
        node.cpus.retain(|cpu| {
            let known = known.get_mut(*cpu as usize);
            known.is_some_and(|known| !std::mem::replace(known, true))
        });
    }
    let rest = (0..cpus).filter(|cpu| !known[*cpu as usize]);
    nodes[0].cpus.extend(rest);
    nodes[0].cpus.sort_unstable();
    nodes
}

fn command_line(out: &mut Vec<u8>, description: &Description) {
    let arguments = description.command_line.iter().take(MOST_ARGUMENTS);
    if arguments.len() > 0 {
        out.u32(arguments.len() as u32);
        arguments.for_each(|argument| string(out, argument));
    }
}

fn event_descriptions(out: &mut Vec<u8>, description: &Description) {
    out.u32(Event::ALL.len() as u32);
    out.u32(ATTR_BYTES);
    for event in Event::ALL {
        event.put_attr(out, description.clock);
        out.u32(1);
        string(out, &description.event_name(event.name()));
        out.u64(event.id());
    }
}

fn numa_topology(out: &mut Vec<u8>, nodes: &[MemoryNode]) {
    out.u32(nodes.len() as u32);
    for node in nodes {
        out.u32(node.number);
        // Sizes, in KiB: not known.
        out.u64(0);
        out.u64(0);
        string(out, &ranges(&node.cpus));
    }
}

/// All memory on the first node: which node a physical address is on was not recorded.
fn memory_topology(out: &mut Vec<u8>, nodes: &[MemoryNode]) {
    out.u64(1); // version
    out.u64(MEMORY_BLOCK);
    out.u64(1);
    out.u64(nodes.first().map_or(0, |node| u64::from(node.number)));
    out.u64(MEMORY_BLOCKS);
    out.u64(MEMORY_BLOCKS);
    for _ in 0..MEMORY_BLOCKS / 64 {
        out.u64(u64::MAX);
    }
}

/// `PERF_RECORD_HEADER_BUILD_ID`, user mode, with the id's length given.
fn put_build_ids(out: &mut Vec<u8>, build_ids: &BuildIds) {
    for (name, id) in build_ids.known() {
        let name = c_string(name, MOST_TEXT);
        let size = 8 + 4 + 24 + (name.len() + 1).next_multiple_of(NAME_ALIGN);
        out.u32(record::HEADER_BUILD_ID);
        out.u16(record::flag::USER | record::flag::BUILD_ID_SIZE);
        out.u16(size as u16);
        out.u32(u32::MAX);
        let start = out.len();
        out.put(id);
        out.resize(start + 20, 0);
        out.put(&[id.len() as u8, 0, 0, 0]);
        out.text(name, NAME_ALIGN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cpu_is_on_one_node_whatever_the_nodes_say() {
        let description = Description {
            online_cpus: Some(4),
            nodes: vec![
                MemoryNode {
                    number: 0,
                    cpus: vec![0, 1],
                },
                MemoryNode {
                    number: 1,
                    cpus: vec![1, 2],
                },
            ],
            ..Description::default()
        };
        let seen = Seen {
            last_cpu: Some(5),
            ..Seen::default()
        };
        let nodes = nodes(&description, &seen);
        assert_eq!(nodes[0].cpus, [0, 1, 3, 4, 5]);
        assert_eq!(nodes[1].cpus, [2]);
    }

    #[test]
    fn runs_of_cpus_are_written_as_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(ranges(&[]), "");
    }
}
