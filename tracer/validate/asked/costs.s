# Loops that are timed.
#
# A body does rbx turns, maybe none, and leaves rbp, r12, r13 and r14 as they are. Its ticks, and those of what it does beside
# that which is measured, go to standard output: the fewest of some times. What is beside is another body in the table, or
# else the same body without a turn. The time before makes the core as fast as it gets.

.bss
.balign 64
seed:       .skip 64                    # of random numbers, which go on from one time to the next
code:       .skip 64                    # address of straight code

.set BODIES, 15

.section .rodata
.balign 8
bodies:
    .quad predicted_branches, 0
    .quad random_branches, 0
    .quad straight_code, 0
    .quad adds_1, 0, adds_2, 0, adds_3, 0, adds_4, 0, adds_5, 0, adds_6, 0, adds_7, 0, adds_8, 0
    .quad real_additions, 0
    .quad real_multiplications, 0
    .quad real_divisions, 0
    .quad real_roots, real_multiplications
start_real: .double 1.7
add_real:   .double 0.001
times_real: .double 1.0000001
third_real: .double 3.1

.text
# m: additions, each of which waits for the one before it.
.globl event_m, event_m_end
event_m:
    lea rbp, [additions]
    xor r15d, r15d
    jmp time_both
event_m_end:

# z: the cost of a number.
.globl event_z
event_z:
    mov rax, [number]
    cmp rax, BODIES
    jae wrong
    shl eax, 4
    mov rbp, [bodies + rax]
    mov r15, [bodies + rax + 8]
    lea rcx, [straight_code]
    cmp rbp, rcx
    jne time_both
    call write_code

# Times rbp, and beside it r15.
time_both:
    call mark
    mov qword ptr [times], -1
    mov qword ptr [times + 8], -1
    mov edi, 1
    mov r14d, 2000                      # some milliseconds of warming
1:  mov rcx, 10000
2:  add rax, rdi
    dec rcx
    jnz 2b
    dec r14d
    jnz 1b
    mov r14d, 15
3:  push rbp
    push r15
    xor ebx, ebx
    test r15, r15
    jz 4f
    mov rbx, r12
    mov rbp, r15
4:  call time_body
    pop r15
    pop rbp
    cmp rax, [times + 8]
    cmova rax, [times + 8]
    mov [times + 8], rax
    mov rbx, r12
    push r15
    call time_body
    pop r15
    cmp rax, [times]
    cmova rax, [times]
    mov [times], rax
    dec r14d
    jnz 3b
    mov eax, 1                          # write
    mov edi, 1
    lea rsi, [times]
    mov edx, 16
    syscall
    jmp leave
# Ticks of rbx turns of rbp.
time_body:
    lfence
    rdtsc
    lfence
    shl rdx, 32
    or rax, rdx
    push rax
    call rbp
    lfence
    rdtsc
    lfence
    shl rdx, 32
    or rax, rdx
    pop rdx
    sub rax, rdx
    ret

# rbx additions that wait for each other: hundreds without a branch, then the rest.
additions:
    mov edi, 1
    mov r9d, 100
    mov rax, rbx
    xor edx, edx
    div r9
    mov r8, rax
    mov rcx, rdx
    xor eax, eax
    test r8, r8
    jz 2f
1:
.rept 100
    add rax, rdi
.endr
    dec r8
    jnz 1b
2:  test rcx, rcx
    jz 4f
3:  add rax, rdi
    dec rcx
    jnz 3b
4:  ret

# A branch by the highest bit of random numbers (a generator of Knuth's), and the same code with a bit that is never there.
predicted_branches:
    xor r10d, r10d
    jmp branches
random_branches:
    mov r10d, 1
    shl r10, 63
branches:
    test rbx, rbx
    jz 3f
    mov r8, [seed]
    mov r9, 6364136223846793005
    mov r11, 1442695040888963407
1:  imul r8, r9
    add r8, r11
    test r8, r10
    jz 2f
    inc eax
2:  dec rbx
    jnz 1b
    mov [seed], r8
3:  ret

# Straight code of a size in bytes: no-ops of eight bytes, as decoders take them fastest of all that long, and a return.
write_code:
    mov eax, 9                          # mmap
    xor edi, edi
    mov rsi, [size]
    add rsi, PAGE
    mov edx, 3                          # to read and write
    mov r10d, 0x22                      # private, anonymous
    mov r8, -1
    xor r9d, r9d
    syscall
    cmp rax, -4096
    ja wrong
    mov [code], rax
    mov rdi, rax
    mov rcx, [size]
    shr rcx, 3
    jz 2f
    mov rax, 0x841f0f
1:  mov [rdi], rax
    add rdi, 8
    dec rcx
    jnz 1b
2:  mov byte ptr [rdi], 0xc3
    mov eax, 10                         # mprotect
    mov rdi, [code]
    mov rsi, [size]
    add rsi, PAGE
    mov edx, 5                          # to read and execute
    syscall
    test rax, rax
    jnz wrong
    ret
straight_code:
    test rbx, rbx
    jz 2f
1:  call [code]
    dec rbx
    jnz 1b
2:  ret

# Groups of so many additions, of which the first waits for the first of the group before, and the others for that one: 25
# groups a turn. (Of as many sums that each wait for themselves four take 1.6 to 1.9 cycles, presumably by which unit gets which.)
.macro with_adds name, registers:vararg
\name:
    mov r11d, 1
    test rbx, rbx
    jz 82f
.balign 64
81:
.rept 25
    add rax, r11
.irp register, \registers
    lea \register, [rax + r11]
.endr
.endr
    dec rbx
    jnz 81b
82: ret
.endm
    with_adds adds_1
    with_adds adds_2, rcx
    with_adds adds_3, rcx, rdx
    with_adds adds_4, rcx, rdx, rsi
    with_adds adds_5, rcx, rdx, rsi, rdi
    with_adds adds_6, rcx, rdx, rsi, rdi, r8
    with_adds adds_7, rcx, rdx, rsi, rdi, r8, r9
    with_adds adds_8, rcx, rdx, rsi, rdi, r8, r9, r10

# Operations on floating-point numbers of double precision that wait for each other: eight a turn. No operand is one that a
# unit may have a shorter way for.
.macro with_reals name, second, body:vararg
\name:
    movsd xmm0, [start_real]
    movsd xmm1, [\second]
    test rbx, rbx
    jz 82f
81:
    \body
    dec rbx
    jnz 81b
82: ret
.endm
.macro eight_additions
.rept 8
    addsd xmm0, xmm1
.endr
.endm
.macro eight_multiplications
.rept 8
    mulsd xmm0, xmm1
.endr
.endm
# A number, and what a constant divided by it is, by turns.
.macro eight_divisions
.rept 4
    movapd xmm2, xmm1
    divsd xmm2, xmm0
    movapd xmm0, xmm1
    divsd xmm0, xmm2
.endr
.endm
# Times a constant, or all would soon be 1.
.macro eight_roots
.rept 8
    sqrtsd xmm0, xmm0
    mulsd xmm0, xmm1
.endr
.endm
    with_reals real_additions, add_real, eight_additions
    with_reals real_multiplications, times_real, eight_multiplications
    with_reals real_divisions, third_real, eight_divisions
    with_reals real_roots, start_real, eight_roots
