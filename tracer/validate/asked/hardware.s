# Loops whose events only a PMU counts.

# r: additions that wait for each other, a cycle each.
.globl event_r, event_r_end
event_r:
    call mark
    mov rbx, r12
    call additions
event_r_end:
    jmp leave

# Every page is written first: those that were only read would all be one page of zeros. The line that is written is the last
# one of its page.
.macro write_pages
    lea rsi, [lines]
    mov ecx, 64 * 1000000 / PAGE
80: mov [rsi + PAGE - LINE], rcx
    add rsi, PAGE
    dec ecx
    jnz 80b
.endm

# s: loads of lines, each once, in an order that no prefetcher follows. An odd number of lines from one to the next, of 2^19:
# none comes twice.
.globl event_s, event_s_end
event_s:
    write_pages
    call mark
    xor eax, eax
    mov rcx, r12
1:  add eax, 40503
    and eax, 0x7ffff
    mov edx, eax
    shl edx, 6
    mov rsi, [lines + rdx]
    dec rcx
    jnz 1b
event_s_end:
    jmp leave

# t: loads of pages, each once, of the 8,192 that were written longest ago; the same way.
.globl event_t, event_t_end
event_t:
    write_pages
    call mark
    xor eax, eax
    mov rcx, r12
1:  add eax, 4093
    and eax, 0x1fff
    mov edx, eax
    shl edx, 12
    mov rsi, [lines + rdx]
    dec rcx
    jnz 1b
event_t_end:
    jmp leave

# u: branches by the highest bit of a random number.
.globl event_u, event_u_end
event_u:
    call mark
    mov rbx, r12
    call random_branches
event_u_end:
    jmp leave
