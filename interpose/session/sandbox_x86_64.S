// The entries of prctl and syscall. Both end in a jump: they are variadic, and a frame of ours would be in the way.

    .text

    .macro gt_filter_entry name
    .globl \name
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    endbr64
    xorl %eax, %eax                          // 1: it adds a filter
    .ifc \name, prctl
    cmpl $22, %edi                           // PR_SET_SECCOMP
    je 1f
    .else
    cmpl $317, %edi                          // SYS_seccomp: SECCOMP_SET_MODE_STRICT, SECCOMP_SET_MODE_FILTER
    jne 3f
    cmpl $1, %esi
    jbe 1f
3:  cmpl $157, %edi                          // SYS_prctl
    jne 4f
    cmpl $22, %esi
    je 1f
4:
    .endif
    cmpq $0, gputrace_real_prctl(%rip)
    jne 2f
    jmp 5f
1:  movl $1, %eax
5:  pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    pushq %rdx
    .cfi_adjust_cfa_offset 8
    pushq %rcx
    .cfi_adjust_cfa_offset 8
    pushq %r8
    .cfi_adjust_cfa_offset 8
    pushq %r9
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    movl %eax, %edi
    call gputrace_before_prctl
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %r9
    .cfi_adjust_cfa_offset -8
    popq %r8
    .cfi_adjust_cfa_offset -8
    popq %rcx
    .cfi_adjust_cfa_offset -8
    popq %rdx
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
2:  xorl %eax, %eax
    jmpq *gputrace_real_\name(%rip)
    .cfi_endproc
    .size \name, . - \name
    .endm

    gt_filter_entry prctl
    gt_filter_entry syscall

    .section .note.GNU-stack, "", @progbits
