//! Which tests run beside each other. A live test runs alone: whatever ran beside it would be in its samples, and take the
//! time that the threads it looks at need together. All others run beside each other.
//!
//! Every integration test begins beside the others (its `#[test]` sees to that: `tests/turns`), and one that is live takes
//! the turn ([`crate::live::ready`]). Both are locks of one file, so the same holds for the threads of a test program and
//! for several programs.

use std::{
    cell::{Cell, RefCell},
    fs::File,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use crate::{
    times::Time,
    workload::{target_directory, turn},
};

thread_local! {
    /// What the test on this thread holds while it runs beside others.
    static BESIDE_OTHERS: RefCell<Option<File>> = const { RefCell::new(None) };
    /// How long it ran alone, and how long it waited for that.
    static ALONE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static WAITED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// A test that runs, until dropped.
#[derive(Debug)]
#[must_use]
pub struct Place {
    began: Instant,
}

/// Waits until no test runs alone, and has none do so until the place is dropped.
pub fn beside_others() -> Place {
    BESIDE_OTHERS.set(Some(locked(File::lock_shared)));
    ALONE.set(Duration::ZERO);
    WAITED.set(Duration::ZERO);
    Place {
        began: Instant::now(),
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        BESIDE_OTHERS.take();
        let time = Time {
            test: thread::current().name().unwrap_or_default().to_owned(),
            took: self.began.elapsed().saturating_sub(WAITED.get()),
            alone: ALONE.get(),
        };
        time.tell();
    }
}

/// The right to run alone, until dropped; what comes then in the same test runs beside others again.
#[derive(Debug)]
#[must_use]
pub struct Turn {
    /// There until dropped.
    alone: Option<File>,
    since: Instant,
    is_in_test: bool,
}

/// Waits until no other test runs. The thread that takes the turn is the test's own.
pub fn alone() -> Turn {
    // Two that wait for each other to end would wait for ever.
    let is_in_test = BESIDE_OTHERS.take().is_some();
    let start = Instant::now();
    let alone = Some(locked(File::lock));
    WAITED.set(WAITED.get() + start.elapsed());
    Turn {
        alone,
        since: Instant::now(),
        is_in_test,
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        ALONE.set(ALONE.get() + self.since.elapsed());
        if self.is_in_test
            && let Some(file) = self.alone.take()
            && file.lock_shared().is_ok()
        {
            BESIDE_OTHERS.set(Some(file));
        }
    }
}

/// The lock of all tests, taken in one of its two ways. Who waits for it keeps others from coming first, or tests that run
/// beside each other without end would keep out one that runs alone.
fn locked(way: impl FnOnce(&File) -> std::io::Result<()>) -> File {
    let lock = || -> anyhow::Result<File> {
        let _first = turn(&path("first.lock")?)?;
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path("live.lock")?)?;
        way(&file)?;
        Ok(file)
    };
    lock().unwrap_or_else(|error| panic!("the turn to run a test: {error:#}"))
}

fn path(name: &str) -> anyhow::Result<PathBuf> {
    Ok(target_directory()?.join(name))
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Barrier,
            atomic::{AtomicU32, Ordering::SeqCst},
        },
        thread,
    };

    use super::*;

    #[test]
    fn tests_meet_beside_each_other_and_never_beside_one_that_runs_alone() {
        const ROUNDS: u32 = 50;
        let (running, alone_now) = (AtomicU32::new(0), AtomicU32::new(0));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let place = beside_others();
                        running.fetch_add(1, SeqCst);
                        assert_eq!(alone_now.load(SeqCst), 0);
                        thread::yield_now();
                        running.fetch_sub(1, SeqCst);
                        drop(place);
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let _place = beside_others();
                    let turn = alone();
                    assert_eq!(running.load(SeqCst), 0);
                    alone_now.fetch_add(1, SeqCst);
                    thread::yield_now();
                    assert_eq!(running.load(SeqCst), 0);
                    alone_now.fetch_sub(1, SeqCst);
                    drop(turn);
                    // The rest of it runs beside others.
                    running.fetch_add(1, SeqCst);
                    assert_eq!(alone_now.load(SeqCst), 0);
                    running.fetch_sub(1, SeqCst);
                }
            });
        });
        // Neither ends before the other has begun.
        let both = Barrier::new(2);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let _place = beside_others();
                    both.wait();
                });
            }
        });
    }
}
