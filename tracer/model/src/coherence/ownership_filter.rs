//! The filter of SWIFT section 4.1 on requests as they come: a row per line instead of a sorted log.

use super::Request;
use crate::access::Cpu;

/// The last request for a line, when it was a load's that has a number: whose, and the number.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastRead(Option<(Cpu, u32)>);

impl LastRead {
    /// Takes the line's next request. Gives the number of the load that it follows, if it is for ownership and by the
    /// same processor.
    pub fn observe(&mut self, cpu: Cpu, load: Option<u32>, request: Request) -> Option<u32> {
        match request {
            Request::ReadShar => {
                self.0 = load.map(|load| (cpu, load));
                None
            }
            Request::ReadPriv => {
                let (reader, load) = self.0.take()?;
                (reader == cpu).then_some(load)
            }
        }
    }
}

/// Which requests a log has. SWIFT section 3.2: a home's buffer "clearly has finite capacity", new requests overwrite the
/// oldest, "it is the responsibility of software to sample this buffer when it sees fit", and the log is what software
/// read, one buffer after the other. The paper gives no sizes.
///
/// One home is assumed, and software that reads after each so many requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogBuffer {
    kept: u64,
    every: u64,
}

impl Default for LogBuffer {
    /// All requests.
    fn default() -> LogBuffer {
        LogBuffer { kept: 1, every: 1 }
    }
}

impl LogBuffer {
    /// The last `kept` requests before each reading, which is after each `every`. `None` unless 1 <= kept <= every.
    pub fn new(kept: u64, every: u64) -> Option<LogBuffer> {
        (1..=every)
            .contains(&kept)
            .then_some(LogBuffer { kept, every })
    }

    /// Requests that it has, of each [`every`](Self::every).
    pub fn kept(self) -> u64 {
        self.kept
    }

    /// Requests from one reading to the next.
    pub fn every(self) -> u64 {
        self.every
    }

    /// Whether it has all requests.
    pub fn is_complete(self) -> bool {
        self.kept == self.every
    }

    /// Whether it has the request of that number, from 0.
    fn has(self, number: u64) -> bool {
        number % self.every >= self.every - self.kept
    }
}

/// Finds loads whose request is followed, as the very next request for the line, by one for ownership by the same
/// processor. Finds exactly the pairs of [`followed_by_ownership`](super::followed_by_ownership) in what the log has.
#[derive(Clone, Debug, Default)]
pub struct OwnershipFilter {
    log: LogBuffer,
    /// Requests so far.
    requests: u64,
    /// By number of the line.
    last: Vec<LastRead>,
}

impl OwnershipFilter {
    /// Of the requests that the log has.
    pub fn of(log: LogBuffer) -> OwnershipFilter {
        OwnershipFilter {
            log,
            ..OwnershipFilter::default()
        }
    }

    /// Takes the next request in order of arrival: for the line of that number, by that instruction's number. Gives the
    /// number of the load that it follows.
    pub fn observe(
        &mut self,
        line: u32,
        cpu: Cpu,
        instruction: u32,
        request: Request,
    ) -> Option<u32> {
        let number = self.requests;
        self.requests += 1;
        if !self.log.has(number) {
            return None;
        }
        let line = line as usize;
        if line >= self.last.len() {
            self.last.resize(line + 1, LastRead::default());
        }
        self.last[line].observe(cpu, Some(instruction), request)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        access::Tid,
        coherence::{Directory, Intent, RequestRow, followed_by_ownership, sort_by_line},
    };

    fn pairs_as_they_come(log: &[RequestRow]) -> Vec<u64> {
        pairs_in(LogBuffer::default(), log)
    }

    fn pairs_in(buffer: LogBuffer, log: &[RequestRow]) -> Vec<u64> {
        let mut filter = OwnershipFilter::of(buffer);
        let loads = log.iter().filter_map(|row| {
            let line = (row.line / 64) as u32;
            let load = filter.observe(line, row.cpu, row.ip as u32, row.request)?;
            Some(u64::from(load))
        });
        let mut loads: Vec<u64> = loads.collect();
        loads.sort_unstable();
        loads
    }

    fn pairs_of_sorted(log: &[RequestRow]) -> Vec<u64> {
        let mut sorted = log.to_vec();
        sort_by_line(&mut sorted);
        let mut loads: Vec<u64> = followed_by_ownership(&sorted)
            .map(|(load, _)| load.ip)
            .collect();
        loads.sort_unstable();
        loads
    }

