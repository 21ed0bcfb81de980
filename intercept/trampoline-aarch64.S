/* SPDX-License-Identifier: MIT */
/* Trampolines. See trampoline-x86_64.S for what they do and why.
 *
 *   w16: the row's number, or ES_HOOK_COUNT plus the spare's. x16 and x17 are free at entry. */
	.text
	.set	number, 0

#define ENTRY	hint #34; mov w16, #number; b trampoline; .set number, number + 1;	/* bti c */
#define BODY(symbol, group)	.set number, number + 1;
#define FOLLOW(symbol, group)	.globl symbol; .type symbol, %function; .p2align 4; \
	symbol: ENTRY .size symbol, . - symbol;
#include "intercept/hooks.def"

	.globl	es_trampoline_spares
	.hidden	es_trampoline_spares
	.p2align 4
es_trampoline_spares:
	.rept	256			/* ES_TRAMPOLINE_SPARES, of 16 bytes */
	.p2align 4
	ENTRY
	.endr

	.type	trampoline, %function
	.p2align 4
trampoline:
	.cfi_startproc
	stp	x29, x30, [sp, #-224]!
	.cfi_def_cfa_offset 224
	.cfi_offset 29, -224
	.cfi_offset 30, -216
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	stp	x2, x3, [sp, #32]
	stp	x4, x5, [sp, #48]
	stp	x6, x7, [sp, #64]
	str	x8, [sp, #80]
	stp	q0, q1, [sp, #96]
	stp	q2, q3, [sp, #128]
	stp	q4, q5, [sp, #160]
	stp	q6, q7, [sp, #192]
	mov	w0, w16
	.hidden	es_trampoline_called
	bl	es_trampoline_called
	mov	x16, x0
	ldp	x0, x1, [sp, #16]
	ldp	x2, x3, [sp, #32]
	ldp	x4, x5, [sp, #48]
	ldp	x6, x7, [sp, #64]
	ldr	x8, [sp, #80]
	ldp	q0, q1, [sp, #96]
	ldp	q2, q3, [sp, #128]
	ldp	q4, q5, [sp, #160]
	ldp	q6, q7, [sp, #192]
	ldp	x29, x30, [sp], #224
	.cfi_restore 29
	.cfi_restore 30
	.cfi_def_cfa_offset 0
	br	x16
	.cfi_endproc
	.size	trampoline, . - trampoline

	.section .note.GNU-stack, "", %progbits
