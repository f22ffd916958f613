//! One wait for everything: descriptors, the end of a process, a signal that asks to stop, or the time.

use std::{
    future::poll_fn,
    io,
    os::fd::{BorrowedFd, OwnedFd},
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{Interest, unix::AsyncFd},
    runtime::{Builder, Runtime},
    signal::unix::{Signal, SignalKind, signal},
    time::sleep,
};

use super::stop_signal::STOPPING;

/// All that is waited for. What it was is not told: whoever waits looks at everything anyway.
pub struct Events {
    descriptors: Vec<AsyncFd<OwnedFd>>,
    signals: Vec<Signal>,
    // After what is registered with it.
    runtime: Runtime,
}

impl Events {
    /// Waits for these descriptors to become readable, each time anew, and for the signals that ask to stop.
    pub fn of<'d>(descriptors: impl IntoIterator<Item = BorrowedFd<'d>>) -> io::Result<Events> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        let register = |fd: BorrowedFd<'d>| {
            let own = fd.try_clone_to_owned()?;
            // SAFETY: `OwnedFd` always gives the same number, and the descriptor is open until it is dropped with the `AsyncFd`.
            let registered = unsafe { AsyncFd::register_with_interest(own, Interest::READABLE) };
            registered.map_err(|error| error.into_parts().1)
        };
        let descriptors: io::Result<_> = descriptors.into_iter().map(register).collect();
        let signals = STOPPING.map(|number| signal(SignalKind::from_raw(number)));
        drop(entered);
        Ok(Events {
            descriptors: descriptors?,
            signals: signals.into_iter().collect::<io::Result<_>>()?,
            runtime,
        })
    }

    /// Waits until something happens, at most so long.
    pub fn wait(&mut self, most: Duration) {
        let (descriptors, signals) = (&mut self.descriptors, &mut self.signals);
        self.runtime.block_on(async {
            tokio::select! {
                () = poll_fn(|context| any(descriptors, signals, context)) => {}
                () = sleep(most) => {}
            }
        });
    }
}

/// Looks at all of them, so that each wakes the next wait.
fn any(
    descriptors: &mut [AsyncFd<OwnedFd>],
    signals: &mut [Signal],
    context: &mut Context<'_>,
) -> Poll<()> {
    let mut happened = false;
    for descriptor in descriptors {
        match descriptor.poll_read_ready(context) {
            Poll::Ready(Ok(mut ready)) => {
                ready.clear_ready();
                happened = true;
            }
            // The runtime is gone, and so are we.
            Poll::Ready(Err(_)) => happened = true,
            Poll::Pending => {}
        }
    }
    for signal in signals {
        happened |= signal.poll_recv(context).is_ready();
    }
    if happened {
        Poll::Ready(())
    } else {
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Write as _, os::fd::AsFd as _, thread, time::Instant};

    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn a_wait_ends_with_what_happens_and_else_with_its_time() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut events = Events::of([reader.as_fd()]).unwrap();
        let start = Instant::now();
        events.wait(Duration::from_millis(20));
        assert!(start.elapsed() >= Duration::from_millis(20));
        let writes = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            writer.write_all(b"x").unwrap();
            writer
        });
        events.wait(LONG);
        assert!(start.elapsed() < LONG);
        // What was told once is not told again.
        let again = Instant::now();
        events.wait(Duration::from_millis(20));
        assert!(again.elapsed() >= Duration::from_millis(20));
        drop(writes.join().unwrap());
    }

    #[test]
    fn the_end_of_a_process_ends_a_wait() {
        let mut child = std::process::Command::new("sleep")
            .arg("0.05")
            .spawn()
            .unwrap();
        let process = crate::sys::pidfd::PidFd::open(crate::access::Pid(child.id())).unwrap();
        let start = Instant::now();
        Events::of([process.as_fd()]).unwrap().wait(LONG);
        assert!(start.elapsed() < LONG);
        child.wait().unwrap();
    }
}
