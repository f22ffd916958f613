//! Ctrl-C, SIGTERM and SIGHUP as a flag: the run ends in order and still reports. A second Ctrl-C ends
//! the tool at once.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag,
};

/// The signals that ask to stop.
pub const STOPPING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Whether a signal asked us to stop.
pub struct StopSignal(Arc<AtomicBool>);

impl StopSignal {
    /// Installs the handlers.
    pub fn install() -> io::Result<StopSignal> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in STOPPING {
            flag::register_conditional_default(signal, stop.clone())?;
            flag::register(signal, stop.clone())?;
        }
        Ok(StopSignal(stop))
    }

    /// The flag that one sets.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }

    /// Whether one arrived.
    pub fn arrived(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
