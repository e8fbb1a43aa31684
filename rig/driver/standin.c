/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator's end of the shared state: `standin event xid 79 device 0`, `standin show`, and for
 * tests `standin hold`, which stops with the lock in its hands.
 */
#define _GNU_SOURCE
#include "settings.h"
#include "state.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static int show(struct state *state)
{
	int i, d;

	state_sweep(state, 1);
	for (i = 0; i < PROCESSES; i++)
		for (d = 0; d < DEVICES && state->processes[i].pid > 0; d++)
			if (state->processes[i].devices[d].contexts)
				printf("process %d device %d bytes %llu contexts %u\n",
				       state->processes[i].pid, d,
				       (unsigned long long)state->processes[i].devices[d].bytes,
				       state->processes[i].devices[d].contexts);
	printf("events %llu\n", (unsigned long long)state->posted);
	return 0;
}

int main(int argc, char **argv)
{
	struct state *state = state_get();
	char text[256] = "";
	struct event event;
	int i;

	if (!state)
		return 1;
	if (argc == 2 && !strcmp(argv[1], "show"))
		return show(state);
	if (argc == 2 && !strcmp(argv[1], "hold")) {
		state_lock(state);
		raise(SIGSTOP);
		state_unlock(state);
		return 0;
	}
	for (i = 2; i < argc; i++) {
		strncat(text, argv[i], sizeof(text) - strlen(text) - 2);
		strcat(text, " ");
	}
	if (argc < 3 || strcmp(argv[1], "event") || !event_parse(text, &event)) {
		fprintf(stderr, "usage: standin show | event xid N device N [gi N] [ci N]\n"
				"                      | event type N data N device N\n");
		return 2;
	}
	state_lock(state);
	event_post(state, event);
	state_unlock(state);
	return 0;
}