    /// The log of these accesses: processor, line, instruction and what it wants.
    fn log(accesses: &[(u32, u64, u64, Intent)]) -> Vec<RequestRow> {
        let mut homes = vec![Directory::new(); 8];
        let rows = (0..)
            .zip(accesses)
            .filter_map(|(number, (cpu, line, ip, intent))| {
                let outcome = homes[*line as usize].access(Cpu(*cpu), *intent);
                Some(RequestRow {
                    number,
                    cpu: Cpu(*cpu),
                    tid: Tid(*cpu),
                    ip: *ip,
                    target: line * 64,
                    line: line * 64,
                    request: outcome.request?,
                })
            });
        rows.collect()
    }

    #[test]
    fn a_load_is_found_when_nobody_asks_between_it_and_its_store() {
        use Intent::{Load, Store};
        let found = |accesses: &[_]| pairs_as_they_come(&log(accesses));
        assert_eq!(found(&[(1, 0, 7, Load), (1, 0, 8, Store)]), [7]);
        assert_eq!(
            found(&[(1, 0, 7, Load), (2, 1, 9, Load), (1, 0, 8, Store)]),
            [7]
        );
        assert_eq!(
            found(&[(1, 0, 7, Load), (2, 0, 9, Load), (1, 0, 8, Store)]),
            [0u64; 0]
        );
        assert_eq!(found(&[(1, 0, 7, Load), (2, 0, 8, Store)]), [0u64; 0]);
        assert_eq!(found(&[(1, 0, 7, Store), (1, 0, 8, Store)]), [0u64; 0]);
    }

    #[test]
    fn a_buffer_that_is_read_now_and_then_has_the_last_requests_before_each_reading() {
        use Intent::{Load, Store};
        let log = log(&[
            (1, 0, 7, Load),
            (1, 0, 8, Store),
            (2, 1, 5, Load),
            (2, 1, 6, Store),
            (3, 0, 9, Load),
            (3, 0, 8, Store),
        ]);
        let found = |kept, every| pairs_in(LogBuffer::new(kept, every).expect("a buffer"), &log);
        assert_eq!(found(1, 1), [5, 7, 9]);
        assert_eq!(found(2, 4), [5]);
        assert_eq!(found(4, 6), [5, 9]);
        assert_eq!(found(2, 3), [9]);
        // A store without its load, or a load without its store.
        assert_eq!(found(1, 3), [0u64; 0]);
        assert_eq!(found(1, 5), [0u64; 0]);
        // What was read at different times is put together, and hides who asked between.
        let between = self::log(&[
            (2, 1, 6, Store),
            (1, 0, 7, Load),
            (2, 0, 9, Load),
            (1, 0, 8, Store),
        ]);
        assert_eq!(pairs_in(LogBuffer::default(), &between), [0u64; 0]);
        let sampled = LogBuffer::new(1, 2).expect("a buffer");
        assert_eq!(pairs_in(sampled, &between), [7]);
        for (kept, every) in [(0, 1), (2, 1), (0, 0)] {
            assert_eq!(LogBuffer::new(kept, every), None);
        }
    }

    proptest! {
        #[test]
        fn a_sampled_log_gives_the_pairs_of_its_rows_sorted(
            accesses in prop::collection::vec(
                (0..3u32, 0..3u64, 0..9u64, prop::sample::select(vec![Intent::Load, Intent::Store])),
                0..200,
            ),
            (every, skipped) in (1..20u64).prop_flat_map(|every| (Just(every), 0..every)),
        ) {
            let log = log(&accesses);
            let buffer = LogBuffer::new(every - skipped, every).expect("a buffer");
            let rows: Vec<RequestRow> = (0..)
                .zip(&log)
                .filter(|(number, _): &(u64, _)| number % every >= skipped)
                .map(|(_, row)| *row)
                .collect();
            prop_assert_eq!(pairs_in(buffer, &log), pairs_of_sorted(&rows));
        }

        #[test]
        fn requests_as_they_come_give_the_pairs_of_the_sorted_log(
            accesses in prop::collection::vec(
                (
                    0..4u32,
                    0..6u64,
                    0..9u64,
                    prop::sample::select(vec![Intent::Load, Intent::BiasedLoad, Intent::Store]),
                ),
                0..200,
            ),
        ) {
            let log = log(&accesses);
            prop_assert_eq!(pairs_as_they_come(&log), pairs_of_sorted(&log));
        }
    }
}
