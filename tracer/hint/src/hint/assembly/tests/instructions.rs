//! Which instructions are loads.

use crate::hint::assembly::{
    Kept,
    instruction::{Does, Processor},
};

fn loads(statement: &str) -> Option<(&str, Option<u8>)> {
    match Processor::X86.does(statement) {
        Does::Loads { text, width, .. } => Some((text, width)),
        _ => None,
    }
}

fn kept(statement: &str) -> Option<Kept> {
    match Processor::X86.does(statement) {
        Does::Keeps(kept) => Some(kept),
        _ => None,
    }
}

#[test]
fn what_only_reads_is_a_load_of_so_many_bytes() {
    for (statement, operand, width) in [
        ("movq\t8(%rdi), %rax", "8(%rdi)", Some(8)),
        ("movl (%rdi), %eax", "(%rdi)", Some(4)),
        ("mov (%rdi), %r8w", "(%rdi)", Some(2)),
        ("movzbl table(%rip), %eax", "table(%rip)", Some(1)),
        ("movslq (%rdx,%rax,4), %rcx", "(%rdx,%rax,4)", Some(4)),
        ("cmpq $3, 8(%rdi)", "8(%rdi)", Some(8)),
        ("cmpl 8(%rdi), %eax", "8(%rdi)", Some(4)),
        ("cmpl %eax, 8(%rdi)", "8(%rdi)", Some(4)),
        ("testb $1, (%rax)", "(%rax)", Some(1)),
        ("addq 16+table(%rip), %rax", "16+table(%rip)", Some(8)),
        ("imulq $5, (%rax), %rdx", "(%rax)", Some(8)),
        ("imull (%rax), %edx", "(%rax)", Some(4)),
        ("divq 8(%rsi)", "8(%rsi)", Some(8)),
        ("cmovneq (%rax), %rdx", "(%rax)", Some(8)),
        ("popcntq (%rax), %rdx", "(%rax)", Some(8)),
        ("andn (%rax), %rbx, %rcx", "(%rax)", Some(8)),
        ("btl $3, (%rax)", "(%rax)", Some(4)),
        ("movsd 16(%rdi), %xmm0", "16(%rdi)", Some(8)),
        ("addss (%rdi), %xmm0", "(%rdi)", Some(4)),
        (
            "vmulsd (%rdi,%rax,2), %xmm0, %xmm0",
            "(%rdi,%rax,2)",
            Some(8),
        ),
        ("vcvtsi2sdl (%rdx,%rax), %xmm3, %xmm1", "(%rdx,%rax)", None),
        ("cvttsd2siq (%rdi), %rax", "(%rdi)", None),
        ("vmovdqu (%rdi), %ymm1", "(%rdi)", None),
        ("comisd (%rdi), %xmm1", "(%rdi)", None),
        ("pinsrq $1, (%rdi), %xmm1", "(%rdi)", None),
        ("fldt (%rdi)", "(%rdi)", None),
        ("fildll (%rdi)", "(%rdi)", None),
        ("faddl (%rdi)", "(%rdi)", None),
        ("fimuls (%rdi)", "(%rdi)", None),
        ("movl table, %eax", "table", Some(4)),
        ("movl 8(%edi), %eax", "8(%edi)", Some(4)),
    ] {
        let width_or_any = loads(statement).map(|(text, found)| (text, width.and(found)));
        assert_eq!(width_or_any, Some((operand, width)), "{statement}");
    }
}

#[test]
fn stores_hints_addresses_and_registers_are_nothing() {
    for statement in [
        "movq %rax, 8(%rdi)",
        "movl $0, table(%rip)",
        "movsd %xmm0, (%rdi)",
        "vmovups %ymm0, (%rdi)",
        "vextracti128 $1, %ymm0, (%rdi)",
        "pextrq $1, %xmm0, (%rdi)",
        "movntq %mm0, (%rdi)",
        "sete (%rdi)",
        "fstpl (%rdi)",
        "leaq 8(%rdi), %rax",
        "nopw 0(%rax,%rax,1)",
        "prefetcht0 (%rdi)",
        "addq %rax, %rdx",
        "movabsq $4294967296, %rax",
        "call foo",
        "callq foo@PLT",
        "jmp *%rax",
        "rep ret",
        "ret",
        "",
    ] {
        assert_eq!(
            Processor::X86.does(statement),
            Does::Nothing,
            "{statement:?}"
        );
    }
    assert_eq!(
        Processor::X86.does("prefetchw 8(%rdi)"),
        Does::PrefetchesOwn("8(%rdi)")
    );
}

#[test]
fn what_reads_and_is_not_to_be_touched_says_why() {
    for (statement, why) in [
        ("addq $1, (%rdi)", Kept::ReadModifyWrite),
        ("incl 8(%rdi)", Kept::ReadModifyWrite),
        ("sarq (%rdi)", Kept::ReadModifyWrite),
        ("xorb %al, (%rdi)", Kept::ReadModifyWrite),
        ("lock addq $1, (%rdi)", Kept::ReadModifyWrite),
        ("lock cmpxchgq %rdx, (%rdi)", Kept::ReadModifyWrite),
        ("cmpxchg16b (%rdi)", Kept::ReadModifyWrite),
        ("xchgq %rax, (%rdi)", Kept::ReadModifyWrite),
        ("xchgq (%rdi), %rax", Kept::ReadModifyWrite),
        ("xaddl %eax, (%rdi)", Kept::ReadModifyWrite),
        ("btsq $3, (%rdi)", Kept::ReadModifyWrite),
        ("movq %fs:40, %rax", Kept::Segment),
        ("movq %gs:(%rdi), %rax", Kept::Segment),
        ("movq %fs:-8(%rax,%rdx), %rax", Kept::Segment),
        ("rep movsq", Kept::String),
        ("movsl (%rsi), %es:(%rdi)", Kept::String),
        ("lodsb (%rsi), %al", Kept::String),
        ("vpgatherdd %ymm2, (%rbx,%ymm0,4), %ymm0", Kept::Masked),
        ("vmaskmovps (%rdi), %ymm0, %ymm1", Kept::Masked),
        ("vmovdqu32 (%rdi), %zmm0{%k1}{z}", Kept::Masked),
        ("vaddps (%rdi){1to16}, %zmm0, %zmm1", Kept::Masked),
        ("pushq 8(%rdi)", Kept::Control),
        ("call *16(%rax)", Kept::Control),
        ("jmp *table(,%rax,8)", Kept::Control),
        ("movq counter@GOTPCREL(%rip), %rax", Kept::LinkerSlot),
        ("movq x@gottpoff(%rip), %rax", Kept::LinkerSlot),
        ("btq %rax, (%rdi)", Kept::Unknown),
        ("movabsq 81985529216486895, %rax", Kept::Unknown),
        ("xsave (%rdi)", Kept::Unknown),
        ("tileloadd (%rax,%rbx), %tmm0", Kept::Unknown),
        ("frobnicate (%rdi), %rax", Kept::Unknown),
    ] {
        assert_eq!(kept(statement), Some(why), "{statement}");
    }
}
