//! Which arithmetic an instruction does with floating-point numbers.

use iced_x86::{Decoder, DecoderOptions, Mnemonic};

/// An operation on floating-point numbers of single or double precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RealOperation {
    /// Addition or subtraction.
    Add,
    /// Multiplication.
    Multiply,
    /// Division.
    Divide,
    /// Square root.
    Root,
}

/// The operation of the instruction at the start of `bytes`, of one number or several at once. `None` of all else: moves,
/// comparisons, conversions, and what does two operations at once (fused multiplication and addition).
pub fn real_operation(bytes: &[u8]) -> Option<RealOperation> {
    let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    Some(match instruction.mnemonic() {
        Mnemonic::Addss
        | Mnemonic::Vaddss
        | Mnemonic::Addsd
        | Mnemonic::Vaddsd
        | Mnemonic::Addps
        | Mnemonic::Vaddps
        | Mnemonic::Addpd
        | Mnemonic::Vaddpd
        | Mnemonic::Subss
        | Mnemonic::Vsubss
        | Mnemonic::Subsd
        | Mnemonic::Vsubsd
        | Mnemonic::Subps
        | Mnemonic::Vsubps
        | Mnemonic::Subpd
        | Mnemonic::Vsubpd
        | Mnemonic::Fadd
        | Mnemonic::Faddp
        | Mnemonic::Fiadd
        | Mnemonic::Fsub
        | Mnemonic::Fsubp
        | Mnemonic::Fsubr
        | Mnemonic::Fsubrp
        | Mnemonic::Fisub
        | Mnemonic::Fisubr => RealOperation::Add,
        Mnemonic::Mulss
        | Mnemonic::Vmulss
        | Mnemonic::Mulsd
        | Mnemonic::Vmulsd
        | Mnemonic::Mulps
        | Mnemonic::Vmulps
        | Mnemonic::Mulpd
        | Mnemonic::Vmulpd
        | Mnemonic::Fmul
        | Mnemonic::Fmulp
        | Mnemonic::Fimul => RealOperation::Multiply,
        Mnemonic::Divss
        | Mnemonic::Vdivss
        | Mnemonic::Divsd
        | Mnemonic::Vdivsd
        | Mnemonic::Divps
        | Mnemonic::Vdivps
        | Mnemonic::Divpd
        | Mnemonic::Vdivpd
        | Mnemonic::Fdiv
        | Mnemonic::Fdivp
        | Mnemonic::Fdivr
        | Mnemonic::Fdivrp
        | Mnemonic::Fidiv
        | Mnemonic::Fidivr => RealOperation::Divide,
        Mnemonic::Sqrtss
        | Mnemonic::Vsqrtss
        | Mnemonic::Sqrtsd
        | Mnemonic::Vsqrtsd
        | Mnemonic::Sqrtps
        | Mnemonic::Vsqrtps
        | Mnemonic::Sqrtpd
        | Mnemonic::Vsqrtpd
        | Mnemonic::Fsqrt => RealOperation::Root,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_of_one_and_of_several_numbers_is_told_by_its_kind_and_nothing_else_is() {
        use RealOperation::{Add, Divide, Multiply, Root};
        let cases: [(&[u8], Option<RealOperation>); 12] = [
            // addsd, subps, vaddpd (ymm), faddp.
            (&[0xf2, 0x0f, 0x58, 0xc2], Some(Add)),
            (&[0x0f, 0x5c, 0xc1], Some(Add)),
            (&[0xc5, 0xfd, 0x58, 0xc1], Some(Add)),
            (&[0xde, 0xc1], Some(Add)),
            // mulss, divpd, sqrtsd, fsqrt.
            (&[0xf3, 0x0f, 0x59, 0xc1], Some(Multiply)),
            (&[0x66, 0x0f, 0x5e, 0xc1], Some(Divide)),
            (&[0xf2, 0x0f, 0x51, 0xc0], Some(Root)),
            (&[0xd9, 0xfa], Some(Root)),
            // movapd, add of integers, maxsd, nothing.
            (&[0x66, 0x0f, 0x28, 0xc1], None),
            (&[0x48, 0x01, 0xc8], None),
            (&[0xf2, 0x0f, 0x5f, 0xc1], None),
            (&[], None),
        ];
        for (bytes, expected) in cases {
            assert_eq!(real_operation(bytes), expected, "{bytes:x?}");
        }
    }
}
