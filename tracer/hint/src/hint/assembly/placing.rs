//! Where a prefetch belongs that would be repeated in front of its load. The same rules for assembly text and for machine
//! code.

use crate::{
    decode::{Around, RegisterBits, Spot},
    hint::repeated::Repeated,
};

/// Where a prefetch goes; `S` is a place in the code.
#[derive(Debug)]
pub(super) enum Placing<S> {
    /// In front of the load.
    InFront,
    /// There, before the loop around it.
    BeforeLoop(Vec<S>),
    /// Nowhere.
    LeftOut,
}

/// Where the prefetch of a load goes that is there, and whose operand has these registers.
pub(super) fn placing(around: Around, operand: RegisterBits, repeated: Repeated) -> Placing<Spot> {
    match around {
        Around::Straight => Placing::InFront,
        Around::Loop {
            writes,
            before: Some(spots),
        } if operand & writes == 0 => Placing::BeforeLoop(spots),
        _ if repeated.pays => Placing::InFront,
        _ => Placing::LeftOut,
    }
}
