//! One thread on each CPU, for what is best done there.
//!
//! The kernel changes a CPU's events on that CPU. From another one it interrupts it and spins until it
//! answers, once for each change: where interrupts between CPUs are slow (2 to 20 ms in a small virtual
//! machine whose CPUs are busy), a window on a few words would take longer to arm than it lasts. A thread
//! that runs there changes all of them in some microseconds, and all CPUs do at the same time.

use std::{
    io,
    sync::mpsc::{Sender, channel},
    thread::{self, JoinHandle},
};

use super::{affinity::OnCpu, capabilities, priority};
use crate::access::Cpu;

type Order<T> = Box<dyn FnOnce(&mut T) + Send>;

/// The threads; each owns what is of its CPU, and drops it there.
#[derive(Debug)]
pub(super) struct Crew<T> {
    members: Vec<Member<T>>,
}

#[derive(Debug)]
struct Member<T> {
    /// `None` only while the crew ends.
    orders: Option<Sender<Order<T>>>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> Crew<T> {
    /// Starts the threads. One that may not run on its CPU (outside of our cpuset) runs elsewhere: slower,
    /// but as well.
    pub(super) fn start(cpus: &[Cpu], state: impl Fn(Cpu) -> T) -> io::Result<Crew<T>> {
        /// More than the few frames of an order and its allocations need.
        const STACK_BYTES: usize = 128 << 10;
        let mut members = Vec::new();
        let rights = capabilities::for_events();
        for cpu in cpus {
            let (orders, waiting) = channel::<Order<T>>();
            let (cpu, mut state) = (*cpu, state(*cpu));
            let thread = thread::Builder::new()
                .name(format!("cohtrace/{}", cpu.0))
                .stack_size(STACK_BYTES)
                .spawn(move || {
                    // That takes a right that is not kept.
                    settle_on(cpu);
                    // All that is done on a CPU is opening events there. Where no right can be given up, none is used.
                    let _ = capabilities::keep(rights);
                    for order in waiting {
                        order(&mut state);
                    }
                })?;
            members.push(Member {
                orders: Some(orders),
                thread: Some(thread),
            });
        }
        Ok(Crew { members })
    }

    /// Number of CPUs.
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Does the same on each CPU at once, waits for all, and returns what each returned, in the order of
    /// the CPUs.
    pub(super) fn each<R: Send + 'static>(
        &self,
        order: impl Fn(&mut T) -> R + Clone + Send + 'static,
    ) -> Vec<R> {
        let (send, receive) = channel();
        for (index, member) in self.members.iter().enumerate() {
            let (order, send) = (order.clone(), send.clone());
            let order: Order<T> = Box::new(move |state| {
                // The receiver waits for as long as there are senders.
                let _ = send.send((index, order(state)));
            });
            if let Some(orders) = &member.orders {
                let _ = orders.send(order);
            }
        }
        drop(send);
        let mut results: Vec<(usize, R)> = receive.iter().collect();
        assert_eq!(
            results.len(),
            self.members.len(),
            "a thread ends only with the crew"
        );
        results.sort_unstable_by_key(|(index, _)| *index);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

impl<T> Drop for Member<T> {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell.
            let _ = thread.join();
        }
    }
}

/// Binds the calling thread to a CPU, ahead of all ordinary threads there. Each may fail, and only makes the thread slower.
fn settle_on(cpu: Cpu) {
    // For as long as the thread lives.
    std::mem::forget(OnCpu::move_to(cpu));
    priority::ahead_of_ordinary_threads();
}

#[cfg(test)]
mod tests {
    use cohtrace_skips::skipped;

    use super::*;
    use crate::{
        machine::Capability,
        sys::{capabilities::effective, live_tests::online_cpus},
    };

    #[test]
    fn each_order_runs_on_its_own_cpu_and_keeps_its_own_state() {
        let cpus = online_cpus();
        let crew = Crew::start(&cpus, |cpu| (cpu, 0_u32)).unwrap();
        for round in 1..=100 {
            let ran = crew.each(|(cpu, rounds)| {
                *rounds += 1;
                // SAFETY: the call has no precondition.
                (*cpu, *rounds, unsafe { libc::sched_getcpu() })
            });
            let expected: Vec<_> = cpus.iter().map(|cpu| (*cpu, round, cpu.0 as i32)).collect();
            assert_eq!(ran, expected);
        }
    }

    #[test]
    fn its_threads_run_ahead_of_ordinary_ones_where_that_may_be_and_keep_no_right_to_it() {
        if !effective().has(Capability::SYS_NICE) {
            skipped("CAP_SYS_NICE is not ours: threads cannot run ahead of others");
            return;
        }
        let crew = Crew::start(&online_cpus(), |_| ()).unwrap();
        // SAFETY: the call has no precondition; 0 is the calling thread.
        let policies = crew.each(|()| unsafe { libc::sched_getscheduler(0) });
        assert!(policies.iter().all(|policy| *policy == libc::SCHED_FIFO));
        let rights = crew.each(|()| effective().has(Capability::SYS_NICE));
        assert!(rights.iter().all(|has| !has));
    }

    #[test]
    fn what_a_cpu_owns_is_dropped_when_the_crew_ends() {
        let owned = std::sync::Arc::new(());
        let crew = Crew::start(&online_cpus(), |_| owned.clone()).unwrap();
        assert!(std::sync::Arc::strong_count(&owned) > 1);
        drop(crew);
        assert_eq!(std::sync::Arc::strong_count(&owned), 1);
    }
}
