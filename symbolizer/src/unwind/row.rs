//! One step up a call stack: where a function keeps its caller's registers at an address, by its call frame
//! information (DWARF 5, section 6.4).

use gimli::{
    CfaRule, EhFrame, EhFrameOffset, Register, RegisterRule, UnwindContext, UnwindSection,
};

use super::entries::{self, Section};
use crate::{image::Image, spans::Spans};

/// Registers whose rules are asked for: those of x86-64 (0 to 15, 16 the return address) and of aarch64
/// (x0 to x30, 31 the stack pointer).
const REGISTERS: u16 = 32;

/// The caller's registers, at one address of a function. Registers have their DWARF numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameRow {
    /// The canonical frame address (the stack pointer before the call) is this register's value ..
    pub cfa_register: u16,
    /// .. and so many bytes.
    pub cfa_offset: i64,
    /// The caller's registers that have a rule; any other has its value still.
    pub saved: Vec<(u16, Saved)>,
    /// Which of the caller's registers the return address is.
    pub return_address: u16,
}

/// What became of a register of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    /// It is in memory, so many bytes from the canonical frame address.
    At(i64),
    /// It is the canonical frame address and so many bytes.
    Is(i64),
    /// Another register has it.
    In(u16),
    /// It is gone, or its rule is an expression. A return address without a value ends the stack.
    Gone,
}

/// The rules at an address; `None` without an entry, and where the frame address takes an expression (entries
/// of the procedure linkage table, signal frames).
pub(super) fn frame_row(image: &Image, bounds: &Spans<usize>, svma: u64) -> Option<FrameRow> {
    let Section { frames, bases } = entries::eh_frame(image)?;
    let offset = bounds.covering(svma).next()?.value;
    let entry = frames
        .fde_from_offset(&bases, EhFrameOffset(offset), EhFrame::cie_from_offset)
        .ok()?;
    let mut context = UnwindContext::new();
    let row = entry
        .unwind_info_for_address(&frames, &bases, &mut context, svma)
        .ok()?;
    let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else {
        return None;
    };
    let return_address = entry.cie().return_address_register().0;
    let rules = (0..=REGISTERS).filter_map(|number| {
        let saved = match row.register(Register(number))? {
            RegisterRule::SameValue => return None,
            RegisterRule::Offset(at) => Saved::At(at),
            RegisterRule::ValOffset(is) => Saved::Is(is),
            RegisterRule::Register(other) => Saved::In(other.0),
            _ => Saved::Gone,
        };
        Some((number, saved))
    });
    Some(FrameRow {
        cfa_register: register.0,
        cfa_offset: offset,
        saved: rules.collect(),
        return_address,
    })
}

impl FrameRow {
    /// Replaces a function's registers by its caller's, as they are on return, and gives the return address.
    /// `read` reads eight bytes of the stack. `stack_pointer` is that register's DWARF number: 7 on x86-64, 31
    /// on aarch64. `None` at the outermost frame, and where something needed is not known.
    pub fn step(
        &self,
        registers: &mut [Option<u64>; 33],
        stack_pointer: u16,
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Option<u64> {
        let value = |registers: &[Option<u64>; 33], number: u16| {
            registers.get(usize::from(number)).copied().flatten()
        };
        let cfa = value(registers, self.cfa_register)?.wrapping_add_signed(self.cfa_offset);
        let before = *registers;
        for (number, saved) in &self.saved {
            let now = match *saved {
                Saved::At(at) => read(cfa.wrapping_add_signed(at)),
                Saved::Is(is) => Some(cfa.wrapping_add_signed(is)),
                Saved::In(other) => value(&before, other),
                Saved::Gone => None,
            };
            *registers.get_mut(usize::from(*number))? = now;
        }
        let to = value(registers, self.return_address)?;
        *registers.get_mut(usize::from(stack_pointer))? = Some(cfa);
        // A frame that is no deeper than its caller is not one: a damaged table, or the end.
        let sp = value(&before, stack_pointer)?;
        (to != 0 && cfa >= sp).then_some(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(saved: Vec<(u16, Saved)>) -> FrameRow {
        FrameRow {
            cfa_register: 7,
            cfa_offset: 24,
            saved,
            return_address: 16,
        }
    }

    fn registers(known: &[(usize, u64)]) -> [Option<u64>; 33] {
        let mut registers = [None; 33];
        for (number, value) in known {
            registers[*number] = Some(*value);
        }
        registers
    }

    #[test]
    fn a_step_restores_what_was_pushed_and_keeps_the_rest() {
        // push %rbx; sub $8,%rsp: the frame address is rsp + 24.
        let row = row(vec![(16, Saved::At(-8)), (3, Saved::At(-16))]);
        let mut stack = |at| match at {
            0x1010 => Some(0x40_1234),
            0x1008 => Some(77),
            _ => None,
        };
        let mut now = registers(&[(7, 0x1000), (6, 5), (3, 1)]);
        assert_eq!(row.step(&mut now, 7, &mut stack), Some(0x40_1234));
        assert_eq!((now[7], now[6], now[3]), (Some(0x1018), Some(5), Some(77)));
    }

    #[test]
    fn an_unknown_return_address_and_an_unknown_frame_end_the_stack() {
        let mut stack = |_| Some(1);
        let end = row(vec![(16, Saved::Gone)]);
        assert_eq!(
            end.step(&mut registers(&[(7, 0x1000)]), 7, &mut stack),
            None
        );
        let saved = row(vec![(16, Saved::At(-8))]);
        assert_eq!(saved.step(&mut registers(&[]), 7, &mut stack), None);
        let mut nothing = |_| None;
        assert_eq!(
            saved.step(&mut registers(&[(7, 0x1000)]), 7, &mut nothing),
            None
        );
    }

    #[test]
    fn a_frame_below_its_callee_is_not_believed() {
        let backwards = FrameRow {
            cfa_offset: -8,
            ..row(vec![(16, Saved::At(-8))])
        };
        let mut stack = |_| Some(0x40_1234);
        let mut now = registers(&[(7, 0x1000)]);
        assert_eq!(backwards.step(&mut now, 7, &mut stack), None);
    }
}
