//! Instructions as compilers write them for GNU as; pure, x86-64.

use iced_x86::{
    Decoder, DecoderOptions, Formatter as _, GasFormatter, Instruction, NumberBase, OpKind,
    Register,
};

/// Displacements below are numbers, whatever is linked there: no page is mapped.
const LOWEST_ADDRESS: u32 = 4096;

/// An address of the instruction's own file, as the operand has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// Relative to the instruction: it is in the file, or right beside it.
    Relative(u64),
    /// A displacement that may be an address, in a file that is linked to fixed ones, or just a number.
    Absolute(u64),
}

/// What is at an address of the instruction's own file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// `counter`, `table+8`.
    Named(String),
    /// Of the file, and has no name: a literal, say.
    Nameless,
    /// Not of the file, or the file has no fixed addresses: a number is a number.
    Number,
}

/// An instruction with a memory operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// `movq 8(%rdi), %rcx`: mnemonic with its suffix, one space, operands with ", " between.
    pub instruction: String,
    /// `8(%rdi)`, `counter(%rip)`. A displacement of 0 is left out, as clang does; gcc writes it where there is no base,
    /// and where the base is `%rbp` or `%r13`.
    pub operand: String,
}

/// The instruction at the start of `bytes`, which is at `ip` of its file, with its one explicit memory operand. `symbol`
/// says what is at an address of the file, by which rip-relative and absolute operands are written. `None` where there is
/// no such operand (string instructions, pushes), where it is relative to a segment, or where it has no name.
pub fn assembly(
    bytes: &[u8],
    ip: u64,
    symbol: &mut dyn FnMut(Reference) -> Symbol,
) -> Option<Assembly> {
    let instruction = Decoder::with_ip(64, bytes, ip, DecoderOptions::NONE).decode();
    let memory = (0..instruction.op_count())
        .find(|at| instruction.op_kind(*at) == OpKind::Memory)
        .filter(|_| !instruction.is_invalid())?;
    let operand = operand(&instruction, symbol)?;
    let mut formatter = GasFormatter::new();
    let options = formatter.options_mut();
    options.set_number_base(NumberBase::Decimal);
    options.set_signed_immediate_operands(true);
    options.set_gas_show_mnemonic_size_suffix(true);
    let transfers = instruction.is_jmp_near_indirect() || instruction.is_call_near_indirect();
    let mut text = String::new();
    if transfers {
        // `jmp *(%rbx)`: there is no other size, and compilers write none.
        text = format!("{:?}", instruction.mnemonic()).to_lowercase();
    } else {
        formatter.format_mnemonic(&instruction, &mut text);
    }
    for at in 0..formatter.operand_count(&instruction) {
        text.push_str(if at == 0 { " " } else { ", " });
        let of_instruction = formatter.get_instruction_operand(&instruction, at);
        if of_instruction.ok().flatten() == Some(memory) {
            if transfers {
                text.push('*');
            }
            text.push_str(&operand);
        } else {
            formatter.format_operand(&instruction, &mut text, at).ok()?;
        }
    }
    Some(Assembly {
        instruction: text,
        operand,
    })
}

