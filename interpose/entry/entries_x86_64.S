// The exported entries of the driver rows of api.def. Off costs a compare and a jump, whatever the call's arguments: nothing is moved.
// Ids are counted here as in calls.h, over the same rows in the same order.
//
// The entries have no size: a program that is not position-independent and refers to a library's variable of that name (cuew) has the loader copy
// as many bytes, and complain where they are too many. lookup/named_variables.h does the rest.

    .text
    .set gt_id, 0

    .macro gt_begin name
    .globl \name
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    endbr64
    .endm

    .macro gt_end name
    .cfi_endproc
    .size \name, 0
    .endm

    .macro gt_driver name
    .set gt_id, gt_id + 1
    .ifnc \name, cuLaunchKernel             // launch_x86_64.S
    .ifnc \name, cuLaunchKernel_ptsz
    gt_begin \name
    cmpq $1, gputrace_gate(%rip)            // kGateOff
    jne gputrace_traced_\name
    movq gputrace_real_functions + gt_id * 8(%rip), %rax
    testq %rax, %rax
    jz gputrace_traced_\name                // finds it, and sees that tracing is off
    jmpq *%rax
    gt_end \name
    .endif
    .endif
    .endm

#define GT_API(name, pfn, signature, forwarded, record) gt_driver name;
#define GT_RUNTIME(name, signature, forwarded, record) .set gt_id, gt_id + 1;
#define GT_ROUTE(name, pfn) .set gt_id, gt_id + 1;
#include "interpose/api.def"

// The rows of library.def. Off costs a compare, a look whether the caller lies in the object that was resolved first (library_route.h), and
// a jump: two versions of a library may be loaded, and each object must reach its own.
    .set gt_row, 0

    .macro gt_library name
    gt_begin \name
    cmpq $1, gputrace_gate + 8(%rip)        // kLibrariesOff
    jne gputrace_traced_\name
    movq (%rsp), %rax
    subq gputrace_library_entries + gt_row * 24(%rip), %rax
    cmpq gputrace_library_entries + gt_row * 24 + 8(%rip), %rax
    jae gputrace_traced_\name
    jmpq *gputrace_library_entries + gt_row * 24 + 16(%rip)
    gt_end \name
    .set gt_row, gt_row + 1
    .endm

// Seldom called, and asked for more than the gate: in C++.
    .macro gt_communicator name
    gt_begin \name
    jmp gputrace_traced_\name
    gt_end \name
    .set gt_row, gt_row + 1
    .endm

#define GT_LIBRARY(name, library, signature, forwarded, record) gt_library name;
#define GT_COMMUNICATOR(name, library, signature, forwarded, record) gt_communicator name;
#include "interpose/library.def"

    .section .note.GNU-stack, "", @progbits
