//! Messages of the protocol.

use super::{Amount, Needs, Statistic, Unit};
use crate::event_of::Event;

/// All messages that serve what a processor asks for.
#[derive(Debug)]
pub(super) struct Messages;

impl Statistic for Messages {
    fn name(&self) -> &'static str {
        "messages"
    }

    fn unit(&self) -> Unit {
        Unit::Count("messages")
    }

    fn about(&self) -> &'static str {
        "Messages of the directory protocol that served the accesses, by the processor that asks."
    }

    fn needs(&self) -> Needs {
        Needs::Emulator
    }

    fn counts(&self, event: &Event<'_>) -> Option<Amount> {
        let Event::Access(seen) = event else {
            return None;
        };
        let sent = seen
            .outcomes
            .iter()
            .map(|outcome| outcome.transactions.total());
        Some(Amount::count(sent.fold(0, u64::saturating_add))).filter(|sent| sent.amount > 0)
    }

    fn asks_the_directory(&self) -> bool {
        true
    }
}