/// The memory operand.
fn operand(
    instruction: &Instruction,
    symbol: &mut dyn FnMut(Reference) -> Symbol,
) -> Option<String> {
    let (base, index) = (instruction.memory_base(), instruction.memory_index());
    if matches!(instruction.segment_prefix(), Register::FS | Register::GS) {
        return None;
    }
    if instruction.is_ip_rel_memory_operand() {
        let Symbol::Named(name) = symbol(Reference::Relative(instruction.ip_rel_memory_address()))
        else {
            return None;
        };
        return Some(format!("{name}(%rip)"));
    }
    let displacement = instruction.memory_displacement64() as i64;
    let address = u32::try_from(displacement).ok();
    let address = address.filter(|address| *address >= LOWEST_ADDRESS);
    let number = match address.map(|address| symbol(Reference::Absolute(address.into()))) {
        Some(Symbol::Named(name)) => name,
        Some(Symbol::Nameless) => return None,
        Some(Symbol::Number) | None if displacement == 0 => String::new(),
        Some(Symbol::Number) | None => displacement.to_string(),
    };
    let name = |register: Register| format!("%{register:?}").to_lowercase();
    let registers = match (base, index) {
        (Register::None, Register::None) if number.is_empty() => "0".to_owned(),
        (Register::None, Register::None) => String::new(),
        (base, Register::None) => format!("({})", name(base)),
        (base, index) => {
            let base = if base == Register::None {
                String::new()
            } else {
                name(base)
            };
            match instruction.memory_index_scale() {
                1 => format!("({base},{})", name(index)),
                scale => format!("({base},{},{scale})", name(index)),
            }
        }
    };
    Some(number + &registers)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `counter` is at 0x404010, 8 bytes.
    fn of(bytes: &[u8]) -> Option<(String, String)> {
        let address = |reference| match reference {
            Reference::Relative(address) | Reference::Absolute(address) => address,
        };
        let mut symbol = |reference| match address(reference) {
            0x404010 => Symbol::Named("counter".to_owned()),
            0x404014 => Symbol::Named("counter+4".to_owned()),
            0x404000..0x405000 => Symbol::Nameless,
            _ => Symbol::Number,
        };
        let assembly = assembly(bytes, 0x401000, &mut symbol)?;
        Some((assembly.instruction, assembly.operand))
    }

    fn check(bytes: &[u8], instruction: &str, operand: &str) {
        assert_eq!(
            of(bytes),
            Some((instruction.to_owned(), operand.to_owned()))
        );
    }

    #[test]
    fn operands_are_written_as_compilers_do() {
        check(&[0x48, 0x8b, 0x4f, 0x08], "movq 8(%rdi), %rcx", "8(%rdi)");
        check(&[0x48, 0x8b, 0x07], "movq (%rdi), %rax", "(%rdi)");
        check(&[0x8b, 0x45, 0xe8], "movl -24(%rbp), %eax", "-24(%rbp)");
        check(
            &[0x8b, 0x34, 0xb9],
            "movl (%rcx,%rdi,4), %esi",
            "(%rcx,%rdi,4)",
        );
        check(&[0x8b, 0x04, 0x39], "movl (%rcx,%rdi), %eax", "(%rcx,%rdi)");
        check(&[0x0f, 0xb7, 0x02], "movzwl (%rdx), %eax", "(%rdx)");
        check(
            &[0xf2, 0x0f, 0x59, 0x47, 0x10],
            "mulsd 16(%rdi), %xmm0",
            "16(%rdi)",
        );
        check(&[0x41, 0x8b, 0x45, 0x00], "movl (%r13), %eax", "(%r13)");
        check(&[0x48, 0x83, 0x3b, 0xff], "cmpq $-1, (%rbx)", "(%rbx)");
        check(&[0xff, 0x23], "jmp *(%rbx)", "(%rbx)");
    }

    #[test]
    fn what_is_in_the_file_is_written_by_its_name_or_not_at_all() {
        // At 0x401000, 7 bytes long.
        let relative = |distance: u32| {
            let mut bytes = vec![0x48, 0x8b, 0x05];
            bytes.extend(distance.to_le_bytes());
            bytes
        };
        check(
            &relative(0x3009),
            "movq counter(%rip), %rax",
            "counter(%rip)",
        );
        check(
            &relative(0x300d),
            "movq counter+4(%rip), %rax",
            "counter+4(%rip)",
        );
        assert_eq!(of(&relative(0x3109)), None);
        // Without rip, in a program with fixed addresses.
        let indexed = |address: u32| {
            let mut bytes = vec![0x8b, 0x0c, 0xbd];
            bytes.extend(address.to_le_bytes());
            bytes
        };
        check(
            &indexed(0x404010),
            "movl counter(,%rdi,4), %ecx",
            "counter(,%rdi,4)",
        );
        check(&indexed(0x10), "movl 16(,%rdi,4), %ecx", "16(,%rdi,4)");
        check(
            &indexed(0x604010),
            "movl 6307856(,%rdi,4), %ecx",
            "6307856(,%rdi,4)",
        );
        check(&indexed(0), "movl (,%rdi,4), %ecx", "(,%rdi,4)");
        assert_eq!(of(&indexed(0x404100)), None);
    }

    #[test]
    fn what_has_no_operand_of_its_own_has_no_text() {
        assert_eq!(of(&[0x48, 0xa5]), None); // movsq
        assert_eq!(of(&[0x55]), None); // pushq %rbp
        assert_eq!(
            of(&[0x64, 0x48, 0x8b, 0x04, 0x25, 0xf8, 0xff, 0xff, 0xff]),
            None
        ); // movq %fs:-8, %rax
        assert_eq!(of(&[0x48, 0x89, 0xd0]), None); // movq %rdx, %rax
        assert_eq!(of(&[]), None);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_give_an_answer(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..16)) {
            if let Some((instruction, operand)) = of(&bytes) {
                proptest::prop_assert!(instruction.contains(&operand));
            }
        }
    }
}
