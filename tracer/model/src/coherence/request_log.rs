//! The request log of SWIFT section 3.2, and the filter of section 4.1 that mines it.

use std::fmt;

use super::Request;
use crate::access::{Cpu, Tid};

/// One request. Printed as a row of the paper's table 1:
/// `number,processor,thread,ip,target address,line address,request`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRow {
    /// Number in order of arrival.
    pub number: u64,
    /// Who asked.
    pub cpu: Cpu,
    /// For which thread.
    pub tid: Tid,
    /// Instruction.
    pub ip: u64,
    /// First byte that the instruction touches.
    pub target: u64,
    /// First byte of its line.
    pub line: u64,
    /// What was asked for.
    pub request: Request,
}

impl fmt::Display for RequestRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{},{},{},{:#x},{:#x},{:#x},{}",
            self.number, self.cpu.0, self.tid.0, self.ip, self.target, self.line, self.request
        )
    }
}

/// Brings together the requests for each line, in order of arrival: table 1 to table 2 of the paper.
pub fn sort_by_line(log: &mut [RequestRow]) {
    log.sort_by_key(|row| (row.line, row.number));
}

/// The pairs of a sorted log that show a load at once followed by a request for ownership: adjacent rows of
/// one line and one processor, READ_SHAR and then READ_PRIV.
pub fn followed_by_ownership(
    sorted: &[RequestRow],
) -> impl Iterator<Item = (&RequestRow, &RequestRow)> {
    let pairs = sorted.windows(2).map(|pair| (&pair[0], &pair[1]));
    pairs.filter(|(first, second)| {
        first.line == second.line
            && first.cpu == second.cpu
            && (first.request, second.request) == (Request::ReadShar, Request::ReadPriv)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE_1: &str = "\
109,1,1,0x4008b80,0xab02380,0xab02380,READ_SHAR
110,3,1,0x4008120,0xab02408,0xab02400,READ_SHAR
111,1,1,0x4008b90,0xab0238c,0xab02380,READ_PRIV";

    const TABLE_2: &str = "\
109,1,1,0x4008b80,0xab02380,0xab02380,READ_SHAR
111,1,1,0x4008b90,0xab0238c,0xab02380,READ_PRIV
110,3,1,0x4008120,0xab02408,0xab02400,READ_SHAR";

    fn row(number: u64, cpu: u32, ip: u64, target: u64, request: Request) -> RequestRow {
        RequestRow {
            number,
            cpu: Cpu(cpu),
            tid: Tid(1),
            ip,
            target,
            line: target & !0x7f,
            request,
        }
    }

    fn table_1() -> Vec<RequestRow> {
        vec![
            row(109, 1, 0x4008b80, 0xab02380, Request::ReadShar),
            row(110, 3, 0x4008120, 0xab02408, Request::ReadShar),
            row(111, 1, 0x4008b90, 0xab0238c, Request::ReadPriv),
        ]
    }

    fn text(log: &[RequestRow]) -> String {
        let rows: Vec<String> = log.iter().map(ToString::to_string).collect();
        rows.join("\n")
    }

    fn filtered(log: &[RequestRow]) -> Vec<(u64, u64)> {
        let numbers = followed_by_ownership(log).map(|(a, b)| (a.number, b.number));
        numbers.collect()
    }

    #[test]
    fn table_1_of_the_paper_sorts_to_table_2_and_the_filter_finds_109_and_111() {
        let mut log = table_1();
        assert_eq!(text(&log), TABLE_1);
        assert_eq!(filtered(&log), []);
        sort_by_line(&mut log);
        assert_eq!(text(&log), TABLE_2);
        assert_eq!(filtered(&log), [(109, 111)]);
    }

    #[test]
    fn the_filter_wants_one_processor_one_line_this_order_and_nothing_between() {
        let with = |change: &dyn Fn(&mut Vec<RequestRow>)| {
            let mut log = table_1();
            change(&mut log);
            sort_by_line(&mut log);
            filtered(&log)
        };
        assert_eq!(with(&|log| log[2].cpu = Cpu(3)), []);
        assert_eq!(with(&|log| log[2].line = 0xab02480), []);
        assert_eq!(with(&|log| log[2].number = 108), []);
        assert_eq!(with(&|log| log[1].line = 0xab02380), []);
        assert_eq!(with(&|log| log[2].tid = Tid(2)), [(109, 111)]);
    }
}
