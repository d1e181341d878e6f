/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hand-written functions with call-frame information of the kinds that compilers and
 * cryptographic libraries produce: the canonical frame address (CFA) by RBX, R12 and
 * R10, by a word of the stack, the return address in a register, and RBP as a common register.
 */
	.text

	.macro function name
	.globl \name
	.type \name, @function
	.p2align 4
\name:
	.cfi_startproc
	.endm

	.macro done name
	.cfi_endproc
	.size \name, . - \name
	.endm

/* void cfa_rbx(void (*next)(void)) */
function cfa_rbx
	push %rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	mov %rsp, %rbx
	.cfi_def_cfa_register %rbx
	sub $200, %rsp
	and $-128, %rsp
	call *%rdi
	mov %rbx, %rsp
	.cfi_def_cfa_register %rsp
	pop %rbx
	.cfi_def_cfa_offset 8
	.cfi_restore %rbx
	ret
done cfa_rbx

/* void cfa_r12(void (*next)(void)) */
function cfa_r12
	push %r12
	.cfi_def_cfa_offset 16
	.cfi_offset %r12, -16
	push %rbx
	.cfi_def_cfa_offset 24
	.cfi_offset %rbx, -24
	lea 24(%rsp), %r12
	.cfi_def_cfa %r12, 0
	sub $72, %rsp
	and $-64, %rsp
	xor %ebx, %ebx
	call *%rdi
	lea -24(%r12), %rsp
	.cfi_def_cfa %rsp, 24
	pop %rbx
	.cfi_def_cfa_offset 16
	.cfi_restore %rbx
	pop %r12
	.cfi_def_cfa_offset 8
	.cfi_restore %r12
	ret
done cfa_r12

/* void cfa_saved(void (*next)(void)): the caller's stack pointer lies at rsp + 16 */
function cfa_saved
	mov %rsp, %rax
	.cfi_def_cfa_register %rax
	push %rbx
	.cfi_offset %rbx, -16
	push %rbp
	.cfi_offset %rbp, -24
	sub $88, %rsp
	and $-64, %rsp
	mov %rax, 16(%rsp)
	/* DW_CFA_def_cfa_expression: DW_OP_breg7 16, DW_OP_deref, DW_OP_plus_uconst 8 */
	.cfi_escape 0x0f, 0x05, 0x77, 0x10, 0x06, 0x23, 0x08
	mov $-1, %rbp
	call *%rdi
	mov 16(%rsp), %rsi
	.cfi_def_cfa %rsi, 8
	mov -16(%rsi), %rbp
	.cfi_restore %rbp
	mov -8(%rsi), %rbx
	.cfi_restore %rbx
	lea (%rsi), %rsp
	.cfi_def_cfa_register %rsp
	ret
done cfa_saved

/* void clobbers_rbp(void (*next)(void)) */
function clobbers_rbp
	push %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	push %r15
	.cfi_def_cfa_offset 24
	.cfi_offset %r15, -24
	sub $8, %rsp
	.cfi_adjust_cfa_offset 8
	mov $0x1234567812345678, %rbp
	mov %rbp, %r15
	call *%rdi
	add $8, %rsp
	.cfi_adjust_cfa_offset -8
	pop %r15
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r15
	pop %rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbp
	ret
done clobbers_rbp

/* void cfa_r10(unsigned long rounds): a leaf, as gcc begins a function that aligns its stack */
function cfa_r10
	lea 8(%rsp), %r10
	.cfi_def_cfa %r10, 0
	and $-64, %rsp
	pushq -8(%r10)
	sub $56, %rsp
1:	imul $0x5851f42d, %rdi, %rax
	mov %rax, (%rsp)
	dec %rdi
	jnz 1b
	lea -8(%r10), %rsp
	.cfi_def_cfa %rsp, 8
	ret
done cfa_r10

/* void return_in_rdi(unsigned long rounds): as vfork keeps it */
function return_in_rdi
	mov %rdi, %rcx
	pop %rdi
	.cfi_adjust_cfa_offset -8
	.cfi_register %rip, %rdi
1:	imul $0x5851f42d, %rcx, %rax
	dec %rcx
	jnz 1b
	push %rdi
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rip, -8
	ret
done return_in_rdi

/* void pushes(unsigned long rounds): the frame is another at nearly every instruction */
function pushes
1:	push %rax
	.cfi_adjust_cfa_offset 8
	push %rcx
	.cfi_adjust_cfa_offset 8
	push %rdx
	.cfi_adjust_cfa_offset 8
	imul $3, %rax, %rax
	pop %rdx
	.cfi_adjust_cfa_offset -8
	pop %rcx
	.cfi_adjust_cfa_offset -8
	pop %rax
	.cfi_adjust_cfa_offset -8
	dec %rdi
	jnz 1b
	ret
done pushes

	.section .note.GNU-stack, "", @progbits
