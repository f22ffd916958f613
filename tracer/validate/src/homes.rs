//! Which accesses of an order are an event, by the directory of each line.

use rustc_hash::FxHashMap;

use crate::{
    access::{Access, LineKey, LineSize, Place},
    coherence::{Directory, Found, Intent, Outcome, Protocol, Request, State},
    events::Ordered,
};

/// The homes of all lines, which no cache holds at first.
pub(crate) struct Homes {
    ordered: Ordered,
    protocol: Protocol,
    lines: FxHashMap<LineKey, Directory>,
}

impl Homes {
    pub(crate) fn of(ordered: Ordered) -> Homes {
        Homes {
            ordered,
            protocol: Protocol {
                exclusive_on_first_read: ordered == Ordered::CleanWrites,
                ..Protocol::default()
            },
            lines: FxHashMap::default(),
        }
    }

    /// Serves the next access; whether it is the event.
    pub(crate) fn serve(&mut self, access: &Access, place: Place) -> bool {
        let Some(intent) = Intent::of(access.op) else {
            return false;
        };
        let protocol = self.protocol;
        let home = self.lines.entry(place.line(LineSize::B64));
        let home = home.or_insert_with(|| Directory::under(protocol));
        let outcome = home.access(access.cpu, intent);
        is_event(self.ordered, intent, &outcome)
    }
}

fn is_event(ordered: Ordered, intent: Intent, outcome: &Outcome) -> bool {
    match (ordered, intent) {
        (Ordered::Interventions, Intent::Load) => matches!(outcome.found, Found::Dirty(_)),
        (Ordered::Invalidations, Intent::Store) => match outcome.found {
            Found::Shared { others } => others > 0,
            Found::Clean(_) | Found::Dirty(_) => true,
            Found::Own | Found::Idle => false,
        },
        (Ordered::Upgrades, Intent::Store) => {
            outcome.state == State::Shared && outcome.request == Some(Request::ReadPriv)
        }
        (Ordered::CleanWrites, Intent::Store) => {
            outcome.state == State::Exclusive && outcome.request.is_none()
        }
        _ => false,
    }
}
