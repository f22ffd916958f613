//! What the file says of the run besides its records.

use crate::{
    perf_format::clock,
    session::{Meta, SourceRecord},
};

/// What was recorded, and where. Unknown is left out of the file, or said to be so.
#[derive(Debug, Clone, Default)]
pub struct Description {
    /// Name of the host.
    pub host: Option<String>,
    /// `uname -r`.
    pub kernel_release: Option<String>,
    /// `uname -m`.
    pub arch: Option<String>,
    /// As `/proc/cpuinfo` names it.
    pub cpu_model: Option<String>,
    /// CPUs online.
    pub online_cpus: Option<u32>,
    /// By argument.
    pub command_line: Vec<String>,
    /// Names of the sources.
    pub sources: Vec<String>,
    /// Clock of all times, by its number in include/uapi/linux/time.h; `None` for perf's own.
    pub clock: Option<u32>,
    /// The same moment on the wall clock (nanoseconds since 1970) and on that clock.
    pub clocks_ns: Option<(u64, u64)>,
    /// The addresses of instructions are those of the accessing ones.
    pub exact_ip: bool,
    /// Memory nodes and their CPUs. `perf c2c` refuses a file without any, so when it is empty the file has one
    /// node with all CPUs.
    pub nodes: Vec<MemoryNode>,
    /// Where the kernel was loaded, for its symbols.
    pub kernel_text: Option<KernelText>,
}

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryNode {
    /// Node number, as the kernel counts them.
    pub number: u32,
    /// Its CPUs, ascending.
    pub cpus: Vec<u32>,
}

/// The symbol by which perf moves a kernel's symbols to where that kernel was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelText {
    /// `_stext`.
    pub symbol: &'static str,
    /// Its address.
    pub address: u64,
}

impl Description {
    /// What a session knows of itself.
    pub fn of(meta: &Meta) -> Description {
        Description {
            host: meta.host.clone(),
            kernel_release: meta.machine.kernel_release.clone(),
            arch: meta.machine.arch.clone(),
            cpu_model: meta.machine.cpu_model.clone(),
            online_cpus: meta.machine.online_cpus,
            command_line: meta.command_line.clone(),
            sources: meta.sources.iter().map(|s| s.name.clone()).collect(),
            clock: clock::number(&meta.clock),
            clocks_ns: meta.started_unix_ns.zip(meta.start_ns),
            exact_ip: exact_ip(meta),
            nodes: Vec::new(),
            kernel_text: None,
        }
    }

    /// The name of an event: `timer+watch/mem-loads/`.
    pub(super) fn event_name(&self, event: &str) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let names: Vec<String> = (self.sources.iter().take(8))
            .map(|name| name.chars().filter(|c| plain(*c)).take(32).collect())
            .filter(|name: &String| !name.is_empty())
            .collect();
        let pmu = if names.is_empty() {
            "cohtrace".to_owned()
        } else {
            names.join("+")
        };
        format!("{pmu}/{event}/")
    }
}

/// Of the sources that have accesses, all say so.
fn exact_ip(meta: &Meta) -> bool {
    let says = |record: &SourceRecord, what: &str| record.evidence.iter().any(|e| e == what);
    let mut of_accesses = (meta.sources.iter()).filter(|record| says(record, "data_addr"));
    of_accesses.all(|record| says(record, "exact_ip"))
}
