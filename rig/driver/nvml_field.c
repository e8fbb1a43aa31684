/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Field values. Those of the table come from the same keys as the calls of old; any field, known or
 * not, can be set or refused by `field.ID`, or for one scope by `field.ID.SCOPE`.
 */
#define _GNU_SOURCE
#include "nvml_local.h"

#include <stdio.h>
#include <string.h>

enum { REAL = 0, UINT = 1, ULONG = 3 };

struct field { unsigned id; int type; const char *key; double fallback; };

static const struct field FIELDS[] = {
	{ 1, UINT, "ecc.mode", 1 },
	{ 2, UINT, "ecc.mode.pending", 1 },
	{ 3, ULONG, "ecc.corrected.volatile", 0 },
	{ 4, ULONG, "ecc.uncorrected.volatile", 0 },
	{ 5, ULONG, "ecc.corrected.aggregate", 0 },
	{ 6, ULONG, "ecc.uncorrected.aggregate", 0 },
	{ 38, ULONG, "nvlink.crc_flit", 0 },
	{ 45, ULONG, "nvlink.crc_data", 0 },
	{ 52, ULONG, "nvlink.replay", 0 },
	{ 59, ULONG, "nvlink.recovery", 0 },
	{ 74, ULONG, "violation.0", 0 },
	{ 75, ULONG, "violation.1", 0 },
	{ 76, ULONG, "violation.2", 0 },
	{ 77, ULONG, "violation.3", 0 },
	{ 78, ULONG, "violation.4", 0 },
	{ 79, ULONG, "violation.5", 0 },
	{ 80, ULONG, "violation.10", 0 },
	{ 81, ULONG, "violation.11", 0 },
	{ 82, UINT, "temperature.memory", 48 },
	{ 90, UINT, "nvlink.speed", 26562 },
	{ 91, UINT, "nvlinks", 0 },
	{ 94, UINT, "pcie.replay", 0 },
	{ 95, UINT, "pcie.replay_rollover", 0 },
	{ 138, ULONG, "nvlink.tx", 0 },
	{ 139, ULONG, "nvlink.rx", 0 },
	{ 142, UINT, "remapped.corrected", 0 },
	{ 143, UINT, "remapped.uncorrected", 0 },
	{ 144, UINT, "remapped.pending", 0 },
	{ 145, UINT, "remapped.failed", 0 },
	{ 161, ULONG, "nvlink.replay", 0 },
	{ 162, ULONG, "nvlink.recovery", 0 },
	{ 163, ULONG, "nvlink.crc_flit", 0 },
	{ 173, UINT, "pcie.correctable", 0 },
	{ 179, UINT, "pcie.nonfatal", 0 },
	{ 180, UINT, "pcie.fatal", 0 },
	{ 187, UINT, "power.limit.min", 200000 },
	{ 188, UINT, "power.limit.max", 700000 },
	{ 189, UINT, "power.limit.default", 700000 },
	{ 190, UINT, "power.limit", 700000 },
	{ 192, UINT, "power.limit", 700000 },
	{ 197, ULONG, "pcie.tx_bytes", 0 },
	{ 198, ULONG, "pcie.rx_bytes", 0 },
	{ 202, ULONG, "nvlink.tx_bytes", 0 },
	{ 204, ULONG, "nvlink.rx_bytes", 0 },
	{ 230, UINT, "recovery_action", 0 },
	{ 269, ULONG, "throttle.sw_thermal", 0 },
	{ 270, ULONG, "throttle.hw_thermal", 0 },
	{ 271, ULONG, "throttle.hw_power_brake", 0 },
};

/* Without links their fields are refused, unless the file has a figure for one. */
static struct number of_key(int device, const struct field *field)
{
	struct number links = setting(device, "nvlinks", 0);
	char text[128];

	if (!strncmp(field->key, "nvlink", 6) && (links.code || !links.whole) &&
	    (!strcmp(field->key, "nvlinks") || !setting_text(device, field->key, text, sizeof(text))))
		return (struct number){ links.code ? links.code : N_UNSUPPORTED, 0, 0, 0 };
	return setting(device, field->key, field->fallback);
}

static int known(int device, unsigned id, struct number *number)
{
	size_t i;

	if (id == 83 || id == 191) {
		*number = energy_now(device);
		return ULONG;
	}
	if (id == 185 || id == 186) {
		*number = power_now(device);
		return UINT;
	}
	for (i = 0; i < sizeof(FIELDS) / sizeof(*FIELDS); i++)
		if (FIELDS[i].id == id) {
			*number = of_key(device, &FIELDS[i]);
			return FIELDS[i].type;
		}
	*number = (struct number){ N_UNSUPPORTED, 0, 0, 0 };
	return ULONG;
}

static void answer(int device, nvmlFieldValue_t *value)
{
	struct number number;
	struct timespec at;
	char key[40], text[64];
	int type = known(device, value->fieldId, &number);

	snprintf(key, sizeof(key), "field.%u.%u", value->fieldId, value->scopeId);
	if (!setting_text(device, key, text, sizeof(text))) {
		snprintf(key, sizeof(key), "field.%u", value->fieldId);
		if (!setting_text(device, key, text, sizeof(text)))
			key[0] = 0;
	}
	if (key[0]) {
		number = number_parse(text);
		if (!number.code && (double)number.whole != number.real)
			type = REAL;
		else if (number.whole > 0xffffffffu && type == UINT)
			type = ULONG;
	}
	clock_gettime(CLOCK_REALTIME, &at);
	value->timestamp = (long long)at.tv_sec * 1000000 + at.tv_nsec / 1000;
	value->latencyUsec = 0;
	value->valueType = (nvmlValueType_t)type;
	value->nvmlReturn = (nvmlReturn_t)number.code;
	memset(&value->value, 0, sizeof(value->value));
	if (type == REAL)
		value->value.dVal = number.real;
	else if (type == UINT)
		value->value.uiVal = (unsigned)number.whole;
	else
		value->value.ullVal = number.whole;
}

API nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
	struct target at;
	int i;

	ENTER(device, &at);
	if (count < 1 || !values)
		return N_ARGUMENT;
	for (i = 0; i < count; i++)
		answer(at.device, &values[i]);
	return 0;
}

API nvmlReturn_t nvmlDeviceClearFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
	ENTER(device, 0);
	return count > 0 && values ? N_PERMISSION : N_ARGUMENT;
}
