//! Ctrl-C, SIGTERM and SIGHUP as a flag: the run ends in order and still reports. A second Ctrl-C ends
//! the tool at once.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::{Context as _, Result};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag,
};

/// Whether a signal asked us to stop.
pub struct StopSignal(Arc<AtomicBool>);

impl StopSignal {
    /// Installs the handlers.
    pub fn install() -> Result<StopSignal> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register_conditional_default(signal, stop.clone())
                .and_then(|_| flag::register(signal, stop.clone()))
                .context("installing signal handlers")?;
        }
        Ok(StopSignal(stop))
    }

    /// Whether one arrived.
    pub fn arrived(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
