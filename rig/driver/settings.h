/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration file: `key = value` lines, keys under `[device N]` before those above any section.
 * Looked at in each call (one stat) and read again when it is another file or another time.
 */
#ifndef SETTINGS_H
#define SETTINGS_H

#include <stddef.h>
#include <stdint.h>

/* A value may be a figure or a refusal: `unsupported`, `lost`, `error N`; or `auto`. */
struct number {
	int code;		/* as nvmlReturn_t; 0 when there is a figure */
	int automatic;
	uint64_t whole;		/* exact, also for sentinels beyond 2^53 */
	double real;
};

enum { ANY_DEVICE = -1 };

void settings_look(void);
unsigned settings_generation(void);	/* grows with each file that was read */
double settings_age(void);		/* seconds since the file was written */
int setting_text(int device, const char *key, char *out, size_t size);	/* 0 when absent */
int setting_nth(int device, const char *key, int nth, char *out, size_t size); /* repeated keys */
struct number setting(int device, const char *key, double fallback);
struct number setting_auto(int device, const char *key);	/* `auto` when absent */
uint64_t setting_whole(int device, const char *key, uint64_t fallback); /* a refusal counts as absent */
double setting_real(int device, const char *key, double fallback);
struct number number_parse(const char *text);
int setting_each(const char *prefix, int (*call)(const char *rest, const char *value, void *arg),
		 void *arg);		/* keys above any section that begin so */

/*
 * Does what `delay.NAME` and `fail.NAME` ask of this call: sleeps, then gives the code, 0 for none.
 * `sticky` is set when the line says so: the process keeps that error.
 */
int gate(const char *name, int device, int *sticky);

/* gate.c: rules are taken out of the file when it is read */
struct rule {
	char name[64];		/* may end in `*` */
	char line[160];		/* identity: its count outlives a new reading of the file */
	int device, delay, code, sticky, pid;
	double seconds, probability;
	uint64_t after, times, seen, done;
};
int rule_parse(struct rule *rule, int device, const char *key, const char *value);
int rules_apply(struct rule *rules, size_t count, const char *name, int device, int *sticky,
		uint64_t seed, double *seconds);
#endif
