//! Which rights a command gives up, and when. Files that were asked for are opened with those of the user who asked.

use std::io;

use anyhow::{Context as _, Result};

use crate::{
    machine::{Capabilities, Capability},
    sys::capabilities::{effective, for_events, gain_nothing, is_root, keep},
};

/// To reach and replace the files of all users, as root expects to.
const FILES: [Capability; 3] = [
    Capability::DAC_OVERRIDE,
    Capability::DAC_READ_SEARCH,
    Capability::FOWNER,
];
/// To name what is in a recording: files of processes that still run, and the kernel.
const NAMES: [Capability; 2] = [Capability::SYS_PTRACE, Capability::SYSLOG];
/// To look at what comes while programs run, besides events: their memory and files, also deleted ones, the kernel's names,
/// maps of programs in the kernel, rings, and to keep up with them.
const OBSERVING: [Capability; 7] = [
    Capability::BPF,
    Capability::DAC_READ_SEARCH,
    Capability::SYS_PTRACE,
    Capability::SYSLOG,
    Capability::IPC_LOCK,
    Capability::SYS_NICE,
    Capability::CHECKPOINT_RESTORE,
];

/// Of a command that observes nothing: none, but root's to files and names. What it starts gains nothing either, unless
/// that is the business of whoever called us.
pub(super) fn read_only(starts_for_others: bool) -> Result<()> {
    let kept = root_or_none(Capabilities::of(&FILES).with(&NAMES));
    keep(kept).context("giving up rights")?;
    if !starts_for_others {
        gain_nothing().context("giving up rights")?;
    }
    Ok(())
}

/// Of one that runs a command in an emulator, which takes no right; root must be able to end it.
pub(super) fn emulate() -> Result<()> {
    let kept = root_or_none(
        Capabilities::of(&FILES)
            .with(&[Capability::KILL])
            .with(&NAMES),
    );
    keep(kept).context("giving up rights")
}

/// Of one that observes, once all is open. Threads that there are already keep what they were given for their part.
pub(super) fn observe() -> Result<()> {
    let held = effective();
    let mut kept = for_events().with(&OBSERVING);
    if is_root() {
        kept = kept.with(&FILES).with(&[Capability::KILL]);
    }
    // The right of old stands for those that are not there.
    let maps = !held.has(Capability::BPF);
    let deleted_files = is_root() && !held.has(Capability::CHECKPOINT_RESTORE);
    if maps || deleted_files {
        kept = kept.with(&[Capability::SYS_ADMIN]);
    }
    keep(kept).context("giving up rights")
}

/// Of a thread that does nothing but write files that were asked for.
pub(super) fn write_files() -> io::Result<()> {
    keep(root_or_none(Capabilities::of(&FILES)))
}

fn root_or_none(kept: Capabilities) -> Capabilities {
    if is_root() { kept } else { Capabilities(0) }
}
