/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * How a packet is walked in the BCC build: bounded loops, a byte a step, continued by tail calls
 * (33 at most). Heads and bodies are programs of their own, each small enough for the verifier to
 * unroll. What is left after the last call counts as bytes missed.
 */
#ifndef WIRE_SCAN_BCC_H
#define WIRE_SCAN_BCC_H

/* Every byte is read: the verifier would have to walk through the comparison once more. */
static __always_inline int usual(struct __sk_buff *skb, struct work *work, struct conn *conn)
{
	return 0;
}

#define HEAD_STEPS 176
#define HASH_STEPS 24 /* pieces of 512 bytes, or bytes between them */
#define BODY_STEPS 160 /* what the verifier takes: see the limit of states it keeps pending */

PROGRAMS(walkers, 2);

/* The next byte of the packet, loading a block where the last one ends; -1 when there is none. */
static __always_inline int next_byte(struct run *run)
{
	struct work *work = run->work;
	__u64 index = (__u64)work->offset - work->base;

	if (index >= work->loaded) {
		if (!load(run, BLOCK))
			return -1;
		index = 0;
	}
	OPAQUE(index);
	return work->block[index & (BLOCK - 1)];
}

static __always_inline int head_step(struct run *run)
{
	struct flow *flow = flow_of(run);
	int byte;

	if (at_rest(run) || flow->phase >= SIZE)
		return 1;
	byte = next_byte(run);
	if (byte < 0)
		return 1;
	run->work->verdict = head_byte(run, flow, byte);
	if (run->work->verdict < REPLACED)
		advance(run, 1);
	return run->work->verdict != GO_ON;
}

static __always_inline int body_step(struct run *run)
{
	struct flow *flow = flow_of(run);
	int byte;

	if (at_rest(run) || flow->phase < SIZE)
		return 1;
	if (flow->phase == BODY && !looked_at(flow)) {
		if (hashed(run, flow))
			return 1; /* the next call begins with it */
		body_passes(run, flow, body_within(run, flow));
		return run->work->verdict != GO_ON;
	}
	byte = next_byte(run);
	if (byte < 0)
		return 1;
	if (flow->phase == BODY) {
		sse_byte(run->conn, byte, 0);
		body_passes(run, flow, 1);
	} else {
		run->work->verdict = chunk_byte(run, flow, byte);
		advance(run, 1);
	}
	return run->work->verdict != GO_ON;
}

/* A piece of a request's body, or a byte of its framing. */
static __always_inline int hash_step(struct run *run)
{
	struct flow *flow = flow_of(run);
	int byte;

	if (at_rest(run) || flow->phase < SIZE || looked_at(flow) || !hashed(run, flow))
		return 1;
	if (flow->phase == BODY) {
		body_passes(run, flow, hash_piece(run, body_within(run, flow)));
		return run->work->verdict != GO_ON;
	}
	byte = next_byte(run);
	if (byte < 0)
		return 1;
	run->work->verdict = chunk_byte(run, flow, byte);
	advance(run, 1);
	return run->work->verdict != GO_ON;
}

static __always_inline int unfinished(struct run *run)
{
	return run->work->verdict == GO_ON && !at_rest(run);
}

static __always_inline void walk(struct run *run)
{
	struct work *work = run->work;

	walkers.call(run->skb, flow_of(run)->phase >= SIZE);
	miss(run, flow_of(run), work->end - work->offset);
	work->offset = work->end;
}

static __always_inline int resume(struct __sk_buff *skb, struct run *run)
{

	run->skb = skb;
	run->work = LOOKUP(works, &SOLE);
	if (!run->work)
		return 0;
	run->conn = LOOKUP(conns, &run->work->key);
	if (!run->conn) /* given up meanwhile */
		wipe_block(run->work);
	return run->conn != 0;
}

int walk_head(struct __sk_buff *skb)
{
	struct run run;

	if (!resume(skb, &run))
		return 0;
#pragma clang loop unroll(disable)
	for (int i = 0; i < HEAD_STEPS; i++) {
		FORGET();
		if (head_step(&run))
			break;
	}
	judge(&run);
	if (unfinished(&run))
		walk(&run);
	conclude(&run);
	return 0;
}

int walk_body(struct __sk_buff *skb)
{
	struct run run;

	if (!resume(skb, &run))
		return 0;
#pragma clang loop unroll(disable)
	for (int i = 0; i < HASH_STEPS; i++) {
		FORGET();
		if (hash_step(&run))
			break;
	}
#pragma clang loop unroll(disable)
	for (int i = 0; i < BODY_STEPS; i++) {
		FORGET();
		if (body_step(&run))
			break;
	}
	judge(&run);
	if (unfinished(&run))
		walk(&run);
	conclude(&run);
	return 0;
}

#endif
