/* SPDX-License-Identifier: MIT */
/* Trampolines: an exported function for each FOLLOW row of hooks.def, and spare ones for functions
 * that have no row (trampoline.h). Each notes the call and jumps to the real function, with every
 * argument register, the stack and the return address as the caller left them; so no prototype is
 * needed, nor one that a later header would have.
 *
 *   r11d: the row's number, or ES_HOOK_COUNT plus the spare's. Like r11 itself it is free at entry.
 *   The arguments' upper vector halves are not kept: no driver function takes a wider one. */
	.text
	.set	number, 0

#define ENTRY	endbr64; movl $number, %r11d; jmp trampoline; .set number, number + 1;
#define BODY(symbol, group)	.set number, number + 1;
#define FOLLOW(symbol, group)	.globl symbol; .type symbol, @function; .p2align 4; \
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

	.type	trampoline, @function
	.p2align 4
trampoline:
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	subq	$192, %rsp
	movq	%rdi, (%rsp)
	movq	%rsi, 8(%rsp)
	movq	%rdx, 16(%rsp)
	movq	%rcx, 24(%rsp)
	movq	%r8, 32(%rsp)
	movq	%r9, 40(%rsp)
	movq	%rax, 48(%rsp)
	movq	%r10, 56(%rsp)
	movaps	%xmm0, 64(%rsp)
	movaps	%xmm1, 80(%rsp)
	movaps	%xmm2, 96(%rsp)
	movaps	%xmm3, 112(%rsp)
	movaps	%xmm4, 128(%rsp)
	movaps	%xmm5, 144(%rsp)
	movaps	%xmm6, 160(%rsp)
	movaps	%xmm7, 176(%rsp)
	movl	%r11d, %edi
	.hidden	es_trampoline_called
	call	es_trampoline_called
	movq	%rax, %r11
	movq	(%rsp), %rdi
	movq	8(%rsp), %rsi
	movq	16(%rsp), %rdx
	movq	24(%rsp), %rcx
	movq	32(%rsp), %r8
	movq	40(%rsp), %r9
	movq	48(%rsp), %rax
	movq	56(%rsp), %r10
	movaps	64(%rsp), %xmm0
	movaps	80(%rsp), %xmm1
	movaps	96(%rsp), %xmm2
	movaps	112(%rsp), %xmm3
	movaps	128(%rsp), %xmm4
	movaps	144(%rsp), %xmm5
	movaps	160(%rsp), %xmm6
	movaps	176(%rsp), %xmm7
	leave
	.cfi_def_cfa %rsp, 8
	jmp	*%r11
	.cfi_endproc
	.size	trampoline, . - trampoline

	.section .note.GNU-stack, "", @progbits
	.section .note.gnu.property, "a"	/* endbr64 above: IBT is kept */
	.p2align 3
	.long	4, 16, 5
	.asciz	"GNU"
	.long	0xc0000002, 4, 3, 0
