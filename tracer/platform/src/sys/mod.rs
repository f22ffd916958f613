//! The only unsafe code of the tool: perf events and their rings, BPF, other processes' memory.
//!
//! Nothing here interprets what it carries. Everything the kernel gives is held by a file descriptor
//! or a mapping, so that nothing of ours outlives the process, however it ends.
#![expect(
    unsafe_code,
    reason = "system calls and memory shared with the kernel; see each block's SAFETY comment"
)]

pub mod affinity;
pub mod bpf;
mod breakpoint_cost;
mod breakpoint_slots;
#[cfg(test)]
mod breakpoint_turn;
pub mod breakpoints;
pub mod capabilities;
pub mod clock;
pub mod cpu_changes;
mod cpu_crew;
pub mod cpuid;
pub mod disturbance;
/// The memory that the QEMU plugin and we share.
#[path = "../../../qemu-plugin/src/layout.rs"]
pub mod emulator_layout;
pub mod emulator_memory;
pub mod events;
pub mod found_file;
pub mod free_memory;
pub mod heap_cost;
pub mod hold;
pub mod launch;
pub mod limits;
#[cfg(target_arch = "x86_64")]
pub mod line_loops;
#[cfg(test)]
mod live_tests;
pub mod map_file;
pub mod map_memory;
#[cfg(test)]
mod memory_live_tests;
pub mod orphans;
pub mod own_descriptor;
pub mod perf_event;
pub mod pidfd;
pub mod poll;
pub mod priority;
pub mod probe;
pub mod proc_snapshot;
pub mod process_memory;
mod rendezvous;
pub mod ring;
#[cfg(any(test, feature = "fixtures"))]
pub mod running;
pub mod standard_streams;
pub mod stop_signal;
pub mod target_table;
pub mod terminal;
#[cfg(test)]
mod told_live_tests;
mod torn_pages;
pub mod uprobe;
pub mod watch_control;
#[cfg(test)]
mod watch_tests;
pub mod window_keeper;
