/* SPDX-License-Identifier: Apache-2.0 */
/* One table a process, replaced as a whole under a lock when the file has changed. */
#define _GNU_SOURCE
#include "settings.h"

#include "state.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct entry {
	int device;
	char *key, *value;	/* into the text */
};

struct table {
	char *text;
	struct entry *entries;
	size_t count;
	struct rule *rules;
	size_t ruled;
	struct timespec changed;
	ino_t inode;
	off_t size;
	uint64_t seed;
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t counts = PTHREAD_MUTEX_INITIALIZER;
static struct table table;
static unsigned generation;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void forked(void) /* another thread may have held them in the parent */
{
	pthread_rwlock_init(&lock, 0);
	pthread_mutex_init(&counts, 0);
}

static void prepare(void)
{
	pthread_atfork(0, 0, forked);
}

static char *trim(char *text)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	for (end = text + strlen(text); end > text && isspace((unsigned char)end[-1]); end--)
		;
	*end = 0;
	return text;
}

static char *read_all(const char *path, struct stat *is)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = 0;
	ssize_t got = -1;

	if (fd < 0)
		return 0;
	if (fstat(fd, is) == 0 && is->st_size < 1 << 20 && (text = malloc((size_t)is->st_size + 1)))
		got = read(fd, text, (size_t)is->st_size);
	close(fd);
	if (text)
		text[got > 0 ? got : 0] = 0;
	return text;
}

static void add(struct table *into, int device, char *key, char *value)
{
	struct rule *rule = &into->rules[into->ruled];
	size_t i;

	if (!strcmp(key, "seed"))
		into->seed = strtoull(value, 0, 0);
	if (!rule_parse(rule, device, key, value)) {
		into->entries[into->count++] = (struct entry){ device, key, value };
		return;
	}
	for (i = 0; i < table.ruled; i++) /* the same line goes on counting where it was */
		if (table.rules[i].device == device && !strcmp(table.rules[i].line, rule->line))
			*rule = table.rules[i];
	into->ruled++;
}

static void parse(struct table *into)
{
	char *line, *rest = into->text;
	size_t lines = 1, at;
	int device = ANY_DEVICE;

	for (at = 0; into->text[at]; at++)
		lines += into->text[at] == '\n';
	into->entries = calloc(lines, sizeof(*into->entries));
	into->rules = calloc(lines, sizeof(*into->rules));
	while (into->entries && into->rules && (line = strsep(&rest, "\n"))) {
		char *equals;

		line = trim(line);
		if (!*line || *line == '#')
			continue;
		if (*line == '[') {
			device = strstr(line, "device") ? atoi(strstr(line, "device") + 6) : ANY_DEVICE;
			continue;
		}
		equals = strchr(line, '=');
		if (!equals)
			continue;
		*equals = 0;
		add(into, device, trim(line), trim(equals + 1));
	}
}

static int same(const struct stat *is)
{
	return is->st_ino == table.inode && is->st_size == table.size &&
	       is->st_mtim.tv_sec == table.changed.tv_sec &&
	       is->st_mtim.tv_nsec == table.changed.tv_nsec;
}

static void read_again(const char *path)
{
	struct table next = { 0 };
	struct stat is;

	next.text = read_all(path, &is);
	if (next.text) {
		next.changed = is.st_mtim;
		next.inode = is.st_ino;
		next.size = is.st_size;
		parse(&next);
		free(table.text);
		free(table.entries);
		free(table.rules);
		table = next;
		__atomic_fetch_add(&generation, 1, __ATOMIC_RELEASE);
	}
}

void settings_look(void)
{
	const char *path = getenv("MODELPROBE_STANDIN_CONFIG");
	struct stat is;
	int fresh, read = 0;

	pthread_once(&once, prepare);
	if (!path || stat(path, &is) < 0)
		return; /* none, or about to be replaced: what was read stays */
	pthread_rwlock_rdlock(&lock);
	fresh = same(&is);
	pthread_rwlock_unlock(&lock);
	if (fresh)
		return;
	pthread_rwlock_wrlock(&lock);
	if (!same(&is)) {
		read_again(path);
		read = 1;
	}
	pthread_rwlock_unlock(&lock);
	if (read && state_get())
		events_configured(state_get());
}

unsigned settings_generation(void)
{
	return __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
}

/* The device's lines come before those of all devices; of equal keys the first counts. */
static const struct entry *find(int device, const char *key, int nth)
{
	int pass;
	size_t i;

	for (pass = device == ANY_DEVICE; pass < 2; pass++)
		for (i = 0; i < table.count; i++)
			if (table.entries[i].device == (pass ? ANY_DEVICE : device) &&
			    !strcmp(table.entries[i].key, key) && nth-- == 0)
				return &table.entries[i];
	return 0;
}

int setting_nth(int device, const char *key, int nth, char *out, size_t size)
{
	const struct entry *entry;

	pthread_rwlock_rdlock(&lock);
	entry = find(device, key, nth);
	if (entry)
		snprintf(out, size, "%s", entry->value);
	pthread_rwlock_unlock(&lock);
	return entry != 0;
}

int setting_text(int device, const char *key, char *out, size_t size)
{
	return setting_nth(device, key, 0, out, size);
}

int setting_each(const char *prefix, int (*call)(const char *, const char *, void *), void *arg)
{
	size_t i, length = strlen(prefix);
	int sum = 0;

	pthread_rwlock_rdlock(&lock);
	for (i = 0; i < table.count; i++)
		if (!strncmp(table.entries[i].key, prefix, length))
			sum += call(table.entries[i].key + length, table.entries[i].value, arg);
	pthread_rwlock_unlock(&lock);
	return sum;
}

double settings_age(void)
{
	struct timespec at;

	clock_gettime(CLOCK_REALTIME, &at);
	return (double)(at.tv_sec - table.changed.tv_sec) + (double)(at.tv_nsec - table.changed.tv_nsec) / 1e9;
}

int gate(const char *name, int device, int *sticky)
{
	double seconds = 0;
	uint64_t from = now_ns();
	int code = 0;

	*sticky = 0;
	pthread_rwlock_rdlock(&lock);
	if (table.ruled) {
		pthread_mutex_lock(&counts);
		code = rules_apply(table.rules, table.ruled, name, device, sticky, table.seed, &seconds);
		pthread_mutex_unlock(&counts);
	}
	pthread_rwlock_unlock(&lock);
	if (seconds > 0.0001)
		sleep_until(from + (uint64_t)(seconds * 1e9));
	while (seconds > 0 && now_ns() - from < (uint64_t)(seconds * 1e9))
		; /* too short to sleep: the call itself costs that much */
	return code;
}
