// The way of the commonest call, cuLaunchKernel, when at most one other call of its thread is open (the runtime's around
// it) and nothing is out of the ordinary. It does what traced.h does around every call, in the same order, with one difference: the arguments go into
// the record, at the ring's cursor, before the call is made, so that none has to be kept across it (decision 13).
//
//   · The exported entry itself: the gate's launch word is the session's generation where this way may be gone.
//   · Before the call: any doubt, and gputrace_traced_NAME takes over with the arguments untouched.
//   · After the call: any doubt, and gputrace_launch_finished (launch_calls.cpp) takes over. Nothing is emitted by then.
//   · `busy` holds the record's size from before the cursor is read until it is committed: see producer.h.
//   · An exception or a cancellation may pass through the call: the frame is described, and needs no cleanup.

#include "interpose/entry/launch_layout.h"

    .text
    .set gt_id, 0

    // The call itself. depth: calls of this thread around it, 0 or 1 (the shared runtime's); %rax thread, %r11 slot.
    .macro gt_launch_at name per_thread depth
    cmpq $0, %fs:GT_THREAD_BUSY(%rax)
    jne gputrace_traced_\name
    cmpq $0, gputrace_real_functions + gt_id * 8(%rip)
    je gputrace_traced_\name
    pushq %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbx, 0
    movq $GT_RECORD_SIZE, %fs:GT_THREAD_BUSY(%rax)
    movq %fs:GT_THREAD_CURSOR(%rax), %rbx
    movq %fs:GT_THREAD_LIMIT(%rax), %r10
    subq %rbx, %r10
    cmpq $GT_RECORD_SIZE, %r10
    jb 3f
    pushq %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    .if \depth
    pushq %fs:GT_THREAD_FRAME(%rax)         // of the call around this one; twice, for the alignment
    .cfi_adjust_cfa_offset 8
    pushq %fs:GT_THREAD_FRAME(%rax)
    .cfi_adjust_cfa_offset 8
    .endif
    movq %rsp, %fs:GT_THREAD_FRAME(%rax)
    movl $(\depth + 1), GT_SLOT_DEPTH(%r11)
    movq %rdi, GT_RECORD_FUNCTION(%rbx)
    movl %esi, GT_RECORD_GRID(%rbx)
    movl %edx, GT_RECORD_GRID + 4(%rbx)
    movl %ecx, GT_RECORD_GRID + 8(%rbx)
    movl %r8d, GT_RECORD_BLOCK(%rbx)
    movl %r9d, GT_RECORD_BLOCK + 4(%rbx)
    movl 24 + \depth * 16(%rsp), %r10d
    movl %r10d, GT_RECORD_BLOCK + 8(%rbx)
    movl 32 + \depth * 16(%rsp), %r10d                    // dynamic shared memory, and flags in the upper half
    .if \per_thread
    btsq $32, %r10                          // kLaunchPerThread
    .endif
    movq %r10, GT_RECORD_SHARED(%rbx)
    movq 40 + \depth * 16(%rsp), %r10
    movq %r10, GT_RECORD_STREAM(%rbx)
    movq $0, GT_RECORD_CLUSTER(%rbx)
    movq %rdi, GT_SLOT_ARGUMENT + \depth * GT_CALL_SIZE(%r11)
    movl $gt_id, GT_SLOT_CALL + \depth * GT_CALL_SIZE(%r11)
    pushq 56 + \depth * 16(%rsp)                          // extra, parameters, stream, shared, block z: each where the last one was
    .cfi_adjust_cfa_offset 8
    pushq 56 + \depth * 16(%rsp)
    .cfi_adjust_cfa_offset 8
    pushq 56 + \depth * 16(%rsp)
    .cfi_adjust_cfa_offset 8
    pushq 56 + \depth * 16(%rsp)
    .cfi_adjust_cfa_offset 8
    pushq 56 + \depth * 16(%rsp)
    .cfi_adjust_cfa_offset 8
    movl %edx, %r10d
    rdtsc
    shlq $32, %rdx
    orq %rax, %rdx
    movq %rdx, %rbp
    movq %rdx, GT_RECORD_BEGIN(%rbx)
    movq %rdx, GT_SLOT_BEGIN + \depth * GT_CALL_SIZE(%r11)
    movl %r10d, %edx
    call *gputrace_real_functions + gt_id * 8(%rip)
    movl %eax, %ecx
    addq $(40 + \depth * 8), %rsp
    .cfi_adjust_cfa_offset -(40 + \depth * 8)
    .if \depth
    popq %rsi
    .cfi_adjust_cfa_offset -8
    .endif
    rdtsc
    shlq $32, %rdx
    orq %rax, %rdx
    movq _ZN8gputrace12thread_stateE@GOTTPOFF(%rip), %rax
    movq gputrace_gate(%rip), %r10
    cmpq %r10, %fs:GT_THREAD_GENERATION(%rax)
    jne 2f                                  // no longer the process, or the session, of the call's begin
    movq %fs:GT_THREAD_SLOT(%rax), %r11
    .if \depth
    movq %rsi, %fs:GT_THREAD_FRAME(%rax)
    .endif
    movl $\depth, GT_SLOT_DEPTH(%r11)
    movq $0, GT_SLOT_BEGIN + \depth * GT_CALL_SIZE(%r11)
    cmpq $GT_RECORD_SIZE, %fs:GT_THREAD_BUSY(%rax)
    jne 4f
    cmpq %rbx, %fs:GT_THREAD_CURSOR(%rax)
    jne 4f
    cmpq %rbp, GT_RECORD_BEGIN(%rbx)
    jne 4f
    movq %fs:GT_THREAD_CONTEXT(%rax), %rsi
    cmpq $-1, %rsi                          // kUnknownContext
    je 4f
    cmpl $0, _ZN8gputrace13open_capturesE(%rip)
    jne 4f
    movq _ZN8gputrace8producerE+GT_PRODUCER_CONTROL(%rip), %rdi
    cmpq GT_CONTROL_WINDOW_BEGIN(%rdi), %rbp
    jb 4f
    cmpq GT_CONTROL_WINDOW_END(%rdi), %rbp
    jae 4f
    movq GT_RECORD_FUNCTION(%rbx), %r8      // described already? function_place() in facts.h
    movabsq $GT_FUNCTION_HASH, %r9
    imulq %r8, %r9
    shrq $GT_FUNCTION_SHIFT, %r9
    movq _ZN8gputrace19described_functionsE(%rip), %rdi
    cmpq %r8, (%rdi,%r9,8)
    jne 4f
    addq $1, GT_SLOT_SEEN(%r11)
    movl %ecx, %edi
    shlq $48, %rdi
    movabsq $(gt_id << 32 | GT_RECORD_SIZE << 16 | GT_RECORD_TYPE), %r8
    orq %r8, %rdi
    movq %rdi, (%rbx)
    movq %rdx, GT_RECORD_END(%rbx)
    movq %rsi, GT_RECORD_CONTEXT(%rbx)
    cmpq %r10, gputrace_gate(%rip)
    jne 1f                                  // a handler has forked: this is the child
    movq %fs:GT_THREAD_BLOCK(%rax), %rdi
    addq $GT_RECORD_SIZE, %rbx
    movq %rbx, %fs:GT_THREAD_CURSOR(%rax)
    subl %edi, %ebx
    subl $GT_BLOCK_HEADER, %ebx
    movl %ebx, (%rdi)                       // committed; a store is a release here
