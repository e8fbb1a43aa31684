/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Busy time in a ring of buckets, written by its owner alone and without the lock, so that a launch
 * costs no other process anything. A bucket carries its epoch: what is old counts as empty.
 */
#include "state.h"

#define SPAN_NS 1000000000ull

void busy_add(struct share *share, uint64_t from, uint64_t to)
{
	uint64_t now = now_ns(), limit = now + (BUCKETS - 40) * BUCKET_NS;

	__atomic_fetch_add(&share->launched_ns, to - from, __ATOMIC_RELAXED);
	if (to > limit)
		to = limit; /* farther ahead than the ring reaches */
	while (from < to) {
		uint64_t epoch = from / BUCKET_NS, end = (epoch + 1) * BUCKET_NS, part, was, next;
		uint64_t *bucket = &share->buckets[epoch % BUCKETS];

		part = (to < end ? to : end) - from;
		was = __atomic_load_n(bucket, __ATOMIC_RELAXED);
		do {
			uint64_t held = (was >> 32) == (uint32_t)epoch ? (uint32_t)was : 0;

			held = held + part < BUCKET_NS ? held + part : BUCKET_NS;
			next = (uint64_t)(uint32_t)epoch << 32 | held;
		} while (!__atomic_compare_exchange_n(bucket, &was, next, 0, __ATOMIC_RELAXED,
						      __ATOMIC_RELAXED));
		from += part;
	}
}

uint64_t busy_within(const struct share *share, uint64_t from, uint64_t to)
{
	uint64_t epoch, busy = 0;

	for (epoch = from / BUCKET_NS; epoch * BUCKET_NS < to; epoch++) {
		uint64_t bucket = __atomic_load_n(&share->buckets[epoch % BUCKETS], __ATOMIC_RELAXED);
		uint64_t start = epoch * BUCKET_NS, end = start + BUCKET_NS;
		uint64_t part = (to < end ? to : end) - (from > start ? from : start);

		if (bucket >> 32 == (uint32_t)epoch)
			busy += (uint32_t)bucket * part / BUCKET_NS;
	}
	return busy;
}

double share_busy(const struct share *share, uint64_t now)
{
	double busy = (double)busy_within(share, now > SPAN_NS ? now - SPAN_NS : 0, now) / SPAN_NS;

	return share->spinning ? 1.0 : busy < 1.0 ? busy : 1.0;
}

double device_busy(const struct state *state, int device, int instance, uint64_t now)
{
	double busy = 0;
	int i;

	for (i = 0; i < PROCESSES; i++) {
		const struct share *share = &state->processes[i].devices[device];

		if (state->processes[i].pid > 0 && (instance < 0 || share->instance == instance))
			busy += share_busy(share, now);
	}
	return busy < 1.0 ? busy : 1.0;
}

/* Kernel time up to now: what was ever launched, less what lies ahead. */
uint64_t busy_ever(const struct state *state, int device, int instance, uint64_t now)
{
	uint64_t sum = instance < 0 ? state->cards[device].retired_ns : 0;
	int i;

	for (i = 0; i < PROCESSES; i++) {
		const struct share *share = &state->processes[i].devices[device];
		uint64_t ahead;

		if (state->processes[i].pid <= 0 || (instance >= 0 && share->instance != instance))
			continue;
		ahead = busy_within(share, now, now + (BUCKETS - 40) * BUCKET_NS);
		sum += share->launched_ns > ahead ? share->launched_ns - ahead : 0;
	}
	return sum;
}
