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

/// Finds loads whose request is followed, as the very next request for the line, by one for ownership by the same
/// processor. Finds exactly the pairs of [`followed_by_ownership`](super::followed_by_ownership).
#[derive(Clone, Debug, Default)]
pub struct OwnershipFilter {
    /// By number of the line.
    last: Vec<LastRead>,
}

impl OwnershipFilter {
    /// Takes the next request in order of arrival: for the line of that number, by that instruction's number. Gives the
    /// number of the load that it follows.
    pub fn observe(
        &mut self,
        line: u32,
        cpu: Cpu,
        instruction: u32,
        request: Request,
    ) -> Option<u32> {
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
        let mut filter = OwnershipFilter::default();
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

    proptest! {
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
