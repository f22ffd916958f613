# A program asked to do n events: asked LETTER N [m [NUMBER [SIZE]]]
#
# Nothing but its loops runs in it: no C library, no start-up code. Each loop lies between the labels event_x and
# event_x_end, for the letter x, so that what runs there is known by its address. With a third argument the program says
# on standard output that it is ready and waits for a byte on standard input, before its loop and after it: a counter can
# be opened and read there. Of costs, the fourth argument says which one, and the fifth how much code.
#
# Loops of two threads are in threads.s, what only a PMU counts in hardware.s, and what is timed in costs.s: all are one text.
#
# Registers: r12 n, r13 whether it waits, r14 the other thread's part, r15 the loop.

.set LINE, 64
.set PAGE, 4096
.set PAGES, 1024
.set LOOPS, 26

.bss
.balign 4096
.globl word
word:       .skip 64                    # what loops on one word access
.globl real
real:       .skip 64                    # the same as a floating-point number
turn:       .skip 64                    # whose turn it is
.globl ping
ping:       .skip 64                    # written by the first thread, read by the other
pong:       .skip 64                    # how far the other thread is
byte:       .skip 64                    # read from standard input
times:      .skip 64                    # ticks of a loop, and of an empty one
number:     .skip 64                    # the fourth argument
size:       .skip 64                    # the fifth
            .skip 65536
stack:      .skip 64                    # end of the other thread's stack
.balign 4096
.globl lines
lines:      .skip 64 * 1000000
lines_end:

.section .rodata
.balign 8
loops:
    .quad event_a, event_b, event_c, event_d, event_e, event_f, event_g, event_h, event_i, event_j, event_k, event_l
    .quad event_m, event_n, event_o, event_p, event_q, event_r, event_s, event_t, event_u
    .quad event_v, wrong, wrong, wrong, event_z


.text
.globl _start
_start:
    mov rcx, [rsp]                      # argc
    cmp rcx, 3
    jb wrong
    xor r13d, r13d
    cmp rcx, 3
    setne r13b
    mov rax, [rsp + 16]
    movzx eax, byte ptr [rax]
    sub eax, 'a'
    cmp eax, LOOPS
    jae wrong
    mov r15, [loops + rax * 8]
    mov rsi, [rsp + 24]                 # n
    call decimal
    mov r12, rax
    cmp qword ptr [rsp], 5
    jb begin
    mov rsi, [rsp + 40]
    call decimal
    mov [number], rax
    cmp qword ptr [rsp], 6
    jb begin
    mov rsi, [rsp + 48]
    call decimal
    mov [size], rax
begin:
    jmp r15
# The number that is written in decimal at rsi.
decimal:
    xor eax, eax
1:  movzx ecx, byte ptr [rsi]
    test ecx, ecx
    jz 2f
    sub ecx, '0'
    imul rax, rax, 10
    add rax, rcx
    inc rsi
    jmp 1b
2:  ret
wrong:
    mov edi, 2
    jmp leave_with
leave:
    call mark
    xor edi, edi
leave_with:
    mov eax, 231                        # exit_group
    syscall

# Ready, and waits for a byte; of a closed input, not at all.
mark:
    test r13, r13
    jz marked
    # What the read would do to a page that was never written, a fault, is done here.
    mov byte ptr [byte], 1
    mov eax, 1                          # write
    mov edi, 1
    lea rsi, [byte]
    mov edx, 1
    syscall
    xor eax, eax                        # read
    xor edi, edi
    lea rsi, [byte]
    mov edx, 1
    syscall
marked:
    ret

# Loops over n lines, from the first one: rsi is the line, rcx how many are left.
.macro each_line
    lea rsi, [lines]
    mov rcx, r12
.endm
.macro next_line to
    add rsi, LINE
    dec rcx
    jnz \to
.endm

# a: loads of a word. Its turns have labels of their own, for who counts all their instructions.
.globl event_a, event_a_end, turns_a, turns_a_end
event_a:
    call mark
    mov rcx, r12
turns_a:
    mov rax, [word]
    dec rcx
    jnz turns_a
turns_a_end:
event_a_end:
    jmp leave

# b: stores to a word.
.globl event_b, event_b_end
event_b:
    call mark
    mov rcx, r12
1:  mov [word], rcx
    dec rcx
    jnz 1b
event_b_end:
    jmp leave

# c: locked additions to a word, among plain ones.
.globl event_c, event_c_end
event_c:
    call mark
    mov rcx, r12
