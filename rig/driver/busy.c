/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Busy time in a ring of buckets, written by its owner alone and without the lock, so that a launch
 * costs no other process anything. A bucket carries its epoch: what is old counts as empty.
 */
#include "state.h"

#define SPAN_NS 1000000000ull
#define AHEAD_NS ((BUCKETS - 40) * BUCKET_NS)

void busy_add(struct share *share, uint64_t from, uint64_t to)
{
	uint64_t now = now_ns(), limit = now + AHEAD_NS;

	__atomic_fetch_add(&share->launched_ns, to - from, __ATOMIC_RELAXED);
	if (from + SPAN_NS < now)
		from = now - SPAN_NS; /* a collective that took long: what is older is looked at no more */
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

static uint64_t overlap(struct span one, struct span other)
{
	uint64_t from = one.from > other.from ? one.from : other.from;
	uint64_t to = one.to < other.to ? one.to : other.to;

	return to > from ? to - from : 0;
}

/* The buckets and the collectives that run, each moment counted once as far as a bucket can tell. */
static uint64_t busy_within(const struct share *share, struct span within, const struct span *spins, int count)
{
	uint64_t epoch, busy = 0;
	int i;

	for (epoch = within.from / BUCKET_NS; epoch * BUCKET_NS < within.to; epoch++) {
		uint64_t bucket = __atomic_load_n(&share->buckets[epoch % BUCKETS], __ATOMIC_RELAXED);
		uint64_t start = epoch * BUCKET_NS, end = start + BUCKET_NS, length, sum = 0;
		struct span part = { start > within.from ? start : within.from,
				     end < within.to ? end : within.to };

		length = part.to - part.from;
		if (bucket >> 32 == (uint32_t)epoch)
			sum = (uint32_t)bucket * length / BUCKET_NS;
		for (i = 0; i < count; i++)
			sum += overlap(part, spins[i]);
		busy += sum < length ? sum : length;
	}
	return busy;
}

double share_busy(const struct state *state, const struct share *share, uint64_t now)
{
	struct span within = { now > SPAN_NS ? now - SPAN_NS : 0, now }, spins[SPINS];
	int count = spin_spans(state, share, now, spins);

	return (double)busy_within(share, within, spins, count) / (double)(within.to - within.from);
}

double device_busy(const struct state *state, int device, int instance, uint64_t now)
{
	double busy = 0;
	int i;

	for (i = 0; i < PROCESSES; i++) {
		const struct share *share = &state->processes[i].devices[device];

		if (state->processes[i].pid > 0 && (instance < 0 || share->instance == instance))
			busy += share_busy(state, share, now);
	}
	return busy < 1.0 ? busy : 1.0;
}

/* Kernel time up to now: what was ever launched, less what lies ahead, and collectives that run. */
uint64_t busy_ever(const struct state *state, int device, int instance, uint64_t now)
{
	uint64_t sum = instance < 0 ? state->cards[device].retired_ns : 0;
	struct span ahead = { now, now + AHEAD_NS }, spins[SPINS];
	int i, count;

	for (i = 0; i < PROCESSES; i++) {
		const struct share *share = &state->processes[i].devices[device];
		uint64_t later;

		if (state->processes[i].pid <= 0 || (instance >= 0 && share->instance != instance))
			continue;
		later = busy_within(share, ahead, 0, 0);
		sum += share->launched_ns > later ? share->launched_ns - later : 0;
		for (count = spin_spans(state, share, now, spins); count; count--)
			sum += spins[count - 1].to - spins[count - 1].from;
	}
	return sum;
}
