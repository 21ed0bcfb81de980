/* SPDX-License-Identifier: MIT */
/* dlsym(handle, name): the exported entry.
 *
 * The real dlsym looks at its return address to know who asks, for RTLD_DEFAULT and RTLD_NEXT. So
 * these are jumped to with the caller's own frame, and so is every name that does not begin with
 * "cu". A C sibling call would do it at -O2 only. What is left goes to es_dlsym (dlsym.c).
 *
 * The name has the C library's versions, since other libraries that hook dlsym look for the next one
 * by dlvsym, which passes over a name that has none.
 *
 *   rdi handle, rsi name; es_dlsym_next: the next dlsym, NULL until es_dlsym_find_next ran. */
	.text
	.globl	dlsym_entry, dlsym_old
	.set	dlsym_old, dlsym_entry
	.symver	dlsym_entry, dlsym@@@GLIBC_2.34
	.symver	dlsym_old, dlsym@GLIBC_2.2.5, remove
	.type	dlsym_entry, @function
	.p2align 4
dlsym_entry:
	.cfi_startproc
	endbr64
	movq	es_dlsym_next(%rip), %rax
	testq	%rax, %rax
	je	.Lfind
.Lfound:
	cmpq	$-1, %rdi			/* RTLD_NEXT */
	je	.Ltail
	cmpw	$0x7563, (%rsi)			/* "cu" */
	jne	.Ltail
	testq	%rdi, %rdi			/* RTLD_DEFAULT */
	jne	.Lours
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	movq	%rsi, %rdi
	call	es_dlsym_answers
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	testb	%al, %al
	movq	es_dlsym_next(%rip), %rax
	je	.Ltail
.Lours:
	jmp	es_dlsym
.Ltail:
	jmp	*%rax
.Lfind:
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	es_dlsym_find_next
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	movq	es_dlsym_next(%rip), %rax
	jmp	.Lfound
	.cfi_endproc
	.size	dlsym_entry, .-dlsym_entry

	.section .note.GNU-stack, "", @progbits
	.section .note.gnu.property, "a"	/* endbr64 above: IBT is kept */
	.p2align 3
	.long	4, 16, 5
	.asciz	"GNU"
	.long	0xc0000002, 4, 3, 0
