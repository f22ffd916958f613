//! The lives of a line's copies in watch windows, if accesses that are known to lie within some bytes only share as little
//! as they can, and if they share as much.
//!
//! ```text
//!   stored by another   [0123]....
//!   read                ????????       somewhere: of 4-7 at least, which nobody else stores, and of 0-7 at most
//! ```

use super::{
    groups::Group,
    lifetimes::{Lifetimes, of_window},
    lives::{HandOffs, Lives},
    served::{OnLine, Served},
    small_map::SmallMap,
};
use crate::access::{ByteSet, LineSize, Tid};

/// Lives in several windows.
#[derive(Clone, Debug, Default)]
struct Seen {
    over: Lives,
    /// Of copies that were held when their window ended.
    held: Lives,
}

impl Seen {
    fn add(&mut self, window: &Lifetimes) {
        self.over.add_all(window.lives(), 1.0);
        self.held.add_all(&window.held(), 1.0);
    }
}

/// Lives in the windows on a line.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowLives {
    /// If an access that is known to lie within some bytes only touched those that others leave alone.
    least: Seen,
    /// If it touched all of them; `None` while there is no such access.
    widest: Option<Seen>,
}

impl WindowLives {
    /// Adds a window; `somewhere` if watched accesses in it lie within some bytes only.
    pub(super) fn add_window(&mut self, order: &[Served], somewhere: bool, line_size: LineSize) {
        if somewhere {
            let reach = Reach::of(order, line_size);
            let least = of_window(order, |served| reach.least(&served.access, line_size));
            let widest = of_window(order, |served| served.access.reach(line_size));
            (self.widest.get_or_insert_with(|| self.least.clone())).add(&widest);
            self.least.add(&least);
        } else {
            let exact = of_window(order, |served| served.access.bytes(line_size));
            if let Some(widest) = &mut self.widest {
                widest.add(&exact);
            }
            self.least.add(&exact);
        }
    }

    /// All hand-offs; their number does not depend on the bytes.
    pub(super) fn all(&self) -> u64 {
        (self.least.over.all() + self.least.held.all()).round() as u64
    }

    /// Hand-offs by kind, if they share as little as they can.
    pub(super) fn hand_offs(&self, groups: &[Group]) -> HandOffs {
        self.least.over.hand_offs(&self.least.held, groups)
    }

    /// The same, if they share as much as they can.
    pub(super) fn widest_hand_offs(&self, groups: &[Group]) -> HandOffs {
        let widest = self.widest.as_ref().unwrap_or(&self.least);
        widest.over.hand_offs(&widest.held, groups)
    }
}

/// Bytes that each thread may touch in a window, and may store.
struct Reach(SmallMap<Tid, (u128, u128)>);

impl Reach {
    fn of(order: &[Served], line_size: LineSize) -> Reach {
        let mut reach = SmallMap::<Tid, (u128, u128)>::default();
        for Served { access, .. } in order {
            if let Some((touched, stored)) = reach.slot(access.tid, usize::MAX) {
                let bytes = access.reach(line_size).0;
                *touched |= bytes;
                *stored |= if access.op.stores() { bytes } else { 0 };
            }
        }
        Reach(reach)
    }

    /// The bytes of an access, or those of the ones it may touch in which it meets nobody: a load no store, a store no
    /// access.
    fn least(&self, access: &OnLine, line_size: LineSize) -> ByteSet {
        if !access.is_somewhere() {
            return access.bytes(line_size);
        }
        let others = (self.0.iter()).filter(|(tid, _)| *tid != access.tid);
        let met = others.fold(0, |met, (_, (touched, stored))| {
            met | if access.op.stores() { touched } else { stored }
        });
        ByteSet(access.reach(line_size).0 & !met)
    }
}
