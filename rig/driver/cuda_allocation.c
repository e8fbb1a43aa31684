/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of this process's allocations. Addresses are of no mapping: a program that follows one
 * faults, as on a real machine.
 */
#include "cuda_local.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ADDRESS 0x7d0000000000ull
#define PAGE 2097152ull		/* of addresses: allocations never touch */

static struct allocation *table;
static size_t used, room;
static CUdeviceptr next_address = FIRST_ADDRESS;

static size_t position(CUdeviceptr at) /* the first allocation beyond */
{
	size_t low = 0, high = used;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (table[middle].at <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct allocation *allocation_at(CUdeviceptr at)
{
	size_t i = position(at);

	if (!i || !at || at - table[i - 1].at >= (table[i - 1].size ? table[i - 1].size : 1))
		return 0;
	return &table[i - 1];
}

struct allocation *allocation_add(struct allocation what)
{
	size_t i;

	if (used == room) {
		size_t more = room ? 2 * room : 256;
		struct allocation *grown = realloc(table, more * sizeof(*table));

		if (!grown)
			return 0;
		table = grown;
		room = more;
	}
	if (!what.at) {
		what.at = next_address;
		next_address += (what.size + PAGE) / PAGE * PAGE;
	}
	i = position(what.at);
	memmove(table + i + 1, table + i, (used - i) * sizeof(*table));
	table[i] = what;
	used++;
	return &table[i];
}

void allocation_remove(struct allocation *allocation)
{
	size_t i = (size_t)(allocation - table);

	free(allocation->bytes);
	used--;
	memmove(allocation, allocation + 1, (used - i) * sizeof(*table));
}

void forget_allocations(CUcontext context)
{
	size_t i, kept = 0;

	for (i = 0; i < used; i++) {
		if (table[i].context != context || table[i].kind == HOST_MEMORY ||
		    table[i].kind == REGISTERED) {
			table[kept++] = table[i];
			continue;
		}
		if (table[i].charged)
			discharge(table[i].device, table[i].charged);
		free(table[i].bytes);
	}
	used = kept;
}
