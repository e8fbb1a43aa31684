/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * How a packet is walked. Built ahead: bpf_loop over runs of one kind (body or framing), each
 * copied out of the packet in blocks. BCC cannot load callbacks: see wire_scan_bcc.h.
 */
#ifndef WIRE_SCAN_H
#define WIRE_SCAN_H

#ifdef BCC_SEC
#include "wire_scan_bcc.h"
#else

static long body_step(__u32 i, void *context)
{
	struct run *run = context;

	sse_byte(run->conn, run->work->block[i & (BLOCK - 1)]);
	return 0;
}

static long framing_step(__u32 i, void *context)
{
	struct run *run = context;
	struct flow *flow = flow_of(run);
	__u8 byte = run->work->block[i & (BLOCK - 1)];
	__u8 verdict = flow->phase < SIZE ? head_byte(run, flow, byte) : chunk_byte(run, flow, byte);

	run->work->verdict = verdict;
	if (verdict < REPLACED)
		run->work->used = i + 1;
	/* A run belongs to one message, so that its bytes are counted for the right one. */
	return verdict != GO_ON || flow->phase == BODY || flow->phase == MESSAGE;
}

/* One run of bytes of the same kind. */
static long run_step(__u32 i, void *context)
{
	struct run *run = context;
	struct flow *flow;
	__u64 size;

	if (at_rest(run))
		return 1;
	flow = flow_of(run);
	if (flow->phase == BODY) {
		size = body_within(run, flow);
		if (looked_at(flow)) {
			size = load(run, size < BLOCK ? size : BLOCK);
			bpf_loop(size, body_step, run, 0);
		}
		body_passes(run, flow, size);
	} else {
		/* chunk framing is a few bytes, a head some hundreds */
		if (flow->phase < SIZE)
			run->work->private = 1;
		size = load(run, flow->phase >= SIZE ? 32 : BLOCK);
		run->work->used = 0;
		bpf_loop(size, framing_step, run, 0);
		advance(run, run->work->used);
	}
	judge(run);
	return 0;
}

static __always_inline void walk(struct run *run)
{
	/* Each run takes a byte or more, or ends a request, which the next byte follows. */
	bpf_loop((run->work->end - run->work->offset) * 2, run_step, run, 0);
}

#endif /* BCC_SEC */
#endif
