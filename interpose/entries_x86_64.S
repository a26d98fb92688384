// The exported entries of the driver rows of api.def. Off costs a compare and a jump, whatever the call's arguments: nothing is moved.
// Ids are counted here as in calls.h, over the same rows in the same order.

    .text
    .set gt_id, 0

    .macro gt_driver name
    .set gt_id, gt_id + 1
    .globl \name
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    endbr64
    cmpq $1, gputrace_gate(%rip)            // kGateOff
    .ifc \name, cuLaunchKernel
    jne gputrace_launch_\name
    .else
    .ifc \name, cuLaunchKernel_ptsz
    jne gputrace_launch_\name
    .else
    jne gputrace_traced_\name
    .endif
    .endif
    movq gputrace_real_functions + gt_id * 8(%rip), %rax
    testq %rax, %rax
    jz gputrace_traced_\name                // finds it, and sees that tracing is off
    jmpq *%rax
    .cfi_endproc
    .size \name, . - \name
    .endm

#define GT_API(name, pfn, signature, forwarded, record) gt_driver name;
#define GT_RUNTIME(name, signature, forwarded, record) .set gt_id, gt_id + 1;
#define GT_ROUTE(name, pfn) .set gt_id, gt_id + 1;
#include "interpose/api.def"

    .section .note.GNU-stack, "", @progbits
