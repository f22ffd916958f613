# Loops that two threads have part in.

# Starts the other thread at r14, with its own stack and all else shared.
start_other:
    mov eax, 56                         # clone
    mov edi, 0x50f00                    # VM, FS, FILES, SIGHAND, THREAD, SYSVSEM
    lea rsi, [stack]
    xor edx, edx
    xor r10d, r10d
    xor r8d, r8d
    syscall
    test rax, rax
    jz other
    js wrong
    ret
other:
    call r14
    mov eax, 60                         # exit
    xor edi, edi
    syscall

# Waits until it is turn eax; lets others run now and then, since there may be one CPU.
wait_turn:
    mov r8d, eax
wait_some:
    mov r9d, 200
wait_once:
    cmp dword ptr [turn], r8d
    je waited
    pause
    dec r9d
    jnz wait_once
    mov eax, 24                         # sched_yield
    syscall
    jmp wait_some
waited:
    ret

# f: loads of lines that the other thread has written.
.globl event_f, event_f_end
event_f:
    call mark
    lea r14, [other_f]
    call start_other
    mov eax, 1
    call wait_turn
    each_line
1:  mov rax, [rsi]
    next_line 1b
event_f_end:
    jmp leave
other_f:
    each_line
1:  mov [rsi], rcx
    next_line 1b
    mov dword ptr [turn], 1
    ret

# g: stores to a line that the other thread has read since the last one. Both take turns by words on other lines, so that
# each has made its access, and a tool has seen it, before the other makes the next one.
.macro await place
90: mov r9d, 200
91: cmp [\place], rbx
    je 92f
    pause
    dec r9d
    jnz 91b
    mov eax, 24                         # sched_yield
    syscall
    jmp 90b
92:
.endm
.globl event_g, event_g_end
event_g:
    call mark
    lea r14, [other_g]
    call start_other
    xor ebx, ebx
1:  inc rbx
    await pong
    mov [ping], rbx
    mov [turn], rbx
    cmp rbx, r12
    jb 1b
    inc rbx
    await pong
event_g_end:
    jmp leave
other_g:
    mov rax, [ping]
    mov ebx, 1
    mov [pong], rbx
1:  await turn
    mov rax, [ping]
    inc rbx
    mov [pong], rbx
    cmp rbx, r12
    jbe 1b
    ret

# o: the same with each thread on a CPU of its own, the first two that it may use.
.globl event_o, event_o_end
event_o:
    call two_cpus
    call mark
    lea r14, [other_o]
    call start_other
    xor ebx, ebx
1:  inc rbx
    await pong
    mov [ping], rbx
    mov [turn], rbx
    cmp rbx, r12
    jb 1b
    inc rbx
    await pong
event_o_end:
    jmp leave
other_o:
    mov rbx, r15
    call stay
    jmp other_g
# The first thread stays on the first CPU that it may use; r15 is the next one, for the other thread.
two_cpus:
    mov eax, 204                        # sched_getaffinity
    xor edi, edi
    mov esi, 64
    lea rdx, [times]
    syscall
    test rax, rax
    js wrong
    mov rax, [times]                    # of the first 64 CPUs
    mov rbx, rax
    neg rbx
    and rbx, rax                        # its lowest bit
    xor rax, rbx
    mov r15, rax
    neg r15
    and r15, rax                        # the next one
    jz wrong
# The thread stays on the CPUs of rbx.
stay:
    mov [times], rbx
    mov eax, 203                        # sched_setaffinity
    xor edi, edi
    mov esi, 8
    lea rdx, [times]
    syscall
    test rax, rax
    jnz wrong
    ret

# p: stores to a line that this thread has read, and the other one after it, each on a CPU of its own. The store before the
# first round tells a window where the line is.
.globl event_p, event_p_end
event_p:
    call two_cpus
    call mark
    lea r14, [other_p]
    call start_other
    xor ebx, ebx
    mov [ping], rbx
1:  inc rbx
    mov rax, [ping]
    mov [turn], rbx
    await pong
    mov [ping], rbx
    cmp rbx, r12
    jb 1b
event_p_end:
    jmp leave
other_p:
    mov rbx, r15
    call stay
    mov ebx, 1
1:  await turn
    mov rax, [ping]
    mov [pong], rbx
    inc rbx
    cmp rbx, r12
    jbe 1b
    ret

# h: stores to lines of which this thread and the other have a copy.
.globl event_h, event_h_end
event_h:
    call mark
    each_line
1:  mov rax, [rsi]
    next_line 1b
    lea r14, [other_h]
    call start_other
    mov eax, 1
    call wait_turn
    each_line
1:  mov [rsi], rcx
    next_line 1b
event_h_end:
    jmp leave
other_h:
    each_line
1:  mov rax, [rsi]
    next_line 1b
    mov dword ptr [turn], 1
    ret
