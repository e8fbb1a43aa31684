/* SPDX-License-Identifier: Apache-2.0 */
/* `fail.NAME = CODE …` and `delay.NAME = SECONDS …`: which calls they take, counted a process. */
#define _GNU_SOURCE
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int rule_parse(struct rule *rule, int device, const char *key, const char *value)
{
	const char *at;

	memset(rule, 0, sizeof(*rule));
	if (!strncmp(key, "delay.", 6))
		rule->delay = 1;
	else if (strncmp(key, "fail.", 5))
		return 0;
	snprintf(rule->name, sizeof(rule->name), "%s", strchr(key, '.') + 1);
	snprintf(rule->line, sizeof(rule->line), "%s=%s", key, value);
	rule->device = device;
	rule->times = UINT64_MAX;
	rule->probability = 1;
	rule->sticky = strstr(value, "sticky") != 0;
	if (rule->delay)
		rule->seconds = strtod(value, 0);
	else
		rule->code = atoi(value);
	if ((at = strstr(value, "after ")))
		rule->after = strtoull(at + 6, 0, 10);
	if ((at = strstr(value, "times ")))
		rule->times = strtoull(at + 6, 0, 10);
	if ((at = strstr(value, "probability ")))
		rule->probability = strtod(at + 12, 0);
	if ((at = strstr(value, "pid ")))
		rule->pid = atoi(at + 4);
	return 1;
}

static int fits(const struct rule *rule, const char *name, int device)
{
	size_t length = strlen(rule->name);

	if (rule->device != ANY_DEVICE && rule->device != device)
		return 0;
	if (rule->pid && rule->pid != getpid())
		return 0;
	if (length && rule->name[length - 1] == '*')
		return !strncmp(rule->name, name, length - 1);
	return !strcmp(rule->name, name);
}

/* The same seed and the same call give the same draw, whatever the process (splitmix64). */
static double draw(uint64_t seed, uint64_t nth)
{
	uint64_t z = seed + (nth + 1) * 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

int rules_apply(struct rule *rules, size_t count, const char *name, int device, int *sticky,
		uint64_t seed, double *seconds)
{
	int code = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		struct rule *rule = &rules[i];
		uint64_t nth;

		if (!fits(rule, name, device))
			continue;
		nth = rule->seen++;
		if (nth < rule->after || rule->done >= rule->times)
			continue;
		if (rule->probability < 1 && draw(seed, nth) >= rule->probability)
			continue;
		rule->done++;
		if (rule->delay) {
			*seconds += rule->seconds;
		} else if (!code) {
			code = rule->code;
			*sticky = rule->sticky;
		}
	}
	return code;
}
