/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlsym: asks `choose` who shall answer, and jumps there with stack and arguments as they came.
 * RTLD_NEXT and RTLD_DEFAULT go by the return address, so a call in between would ask for us.
 */
	.hidden choose
	.text
	.globl dlsym
	.type dlsym, @function
dlsym:
	.cfi_startproc
	endbr64
	movq (%rsp), %rdx
	pushq %rdi
	.cfi_adjust_cfa_offset 8
	pushq %rsi
	.cfi_adjust_cfa_offset 8
	pushq %rdx
	.cfi_adjust_cfa_offset 8
	call choose
	popq %rdx
	.cfi_adjust_cfa_offset -8
	popq %rsi
	.cfi_adjust_cfa_offset -8
	popq %rdi
	.cfi_adjust_cfa_offset -8
	jmp *%rax
	.cfi_endproc
	.size dlsym, . - dlsym
	.section .note.GNU-stack, "", @progbits