1:  lock add qword ptr [word], 1
    add qword ptr [real], 1
    dec rcx
    jnz 1b
event_c_end:
    jmp leave

# d: loads of floating-point numbers, among others.
.globl event_d, event_d_end
event_d:
    call mark
    mov rcx, r12
1:  movsd xmm0, [real]
    mov rax, [word]
    dec rcx
    jnz 1b
event_d_end:
    jmp leave

# e: loads of lines, each once.
.globl event_e, event_e_end
event_e:
    call mark
    each_line
1:  mov rax, [rsi]
    next_line 1b
event_e_end:
    jmp leave

# i: stores to lines that only this thread has read.
.globl event_i, event_i_end
event_i:
    call mark
    each_line
1:  mov rax, [rsi]
    next_line 1b
    each_line
1:  mov [rsi], rcx
    next_line 1b
event_i_end:
    jmp leave

# j: stores to pages that are not there: some at a time, which are then given back. No huge pages.
.globl event_j, event_j_end
event_j:
    mov eax, 9                          # mmap
    xor edi, edi
    mov esi, PAGE * PAGES
    mov edx, 3                          # to read and write
    mov r10d, 0x22                      # private, anonymous
    mov r8, -1
    xor r9d, r9d
    syscall
    cmp rax, -4096
    ja wrong
    mov rbx, rax
    mov edx, 15                         # MADV_NOHUGEPAGE, which not every kernel knows
    call advise
    call mark
    mov rcx, r12
2:  mov rsi, rbx
    mov r8d, PAGES
3:  mov [rsi], rcx
    dec rcx
    jz event_j_end
    add rsi, PAGE
    dec r8d
    jnz 3b
    mov r14, rcx
    mov edx, 4                          # MADV_DONTNEED
    call advise
    mov rcx, r14
    jmp 2b
event_j_end:
    jmp leave
advise:
    mov eax, 28                         # madvise
    mov rdi, rbx
    mov esi, PAGE * PAGES
    syscall
    ret

# q: pages, each with a store and a load of another line.
.globl event_q, event_q_end
event_q:
    call mark
    lea rsi, [lines]
    mov rcx, r12
1:  mov [rsi], rcx
    mov rax, [rsi + 2048]
    add rsi, PAGE
    dec rcx
    jnz 1b
event_q_end:
    jmp leave

# v: operations on floating-point numbers, one of each kind, among moves of such numbers.
.globl event_v, event_v_end, turns_v, turns_v_end
event_v:
    call mark
    mov rcx, r12
    movsd xmm1, [start_real]
    movsd xmm2, [third_real]
turns_v:
    movapd xmm0, xmm1
    addsd xmm0, xmm2
    mulsd xmm0, xmm2
    movapd xmm3, xmm0
    divsd xmm0, xmm2
    sqrtsd xmm0, xmm0
    dec rcx
    jnz turns_v
turns_v_end:
event_v_end:
    jmp leave

# k: accesses of a word, each a load and a store in one instruction.
.globl event_k, event_k_end
event_k:
    call mark
    mov rcx, r12
1:  add qword ptr [word], 1
    dec rcx
    jnz 1b
event_k_end:
    jmp leave

# l: executions of an instruction, a no-op of five bytes.
.globl event_l, event_l_end, point
event_l:
    call mark
    mov rcx, r12
point:
    .byte 0x0f, 0x1f, 0x44, 0x00, 0x00
    dec rcx
    jnz point
event_l_end:
    jmp leave

# n: for n rounds, 3 parts of time in one function and 7 in another. Both do the same, in turns of a known length:
# multiplications that wait for each other, behind which a store hides. (Loads of what was just stored take more or less time
# by where the loop is, so that such loops share the time otherwise than their turns.) Rounds differ in length by a generator
# of Knuth's, so that no clock is in step with them.
.globl event_n, event_n_end, less, less_end, more, more_end
.macro multiply
1:  mov [word], rcx
.rept 8
    imul rax, rax
.endr
    dec ecx
    jnz 1b
    ret
.endm
event_n:
    call mark
    mov eax, 3
    mov r14, 6364136223846793005
    mov r15, 1442695040888963407
1:  imul rbx, r14
    add rbx, r15
    mov r8, rbx
    shr r8, 60
    inc r8                              # 1 to 16
    imul ecx, r8d, 48
    call less
    imul ecx, r8d, 112
    call more
    dec r12
    jnz 1b
event_n_end:
    jmp leave
.balign 64
less:
    multiply
less_end:
.balign 64
more:
    multiply
more_end:
