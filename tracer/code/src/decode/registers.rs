//! General registers: names, sets, and which values are known at one point of the code.

/// A general register by its encoding number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gpr(u8);

impl Gpr {
    pub(super) const RAX: Gpr = Gpr(0);
    pub(super) const RCX: Gpr = Gpr(1);
    pub(super) const RDX: Gpr = Gpr(2);
    pub(super) const RSP: Gpr = Gpr(4);
    pub(super) const RBP: Gpr = Gpr(5);
    pub(super) const RSI: Gpr = Gpr(6);
    pub(super) const RDI: Gpr = Gpr(7);
    pub(super) const R8: Gpr = Gpr(8);
    pub(super) const R9: Gpr = Gpr(9);

    /// The register any part of which `register` names; `None` for vectors, segments and the like.
    pub(super) fn of(register: iced_x86::Register) -> Option<Gpr> {
        let full = register.full_register();
        full.is_gpr64().then(|| Gpr((full.number() & 15) as u8))
    }

    pub(super) fn index(self) -> usize {
        usize::from(self.0 & 15)
    }
}

/// A set of general registers, bit n for encoding number n.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub(super) struct RegisterSet(u16);

impl RegisterSet {
    pub(super) const NONE: RegisterSet = RegisterSet(0);
    pub(super) const ALL: RegisterSet = RegisterSet(u16::MAX);
    /// What a call may change (System V psABI, figure 3.4): rax rcx rdx rsi rdi r8..r11.
    pub(super) const CALLER_SAVED: RegisterSet = RegisterSet(0b0000_1111_1100_0111);
    /// Everything but the stack and frame pointers.
    pub(super) const NO_POINTERS: RegisterSet = RegisterSet(!0b0011_0000);
    /// What the kernel does not give back from a `syscall`: rax, rcx (return ip), r11 (flags).
    pub(super) const SYSCALL: RegisterSet = RegisterSet(0b0000_1000_0000_0011);

    /// A bit each, by their numbers.
    pub(super) fn bits(self) -> u16 {
        self.0
    }

    pub(super) fn with(self, register: Gpr) -> RegisterSet {
        RegisterSet(self.0 | 1 << register.index())
    }

    pub(super) fn without(self, register: Gpr) -> RegisterSet {
        RegisterSet(self.0 & !(1 << register.index()))
    }

    pub(super) fn union(self, other: RegisterSet) -> RegisterSet {
        RegisterSet(self.0 | other.0)
    }

    pub(super) fn intersection(self, other: RegisterSet) -> RegisterSet {
        RegisterSet(self.0 & other.0)
    }

    pub(super) fn minus(self, other: RegisterSet) -> RegisterSet {
        RegisterSet(self.0 & !other.0)
    }

    pub(super) fn contains(self, register: Gpr) -> bool {
        self.0 >> register.index() & 1 != 0
    }

    pub(super) fn iter(self) -> impl Iterator<Item = Gpr> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let next = rest.trailing_zeros() as u8;
            (rest != 0).then(|| {
                rest &= rest - 1;
                Gpr(next)
            })
        })
    }
}

/// The register values known at one point of the code.
#[derive(Clone, Debug)]
pub(super) struct Known {
    values: [u64; 16],
    set: RegisterSet,
}

impl Known {
    /// All of them, as at the sampled ip.
    pub(super) fn all(values: [u64; 16]) -> Known {
        Known {
            values,
            set: RegisterSet::ALL,
        }
    }

    pub(super) fn get(&self, register: Gpr) -> Option<u64> {
        self.set
            .contains(register)
            .then(|| self.values[register.index()])
    }

    pub(super) fn set(&mut self, register: Gpr, value: u64) {
        self.values[register.index()] = value;
        self.set = self.set.with(register);
    }

    /// Sets or forgets.
    pub(super) fn put(&mut self, register: Gpr, value: Option<u64>) {
        match value {
            Some(value) => self.set(register, value),
            None => self.set = self.set.without(register),
        }
    }

    pub(super) fn forget(&mut self, registers: RegisterSet) {
        self.set = self.set.minus(registers);
    }

    /// Which are known.
    pub(super) fn known(&self) -> RegisterSet {
        self.set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_saved_set_is_the_one_of_the_abi() {
        use iced_x86::Register;
        let saved = [
            Register::RBX,
            Register::RSP,
            Register::RBP,
            Register::R12,
            Register::R13,
            Register::R14,
            Register::R15,
        ];
        for number in 0..16u32 {
            let register = Register::RAX + number;
            let gpr = Gpr::of(register).unwrap();
            assert_eq!(gpr.index(), number as usize);
            assert_eq!(
                RegisterSet::CALLER_SAVED.contains(gpr),
                !saved.contains(&register),
                "{register:?}"
            );
        }
        assert_eq!(Gpr::of(Register::AH), Some(Gpr::RAX));
        assert_eq!(Gpr::of(Register::XMM3), None);
    }
}
