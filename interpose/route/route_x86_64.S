// The entries of dlsym, dlopen and getenv. All end in a jump, not a call: what they look up depends on the return address, and a frame of ours
// between caller and loader would change it.

    .text

// void* dlsym(void* handle, const char* name)
    .globl dlsym
    .type dlsym, @function
    .p2align 4
dlsym:
    .cfi_startproc
    endbr64
    movq gputrace_real_dlsym(%rip), %rax
    testq %rax, %rax
    jz 1f
    // Names of CUDA begin with "cu", "__c" or (NCCL) "nc"; all others leave here. An empty one may end at the end of its page.
    testq %rsi, %rsi
    jz 3f
    cmpb $0, (%rsi)
    je 3f
    movzwl (%rsi), %edx
    cmpl $0x7563, %edx
    je 1f
    cmpl $0x636e, %edx
    je 1f
    cmpl $0x5f5f, %edx
    jne 3f
1:  leaq gputrace_relocated(%rip), %rax
    cmpq %rax, gputrace_relocated(%rip)
    jne 4f
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    cmpq $0, gputrace_real_dlsym(%rip)
    jne 2f
    call gputrace_find_dlsym
    movq 8(%rsp), %rsi
    movq 16(%rsp), %rdi
2:  movq 24(%rsp), %rdx
    call gputrace_dlsym
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    testq %rdx, %rdx
    jz 3f
    ret
3:  jmpq *gputrace_real_dlsym(%rip)
    // A resolver of an indirect function asks before this library can work: there is nothing to be had.
4:  xorl %eax, %eax
    ret
    .cfi_endproc
    .size dlsym, . - dlsym

// void* dlopen(const char* file, int flags)
    .globl dlopen
    .type dlopen, @function
    .p2align 4
dlopen:
    .cfi_startproc
    endbr64
    cmpq $0, gputrace_real_dlopen(%rip)
    je 1f
    testl $8, %esi          // RTLD_DEEPBIND
    jz 3f
1:  leaq gputrace_relocated(%rip), %rax
    cmpq %rax, gputrace_relocated(%rip)
    jne 4f
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    cmpq $0, gputrace_real_dlopen(%rip)
    jne 2f
    call gputrace_find_dlopen
2:  movl 8(%rsp), %edi
    movq 16(%rsp), %rsi
    call gputrace_dlopen_flags
    addq $16, %rsp
    .cfi_adjust_cfa_offset -16
    movl %eax, %esi
    popq %rdi
    .cfi_adjust_cfa_offset -8
3:  jmpq *gputrace_real_dlopen(%rip)
4:  xorl %eax, %eax
    ret
    .cfi_endproc
    .size dlopen, . - dlopen

// char* getenv(const char* name)
    .globl getenv
    .type getenv, @function
    .p2align 4
getenv:
    .cfi_startproc
    endbr64
    cmpq $0, gputrace_real_getenv(%rip)
    je 1f
    // Only NVTX_INJECTION64_PATH is ours to look at; all names that do not begin with "NV" leave here.
    cmpb $0x4e, (%rdi)
    jne 2f
    cmpb $0x56, 1(%rdi)
    jne 2f
1:  pushq %rdi
    .cfi_adjust_cfa_offset 8
    call gputrace_before_getenv
    popq %rdi
    .cfi_adjust_cfa_offset -8
    cmpq $0, gputrace_real_getenv(%rip)
    je 3f
2:  jmpq *gputrace_real_getenv(%rip)
    // Asked by a resolver of an indirect function while objects are still being relocated: libc has no variables yet either.
3:  xorl %eax, %eax
    ret
    .cfi_endproc
    .size getenv, . - getenv

    // Points at itself once this library is relocated, not before.
    .section .data.rel.ro.local, "aw"
    .globl gputrace_relocated
    .hidden gputrace_relocated
    .type gputrace_relocated, @object
    .size gputrace_relocated, 8
    .p2align 3
gputrace_relocated:
    .quad gputrace_relocated

    .section .note.GNU-stack, "", @progbits
