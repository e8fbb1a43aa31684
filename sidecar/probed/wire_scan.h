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

#include "wire_fast.h"

/* Stops behind the byte from which on the line is passed over. */
static long body_step(__u32 i, void *context)
{
	struct run *run = context;
	__u8 line = run->conn->sse.line;

	sse_byte(run->conn, run->work->block[i & (BLOCK - 1)], i);
	if (line == OTHER_LINE || run->conn->sse.line != OTHER_LINE)
		return 0;
	run->work->used = i + 1;
	return 1;
}

static long skip_step(__u32 i, void *context)
{
	struct run *run = context;
	__u64 *words = (__u64 *)&run->work->block[(i & (BLOCK / 64 - 1)) * 64], found = 0;

#pragma unroll
	for (int j = 0; j < 8; j++)
		found |= has(words[j], '\n') | has(words[j], '\r');
	if (found)
		return 1;
	run->work->used += 64;
	return 0;
}

/* Reads the block, or as much of it as is of one kind: lines that matter a byte a step, others in
 * strides. Returns how many bytes it took. */
static __always_inline __u64 read_events(struct run *run, __u64 size)
{
	struct work *work = run->work;

	work->used = 0;
	if (run->conn->sse.line == OTHER_LINE) {
		bpf_loop(size / 64, skip_step, run, 0);
		if (work->used)
			return work->used;
	}
	work->used = size;
	bpf_loop(size, body_step, run, 0);
	return work->used;
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
	if (LIKE_THE_LAST(run))
		return 0;
	flow = flow_of(run);
	if (flow->phase == BODY) {
		size = body_within(run, flow);
		if (looked_at(flow)) {
			size = load(run, size < BLOCK ? size : BLOCK);
			prepare_to_learn(run, flow, size);
			size = read_events(run, size);
			if (size == run->work->learning)
				learn(run->conn);
		} else if (hashed(run, flow)) {
			size = hash_piece(run, size);
		}
		body_passes(run, flow, size);
	} else {
		/* chunk framing is a few bytes, a head some hundreds */
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
