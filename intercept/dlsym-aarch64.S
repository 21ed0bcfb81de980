/* SPDX-License-Identifier: MIT */
/* dlsym(handle, name): the exported entry. See dlsym-x86_64.S for what it does and why.
 *
 *   x0 handle, x1 name; es_dlsym_next: the next dlsym, NULL until es_dlsym_find_next ran. */
	.text
	.globl	dlsym_entry, dlsym_old
	.set	dlsym_old, dlsym_entry
	.symver	dlsym_entry, dlsym@@@GLIBC_2.34
	.symver	dlsym_old, dlsym@GLIBC_2.17, remove
	.type	dlsym_entry, %function
	.p2align 4
dlsym_entry:
	.cfi_startproc
	hint	#34				/* bti c */
	adrp	x16, es_dlsym_next
	ldr	x16, [x16, #:lo12:es_dlsym_next]
	cbz	x16, .Lfind
.Lfound:
	cmn	x0, #1				/* RTLD_NEXT */
	b.eq	.Ltail
	ldrb	w17, [x1]
	cmp	w17, #'c'
	b.ne	.Ltail
	ldrb	w17, [x1, #1]
	cmp	w17, #'u'
	b.ne	.Ltail
	cbnz	x0, .Lours			/* RTLD_DEFAULT is 0 */
	stp	x29, x30, [sp, #-32]!
	.cfi_def_cfa_offset 32
	.cfi_offset 29, -32
	.cfi_offset 30, -24
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	mov	x0, x1
	bl	es_dlsym_answers
	and	w17, w0, #0xff
	ldp	x0, x1, [sp, #16]
	ldp	x29, x30, [sp], #32
	.cfi_restore 29
	.cfi_restore 30
	.cfi_def_cfa_offset 0
	adrp	x16, es_dlsym_next
	ldr	x16, [x16, #:lo12:es_dlsym_next]
	cbz	w17, .Ltail
.Lours:
	b	es_dlsym
.Ltail:
	br	x16
.Lfind:
	stp	x29, x30, [sp, #-32]!
	.cfi_def_cfa_offset 32
	.cfi_offset 29, -32
	.cfi_offset 30, -24
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	bl	es_dlsym_find_next
	ldp	x0, x1, [sp, #16]
	ldp	x29, x30, [sp], #32
	.cfi_restore 29
	.cfi_restore 30
	.cfi_def_cfa_offset 0
	adrp	x16, es_dlsym_next
	ldr	x16, [x16, #:lo12:es_dlsym_next]
	b	.Lfound
	.cfi_endproc
	.size	dlsym_entry, .-dlsym_entry

	.section .note.GNU-stack, "", %progbits
