/* SPDX-License-Identifier: Apache-2.0 */
/* As dlsym_x86_64.S: the return address stays in x30, and x2 takes it to whoever answers. */
	.hidden choose
	.text
	.globl dlsym
	.type dlsym, %function
dlsym:
	.cfi_startproc
	hint #34
	stp x29, x30, [sp, #-32]!
	.cfi_def_cfa_offset 32
	.cfi_offset 29, -32
	.cfi_offset 30, -24
	stp x0, x1, [sp, #16]
	mov x29, sp
	mov x2, x30
	bl choose
	mov x16, x0
	ldp x0, x1, [sp, #16]
	ldp x29, x30, [sp], #32
	.cfi_restore 29
	.cfi_restore 30
	.cfi_def_cfa_offset 0
	mov x2, x30
	br x16
	.cfi_endproc
	.size dlsym, . - dlsym
	.section .note.GNU-stack, "", %progbits
