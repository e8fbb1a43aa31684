/* SPDX-License-Identifier: Apache-2.0 */
/* Which collective a stream is in, as a number that any process can look up, and when it was over. */
#include "state.h"

_Static_assert(COMMUNICATORS <= 64 && RANKS <= 32, "bits of spin_what");

uint64_t spin_what(enum spin_kind kind, int slot, int rank, int peer, uint64_t nth)
{
	return nth << 18 | (uint64_t)peer << 13 | (uint64_t)rank << 8 | (uint64_t)slot << 2 | (uint64_t)kind;
}

/* `now` while it goes on; 0 when that is too long ago to be known. */
static uint64_t end_of(const struct state *state, uint64_t what, uint64_t now)
{
	const struct communicator *there = &state->communicators[what >> 2 & 63];
	unsigned rank = what >> 8 & 31, peer = what >> 13 & 31;
	uint64_t nth = what >> 18, aborted, finish, sequence;
	const struct flight *flight = &there->flights[nth % FLIGHTS];
	const struct tally *other;

	aborted = __atomic_load_n(&there->members[rank].aborted_at, __ATOMIC_ACQUIRE);
	if (aborted)
		return aborted;
	if ((what & 3) == COLLECTIVE) {
		finish = __atomic_load_n(&flight->finish, __ATOMIC_ACQUIRE);
		sequence = __atomic_load_n(&flight->sequence, __ATOMIC_ACQUIRE);
		return sequence > nth ? 0 : sequence == nth && finish ? finish : now;
	}
	other = (what & 3) == SEND ? &there->received[rank][peer] : &there->sent[peer][rank];
	if (__atomic_load_n(&other->count, __ATOMIC_ACQUIRE) < nth)
		return now;
	return __atomic_load_n(&other->at, __ATOMIC_RELAXED);
}

int spin_spans(const struct state *state, const struct share *share, uint64_t now, struct span *out)
{
	int i, count = 0;

	for (i = 0; i < SPINS; i++) {
		uint64_t since = __atomic_load_n(&share->spins[i].since, __ATOMIC_ACQUIRE), end;

		if (!since)
			continue;
		end = end_of(state, __atomic_load_n(&share->spins[i].what, __ATOMIC_RELAXED), now);
		end = end < now ? end : now;
		if (end > since)
			out[count++] = (struct span){ since, end };
	}
	return count;
}
