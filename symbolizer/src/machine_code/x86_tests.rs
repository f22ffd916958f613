//! The neutral form against the decoder's own account of what is read and written.

use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory, OpAccess};

use super::{Effect, Instruction, Memory, Next, REGISTERS, Register, Source, decode, x86};

fn one(bytes: &[u8]) -> Instruction {
    decode(bytes, 0x1000, 1).remove(0)
}

#[test]
fn every_register_and_memory_operand_that_is_written_is_accounted_for() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut factory = InstructionInfoFactory::new();
    let (mut checked, mut stores) = (0, 0);
    for round in 0..60_000u32 {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        bytes[8..].copy_from_slice(&seed.rotate_left(29).to_le_bytes());
        // Half of them with 64-bit operands, a quarter from the two-byte opcodes.
        if round % 2 == 0 {
            bytes[0] = 0x48 | bytes[0] & 7;
        }
        if round % 4 == 0 {
            bytes[1] = 0x0f;
        }
        let instruction = Decoder::with_ip(64, &bytes, 0x1000, DecoderOptions::NONE).decode();
        if instruction.is_invalid() {
            continue;
        }
        let lowered = x86::lower(&instruction, &mut factory);
        let info = factory.info(&instruction);
        for used in info.used_registers() {
            let written = matches!(
                used.access(),
                OpAccess::Write
                    | OpAccess::ReadWrite
                    | OpAccess::CondWrite
                    | OpAccess::ReadCondWrite
            );
            if let Some(register) = x86::of(used.register()).filter(|_| written) {
                assert!(
                    lowered.writes(register),
                    "{instruction:?} {register:?}: {lowered:?}"
                );
                checked += 1;
            }
        }
        for operand in lowered.operands.iter().filter(|operand| operand.write) {
            let told =
                |effect: &Effect| matches!(effect, Effect::Store { to, .. } if to == operand);
            assert!(
                lowered.effects.iter().any(told),
                "{instruction:?}: {lowered:?}"
            );
            stores += 1;
        }
        // A copy, a sum or a load in full width is never told of a register that is only partly written.
        for effect in &lowered.effects {
            if let Effect::Set {
                to,
                value: Source::Copy(_) | Source::Load(_) | Source::Add(..),
            } = effect
            {
                let whole = info.used_registers().iter().any(|used| {
                    x86::of(used.register()) == Some(*to) && used.register().size() == 8
                });
                assert!(whole, "{instruction:?}: {lowered:?}");
            }
        }
        assert!(lowered.effects.iter().all(|effect| match effect {
            Effect::Set { to, .. } => usize::from(to.0) < REGISTERS,
            _ => true,
        }));
    }
    assert!(checked > 20_000 && stores > 2_000, "{checked} {stores}");
}

#[test]
fn common_instructions_mean_what_the_manual_says() {
    let set = |to, value| {
        vec![Effect::Set {
            to: Register(to),
            value,
        }]
    };
    // mov %rdi,%rax
    assert_eq!(
        one(&[0x48, 0x89, 0xf8]).effects.to_vec(),
        set(0, Source::Copy(Register(5)))
    );
    // mov %edi,%eax
    assert_eq!(
        one(&[0x89, 0xf8]).effects.to_vec(),
        set(0, Source::Narrow(Register(5)))
    );
    // mov $-1,%eax
    assert_eq!(
        one(&[0xb8, 0xff, 0xff, 0xff, 0xff]).effects.to_vec(),
        set(0, Source::Constant(0xffff_ffff))
    );
    // sub $8,%rsp
    assert_eq!(
        one(&[0x48, 0x83, 0xec, 8]).effects.to_vec(),
        set(7, Source::Offset(Register(7), -8))
    );
    // mov 0x10(%rdi,%rsi,8),%rdx
    let load = one(&[0x48, 0x8b, 0x54, 0xf7, 0x10]);
    let Memory {
        base,
        scale,
        displacement,
        size,
        read,
        write,
        ..
    } = load.operands[0];
    assert_eq!((base, scale, displacement), (Some(Register(5)), 8, 0x10));
    assert_eq!((size, read, write), (8, true, false));
    // lea 0x20(%rip),%rax ends at 0x1007.
    let lea = one(&[0x48, 0x8d, 0x05, 0x20, 0, 0, 0]);
    let Effect::Set {
        value: Source::Address(memory),
        ..
    } = lea.effects[0]
    else {
        panic!("{lea:?}");
    };
    assert!(memory.absolute && memory.displacement == 0x1027 && lea.operands.is_empty());
    // push (%rax): the operand it names comes before the stack.
    let push = one(&[0xff, 0x30]);
    assert!(push.operands[0].read && push.operands[1].write);
    // call *(%rax); jmp *%rax; ret
    assert_eq!(one(&[0xff, 0x10]).next, Next::Call { target: None });
    assert_eq!(one(&[0xff, 0xe0]).next, Next::Indirect);
    assert_eq!(one(&[0xc3]).next, Next::Stop);
}
