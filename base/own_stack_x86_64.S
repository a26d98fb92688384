// void gputrace_call_on_stack(void (*function)(void*), void* data, void* top)
    .text
    .globl gputrace_call_on_stack
    .hidden gputrace_call_on_stack
    .type gputrace_call_on_stack, @function
    .p2align 4
gputrace_call_on_stack:
    .cfi_startproc
    endbr64
    pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    movq %rdx, %rsp
    movq %rdi, %rax
    movq %rsi, %rdi
    call *%rax
    movq %rbp, %rsp
    popq %rbp
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size gputrace_call_on_stack, . - gputrace_call_on_stack

    .section .note.GNU-stack, "", @progbits
