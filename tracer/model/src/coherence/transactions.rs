//! The messages of the protocol, and how many of each were sent.

use std::{fmt, ops::AddAssign};

/// One message between a processor and the line's home. Names are the paper's, except as said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transaction {
    /// Processor to home: a load missed.
    ReadShar,
    /// Processor to home: a store, or a load with bias, needs ownership.
    ReadPriv,
    /// Home to the owner: give up ownership.
    RecallPriv,
    /// Home to a sharer: drop the copy. Our name.
    RecallShar,
    /// Sharer to home: the copy is dropped. Our name.
    Ack,
    /// Clean owner to home: it goes on sharing.
    RespShar,
    /// Dirty owner to home: the newest content.
    RespData,
    /// Clean owner to home: the copy is dropped for a new owner. Our name.
    RespInval,
    /// Home to the requester: a Shared copy.
    DataShar,
    /// Home to the requester: the only copy. Our name.
    DataPriv,
    /// Owner to home: a dirty copy had to make room; its content. Serves no request. Our name.
    WriteBack,
    /// Holder to home: a clean copy had to make room. Serves no request. Our name.
    Drop,
}

impl Transaction {
    /// All kinds, in the order in which a request uses them; the last two are of evictions.
    pub const ALL: [Transaction; 12] = [
        Transaction::ReadShar,
        Transaction::ReadPriv,
        Transaction::RecallPriv,
        Transaction::RecallShar,
        Transaction::Ack,
        Transaction::RespShar,
        Transaction::RespData,
        Transaction::RespInval,
        Transaction::DataShar,
        Transaction::DataPriv,
        Transaction::WriteBack,
        Transaction::Drop,
    ];

    /// As in request logs: `READ_SHAR`.
    pub fn name(self) -> &'static str {
        match self {
            Transaction::ReadShar => "READ_SHAR",
            Transaction::ReadPriv => "READ_PRIV",
            Transaction::RecallPriv => "RECALL_PRIV",
            Transaction::RecallShar => "RECALL_SHAR",
            Transaction::Ack => "ACK",
            Transaction::RespShar => "RESP_SHAR",
            Transaction::RespData => "RESP_DATA",
            Transaction::RespInval => "RESP_INVAL",
            Transaction::DataShar => "DATA_SHAR",
            Transaction::DataPriv => "DATA_PRIV",
            Transaction::WriteBack => "WRITE_BACK",
            Transaction::Drop => "DROP",
        }
    }
}

impl fmt::Display for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Messages by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transactions([u64; Transaction::ALL.len()]);

impl Transactions {
    pub(super) fn send(&mut self, transaction: Transaction, times: u64) {
        self.0[transaction as usize] += times;
    }

    /// Messages of one kind.
    pub fn of(&self, transaction: Transaction) -> u64 {
        self.0[transaction as usize]
    }

    /// Messages of all kinds.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The kinds that were sent, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Transaction, u64)> + '_ {
        let counted = Transaction::ALL
            .into_iter()
            .map(|kind| (kind, self.of(kind)));
        counted.filter(|(_, count)| *count > 0)
    }
}

impl AddAssign for Transactions {
    fn add_assign(&mut self, other: Transactions) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count += more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_counted_in_its_own_place() {
        for (n, kind) in (1..).zip(Transaction::ALL) {
            let mut counts = Transactions::default();
            counts.send(kind, n);
            assert_eq!(counts.iter().collect::<Vec<_>>(), [(kind, n)]);
            assert_eq!(counts.total(), n);
        }
    }
}
