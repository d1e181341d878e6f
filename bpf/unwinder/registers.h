/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A process's registers, from the order that the kernel keeps them in to DWARF's, in which the
 * walker has them. */
#pragma once

/* The registers by their DWARF numbers; 0 or a reason of UNWIND_END_*. From the event's context and
 * from a copy alike. */
#if defined(__TARGET_ARCH_x86)
static __always_inline __u32 take_registers(struct andiron_walk *w, const bpf_user_pt_regs_t *r)
{
	w->pc = r->ip;
	w->regs[0] = r->ax;
	w->regs[1] = r->dx;
	w->regs[2] = r->cx;
	w->regs[3] = r->bx;
	w->regs[4] = r->si;
	w->regs[5] = r->di;
	w->regs[6] = r->bp;
	w->regs[7] = r->sp;
	w->regs[8] = r->r8;
	w->regs[9] = r->r9;
	w->regs[10] = r->r10;
	w->regs[11] = r->r11;
	w->regs[12] = r->r12;
	w->regs[13] = r->r13;
	w->regs[14] = r->r14;
	w->regs[15] = r->r15;
	w->known = 0xffff;
	return r->cs == USER32_CS ? UNWIND_END_COMPAT : 0;
}
#else
static __always_inline __u32 take_registers(struct andiron_walk *w, const bpf_user_pt_regs_t *r)
{
#pragma unroll
	for (int i = 0; i < 31; i++)
		w->regs[i] = r->regs[i];
	w->regs[31] = r->sp;
	w->pc = r->pc;
	w->known = ~0u;
	return r->pstate & PSR_MODE32_BIT ? UNWIND_END_COMPAT : 0;
}
#endif
