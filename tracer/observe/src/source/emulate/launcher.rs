//! What has to be there before the emulator starts: the emulator, our plugin, and the memory that both share.

use std::{
    ffi::OsString,
    ops::Range,
    os::fd::{AsRawFd as _, OwnedFd},
    path::{Path, PathBuf},
    process::Command,
};

use super::{EmulationError, program};
use crate::printable::words;
use crate::sys::{
    emulator_layout::MAGIC,
    emulator_memory::{EmulatorMemory, inherited_file},
};

/// The plugin, built from `tracer/qemu-plugin`; empty where this build has none.
static PLUGIN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/qemu_plugin.so"));

/// The plugin's file.
pub fn plugin() -> &'static [u8] {
    PLUGIN
}

/// Name of the emulator.
pub const QEMU: &str = "qemu-x86_64";
/// Names it, where it is not in `PATH` or is another.
pub const QEMU_VARIABLE: &str = "COHTRACE_QEMU";

/// Ready to start a program in the emulator, once.
#[derive(Debug)]
pub struct Emulator {
    qemu: PathBuf,
    program: PathBuf,
    arguments: Vec<OsString>,
    plugin: OwnedFd,
    /// Code whose executions are counted.
    counted: Option<Range<u64>>,
    pub(super) memory: EmulatorMemory,
}

impl Emulator {
    /// Of a command's words, with the emulator at `qemu`, or else where `PATH` has it.
    pub fn prepare(
        command: &[OsString],
        qemu: Option<PathBuf>,
    ) -> Result<Emulator, EmulationError> {
        let Some((word, arguments)) = command.split_first() else {
            return Err(EmulationError::NeedsCommand);
        };
        if PLUGIN.is_empty() {
            return Err(EmulationError::NoPlugin);
        }
        let path = std::env::var_os("PATH");
        let qemu = find_qemu(qemu, path.as_deref())?;
        let Some(found) = program::find(word, path.as_deref()) else {
            let why = std::io::ErrorKind::NotFound.into();
            return Err(EmulationError::Program {
                name: words(word),
                why,
            });
        };
        program::check(&found)?;
        let memory = EmulatorMemory::new().map_err(EmulationError::Memory)?;
        memory[0]
            .header
            .magic
            .store(MAGIC, std::sync::atomic::Ordering::Release);
        let plugin = inherited_file(PLUGIN).map_err(EmulationError::Memory)?;
        Ok(Emulator {
            qemu,
            program: found,
            arguments: arguments.to_vec(),
            plugin,
            counted: None,
            memory,
        })
    }

    /// The same, counting executions of the code at these addresses too, by instruction, for
    /// [`executed`](Emulator::executed): slow there, and costs nothing elsewhere.
    #[must_use]
    pub fn counting(mut self, code: Range<u64>) -> Emulator {
        self.counted = Some(code);
        self
    }

    /// The command that runs the program in the emulator. To be started by this process itself.
    pub fn command(&self) -> Command {
        let mut plugin = OsString::from(format!("/proc/self/fd/{}", self.plugin.as_raw_fd()));
        plugin.push(format!(
            ",memory={},plugin={},tool={}",
            self.memory.fd(),
            self.plugin.as_raw_fd(),
            std::process::id(),
        ));
        if let Some(Range { start, end }) = &self.counted {
            plugin.push(format!(",counts={start:x}-{end:x}"));
        }
        let mut command = Command::new(&self.qemu);
        command
            .arg("-plugin")
            .arg(plugin)
            .arg(&self.program)
            .args(&self.arguments);
        command
    }

    /// The emulator.
    pub fn qemu(&self) -> &Path {
        &self.qemu
    }

    /// The program that it runs.
    pub fn program(&self) -> &Path {
        &self.program
    }
}

/// Whether an emulator is found without being named.
pub fn is_installed() -> bool {
    find_qemu(None, std::env::var_os("PATH").as_deref()).is_ok()
}

/// The emulator: the one that was asked for, or that of the environment, or the first in `PATH`.
fn find_qemu(
    asked: Option<PathBuf>,
    path: Option<&std::ffi::OsStr>,
) -> Result<PathBuf, EmulationError> {
    let asked = asked.or_else(|| std::env::var_os(QEMU_VARIABLE).map(PathBuf::from));
    match asked {
        Some(asked) if asked.is_file() => Ok(asked),
        Some(asked) => Err(EmulationError::NoSuchQemu(asked)),
        None => program::find(QEMU, path).ok_or(EmulationError::NoQemu),
    }
}
