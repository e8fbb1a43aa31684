/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Registers at a function's entry and at its return. bpf_user_pt_regs_t is part of the kernel's
 * user interface: struct pt_regs on x86-64, struct user_pt_regs on arm64. Each has an object.
 */
#ifndef WIRE_TLS_REGS_H
#define WIRE_TLS_REGS_H

#include "probe.h"

#if defined(__TARGET_ARCH_arm64)

struct registers {
	__u64 regs[31], sp, pc, pstate;
};
#define FIRST(ctx) ((ctx)->regs[0])
#define SECOND(ctx) ((ctx)->regs[1])
#define THIRD(ctx) ((ctx)->regs[2])
#define FOURTH(ctx) ((ctx)->regs[3])
#define RETURNED(ctx) ((ctx)->regs[0])
#define ENTRY_FRAME(ctx) ((ctx)->sp)
#define RETURN_FRAME(ctx) ((ctx)->sp)

#elif defined(__TARGET_ARCH_x86)

struct registers {
	__u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags,
		sp, ss;
};
#define FIRST(ctx) ((ctx)->di)
#define SECOND(ctx) ((ctx)->si)
#define THIRD(ctx) ((ctx)->dx)
#define FOURTH(ctx) ((ctx)->cx)
#define RETURNED(ctx) ((ctx)->ax)
#define ENTRY_FRAME(ctx) ((ctx)->sp + 8) /* below it lies the address to return to */
#define RETURN_FRAME(ctx) ((ctx)->sp)

#else
#error "no registers are known for this machine"
#endif
#endif
