//! Work on one CPU while another thread works on another one.

use std::{
    hint, io,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use cohtrace_model::access::Cpu;
use cohtrace_platform::sys::affinity::OnCpu;

/// Does `own` on the CPU `here` while another thread does `work` on the CPU `there`, which ends when the flag that it is
/// given says so: at the latest when `own` has ended. `own` begins when the other one is there.
///
/// # Errors
/// A CPU is offline or not allowed; or the thread cannot be started.
pub(crate) fn beside<T>(
    here: Cpu,
    there: Cpu,
    over: &AtomicBool,
    work: impl FnOnce() + Send,
    own: impl FnOnce() -> T,
) -> io::Result<T> {
    let ready = AtomicBool::new(false);
    let _here = OnCpu::move_to(here)?;
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("other".to_owned());
        let working = thread.spawn_scoped(scope, || {
            let on = OnCpu::move_to(there);
            over.fetch_or(on.is_err(), Ordering::Relaxed);
            ready.store(true, Ordering::Release);
            let _on = on?;
            work();
            Ok::<(), io::Error>(())
        })?;
        while !ready.load(Ordering::Acquire) {
            hint::spin_loop();
        }
        let found = own();
        over.store(true, Ordering::Relaxed);
        let ended = working.join();
        ended.unwrap_or_else(|_| Err(io::Error::other("the other thread ended")))?;
        Ok(found)
    })
}