1:  movq $0, %fs:GT_THREAD_BUSY(%rax)
2:  movl %ecx, %eax
    .cfi_remember_state
    popq %rbp
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbp
    popq %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbx
    ret
    .cfi_restore_state
4:  movl %ecx, %edi
    movq %rbp, %rsi
    movl $gt_id, %ecx
    popq %rbp
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbp
    popq %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbx
    jmp gputrace_launch_finished            // (result, begin, end, id) -> result
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbx, 0
3:  movq $0, %fs:GT_THREAD_BUSY(%rax)
    popq %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbx
    jmp gputrace_traced_\name
    .endm

    .macro gt_launch name per_thread
    .globl \name
    .type \name, @function
    .p2align 6
\name:
    .cfi_startproc
    endbr64
    movq _ZN8gputrace12thread_stateE@GOTTPOFF(%rip), %rax
    movq gputrace_gate + GT_GATE_LAUNCH(%rip), %r10
    cmpq %r10, %fs:GT_THREAD_GENERATION(%rax)
    jne 5f
    movq %fs:GT_THREAD_SLOT(%rax), %r11
    cmpl $0, GT_SLOT_DEPTH(%r11)
    jne 6f
    gt_launch_at \name, \per_thread, 0
6:  cmpl $1, GT_SLOT_DEPTH(%r11)
    jne gputrace_traced_\name
    cmpq %fs:GT_THREAD_FRAME(%rax), %rsp
    ja gputrace_traced_\name               // the frame of that call is gone
    gt_launch_at \name, \per_thread, 1
5:  cmpq $1, gputrace_gate(%rip)            // kGateOff: as the other entries
    jne gputrace_traced_\name
    movq gputrace_real_functions + gt_id * 8(%rip), %rax
    testq %rax, %rax
    jz gputrace_traced_\name
    jmpq *%rax
    .cfi_endproc
    .size \name, 0                          // entries_x86_64.S
    .endm

    .macro gt_row name
    .set gt_id, gt_id + 1
    .ifc \name, cuLaunchKernel
    gt_launch \name, 0
    .endif
    .ifc \name, cuLaunchKernel_ptsz
    gt_launch \name, 1
    .endif
    .endm

#define GT_API(name, pfn, signature, forwarded, record) gt_row name;
#define GT_RUNTIME(name, signature, forwarded, record) .set gt_id, gt_id + 1;
#define GT_ROUTE(name, pfn) .set gt_id, gt_id + 1;
#include "interpose/api.def"

    .section .note.GNU-stack, "", @progbits
