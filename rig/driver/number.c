/* SPDX-License-Identifier: Apache-2.0 */
/* Values as figures: exact whole numbers, units, running counters, refusals. */
#include "settings.h"

#include <stdlib.h>
#include <string.h>

static uint64_t scale(const char *suffix)
{
	return !strncmp(suffix, "KiB", 3) ? 1ull << 10 : !strncmp(suffix, "MiB", 3) ? 1ull << 20 :
	       !strncmp(suffix, "GiB", 3) ? 1ull << 30 : 1;
}

struct number number_parse(const char *text)
{
	struct number number = { 0 };
	const char *rate = strstr(text, " rate ");
	char *end;

	if (!strcmp(text, "unsupported"))
		number.code = 3;
	else if (!strcmp(text, "lost"))
		number.code = 15;
	else if (!strncmp(text, "error ", 6))
		number.code = atoi(text + 6);
	else if (!strcmp(text, "auto"))
		number.automatic = 1;
	if (number.code || number.automatic)
		return number;
	number.whole = strtoull(text, &end, 0);
	if (*end == '.' || *end == 'e') {
		number.real = strtod(text, &end) * (double)scale(end);
		number.whole = number.real < 0 ? (uint64_t)(int64_t)number.real : (uint64_t)number.real;
	} else {
		number.whole *= scale(end);
		number.real = *text == '-' ? (double)(int64_t)number.whole : (double)number.whole;
	}
	if (rate) { /* a counter that runs: so much a second since the file was written */
		number.real += strtod(rate + 6, 0) * settings_age();
		number.whole = (uint64_t)number.real;
	}
	return number;
}

struct number setting(int device, const char *key, double fallback)
{
	char text[128];
	struct number number = { 0, 0, (uint64_t)(int64_t)fallback, fallback };

	if (fallback >= 9.2e18)
		number.whole = (uint64_t)fallback;
	return setting_text(device, key, text, sizeof(text)) ? number_parse(text) : number;
}

struct number setting_auto(int device, const char *key)
{
	char text[128];
	struct number number = { 0, 1, 0, 0 };

	return setting_text(device, key, text, sizeof(text)) ? number_parse(text) : number;
}

uint64_t setting_whole(int device, const char *key, uint64_t fallback)
{
	char text[128];
	struct number number;

	if (!setting_text(device, key, text, sizeof(text)))
		return fallback;
	number = number_parse(text);
	return number.code || number.automatic ? fallback : number.whole;
}

double setting_real(int device, const char *key, double fallback)
{
	struct number number = setting(device, key, fallback);

	return number.code || number.automatic ? fallback : number.real;
}
