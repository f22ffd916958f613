//! Which general registers an x86 instruction in AT&T syntax may change. What is not known changes all.

use super::x86::split;
use crate::decode::RegisterBits;

/// Every register.
pub(super) const ALL: RegisterBits = RegisterBits::MAX;

/// What functions may change (System V ABI for AMD64, figure 3.4).
const CALL: RegisterBits = 1 | 1 << 1 | 1 << 2 | 1 << 6 | 1 << 7 | 0b1111 << 8;
const AX: RegisterBits = 1;
const CX: RegisterBits = 1 << 1;
const DX: RegisterBits = 1 << 2;
const SP: RegisterBits = 1 << 4;
const BP: RegisterBits = 1 << 5;
const SI: RegisterBits = 1 << 6;
const DI: RegisterBits = 1 << 7;

/// The registers of an operand, by their names.
pub(super) fn registers<'n>(names: impl IntoIterator<Item = &'n String>) -> RegisterBits {
    names.into_iter().fold(0, |all, name| all | register(name))
}

/// The bit of a general register, by any of its names without the sigil; 0 of another register.
fn register(name: &str) -> RegisterBits {
    const NAMES: [&str; 8] = ["ax", "cx", "dx", "bx", "sp", "bp", "si", "di"];
    if let Some(digits) = name.strip_prefix('r')
        && let Ok(number @ 8..=15) = digits.trim_end_matches(['d', 'w', 'b']).parse::<u32>()
    {
        return 1 << number;
    }
    let whole = name
        .strip_prefix(['r', 'e'])
        .filter(|rest| rest.len() == 2)
        .unwrap_or(name);
    let of_low = |(name, low): (&&str, &str)| *name == whole || low == whole;
    let lows = ["al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil"];
    let highs = ["ah", "ch", "dh", "bh"];
    let number = NAMES.iter().zip(lows).position(of_low);
    let number = number.or_else(|| highs.iter().position(|high| *high == whole));
    number.map_or(0, |number| 1 << number)
}

/// Registers that one instruction without its comment may change.
pub(super) fn writes(statement: &str) -> RegisterBits {
    let mut statement = statement.trim();
    let (mnemonic, operands) = loop {
        let end = statement.find(|c: char| c.is_ascii_whitespace());
        let (mnemonic, rest) = statement.split_at(end.unwrap_or(statement.len()));
        match mnemonic {
            "lock" | "notrack" | "bnd" | "data16" | "xacquire" | "xrelease" => {
                statement = rest.trim();
            }
            _ => break (mnemonic, split(rest.trim())),
        }
    };
    let starts = |names: &[&str]| names.iter().any(|name| mnemonic.starts_with(name));
    let named = |text: &&str| text.strip_prefix('%').map_or(0, register);
    let last = operands.last().map_or(0, named);
    let count = operands.iter().filter(|text| !text.is_empty()).count();
    if mnemonic.starts_with("rep") {
        let spins = operands[0].is_empty()
            || operands[0].starts_with("nop")
            || operands[0].starts_with("ret");
        return if spins { 0 } else { AX | CX | SI | DI };
    }
    if starts(&["call"]) {
        return CALL;
    }
    if mnemonic.starts_with('j')
        || starts(&[
            "ret", "ud2", "nop", "prefetch", "endbr", "pause", "mfence", "lfence", "sfence", "hlt",
        ])
    {
        return 0;
    }
    if starts(&["push"]) {
        return SP;
    }
    if starts(&["pop"]) && !starts(&["popcnt"]) {
        return SP | last;
    }
    if starts(&["leave", "enter"]) {
        return SP | BP;
    }
    if starts(&["cmpxchg"]) {
        return AX | DX | last;
    }
    if starts(&["cmps", "movs", "stos", "lods", "scas"])
        && !operands.iter().any(|text| text.starts_with('%'))
        && count != 2
    {
        return AX | SI | DI;
    }
    if starts(&[
        "cmp", "test", "ucomis", "comis", "vucomis", "vcomis", "ptest", "vptest", "vtest",
    ]) || matches!(mnemonic, "bt" | "btw" | "btl" | "btq")
    {
        return 0;
    }
    if matches!(
        mnemonic,
        "cltq" | "cwtl" | "cbtw" | "cqto" | "cltd" | "cwtd" | "cqo" | "cdq" | "cdqe"
    ) {
        return AX | DX;
    }
    if starts(&["xchg", "xadd", "mulx"]) {
        return operands.iter().map(named).fold(0, |all, one| all | one);
    }
    if count == 1 && starts(&["mul", "imul", "div", "idiv"]) {
        return AX | DX;
    }
    // What has no operands and is not known, such as cpuid; and loops of the processor.
    if count == 0
        || starts(&["loop", "sys", "int", "x", "rd", "wr", "v4", "vzero"])
            && !starts(&["xor", "xorps", "rdrand", "rdseed"])
    {
        return if starts(&["vzero"]) { 0 } else { ALL };
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_register_is_that_register() {
        for (number, names) in [
            (0, "rax eax ax al ah"),
            (1, "rcx ecx cx cl ch"),
            (2, "rdx edx dx dl dh"),
            (3, "rbx ebx bx bl bh"),
            (4, "rsp esp sp spl"),
            (5, "rbp ebp bp bpl"),
            (6, "rsi esi si sil"),
            (7, "rdi edi di dil"),
            (8, "r8 r8d r8w r8b"),
            (15, "r15 r15d r15w r15b"),
        ] {
            for name in names.split(' ') {
                assert_eq!(register(name), 1 << number, "{name}");
            }
        }
        for other in ["xmm0", "rip", "k1", "st", "cs", "r16", ""] {
            assert_eq!(register(other), 0, "{other}");
        }
    }

    #[test]
    fn what_an_instruction_may_change_is_known_or_everything() {
        for (statement, changed) in [
            ("movq 8(%rdi), %rax", AX),
            ("movq %rax, 8(%rdi)", 0),
            ("addq $8, %rdi", DI),
            ("incl %ecx", CX),
            ("cmpq %rax, %rdi", 0),
            ("testb %al, %al", 0),
            ("leaq 8(%rdi), %rsi", SI),
            ("addsd (%rdx,%rdi), %xmm0", 0),
            ("vmovd %xmm0, %eax", AX),
            ("movsbl (%rdi), %ecx", CX),
            ("lock xaddq %rax, (%rdi)", AX),
            ("xchgl %eax, (%rdi)", AX),
            ("lock cmpxchgq %rcx, (%rdi)", AX | DX),
            ("mulq %rcx", AX | DX),
            ("imulq %rcx, %rdi", DI),
            ("cqto", AX | DX),
            ("call f", CALL),
            ("pushq %rbx", SP),
            ("popq %rbx", SP | 1 << 3),
            ("popcntq %rbx, %rcx", CX),
            ("jne .L3", 0),
            ("rep stosq", AX | CX | SI | DI),
            ("rep nop", 0),
            ("cpuid", ALL),
            ("rdtsc", ALL),
            ("syscall", ALL),
            ("xorl %eax, %eax", AX),
            ("sete %al", AX),
        ] {
            assert_eq!(writes(statement), changed, "{statement}");
        }
    }
}
