/* SPDX-License-Identifier: Apache-2.0 */
/* ECC, row remapping, retired pages: counters that the file sets. */
#define _GNU_SOURCE
#include "nvml_local.h"

#include <stdio.h>
#include <string.h>

static struct number errors(int device, int type, int counter, const char *where)
{
	char key[64];

	snprintf(key, sizeof(key), "ecc.%s.%s%s%s", type ? "uncorrected" : "corrected",
		 counter ? "aggregate" : "volatile", *where ? "." : "", where);
	return setting(device, key, 0);
}

static int off(int device) /* without ECC its counters are not supported, and not 0 */
{
	struct number mode = setting(device, "ecc.mode", 1);

	return mode.code ? mode.code : mode.whole ? 0 : N_UNSUPPORTED;
}

API nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current,
				      nvmlEnableState_t *pending)
{
	struct number mode;
	struct target at;

	ENTER(device, &at);
	if (!current || !pending)
		return N_ARGUMENT;
	mode = setting(at.device, "ecc.mode", 1);
	*current = (nvmlEnableState_t)mode.whole;
	*pending = (nvmlEnableState_t)setting_whole(at.device, "ecc.mode.pending", mode.whole);
	return (nvmlReturn_t)mode.code;
}

API nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type,
					     nvmlEccCounterType_t counter, unsigned long long *out)
{
	struct target at;

	ENTER(device, &at);
	if ((unsigned)type > 1 || (unsigned)counter > 1)
		return N_ARGUMENT;
	if (off(at.device))
		return (nvmlReturn_t)off(at.device);
	return (nvmlReturn_t)reply_ull(errors(at.device, (int)type, (int)counter, ""), out);
}

API nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, nvmlMemoryErrorType_t type,
						 nvmlEccCounterType_t counter, nvmlMemoryLocation_t where,
						 unsigned long long *out)
{
	static const char *const NAMES[] = { "l1", "l2", "dram", "register", "texture", "texture_shm", "cbu",
					     "sram" };
	struct target at;

	ENTER(device, &at);
	if ((unsigned)type > 1 || (unsigned)counter > 1 || (unsigned)where > 7)
		return N_ARGUMENT;
	if (off(at.device))
		return (nvmlReturn_t)off(at.device);
	return (nvmlReturn_t)reply_ull(errors(at.device, (int)type, (int)counter, NAMES[where]), out);
}

API nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type,
						nvmlEccCounterType_t counter, nvmlEccErrorCounts_t *out)
{
	struct target at;

	ENTER(device, &at);
	if (!out || (unsigned)type > 1 || (unsigned)counter > 1)
		return N_ARGUMENT;
	if (off(at.device))
		return (nvmlReturn_t)off(at.device);
	out->l1Cache = errors(at.device, (int)type, (int)counter, "l1").whole;
	out->l2Cache = errors(at.device, (int)type, (int)counter, "l2").whole;
	out->deviceMemory = errors(at.device, (int)type, (int)counter, "dram").whole;
	out->registerFile = errors(at.device, (int)type, (int)counter, "register").whole;
	return 0;
}

API nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned *corrected, unsigned *uncorrected,
					   unsigned *pending, unsigned *failed)
{
	struct target at;
	int code;

	ENTER(device, &at);
	code = reply_uint(setting(at.device, "remapped.corrected", 0), corrected);
	code = code ? code : reply_uint(setting(at.device, "remapped.uncorrected", 0), uncorrected);
	code = code ? code : reply_uint(setting(at.device, "remapped.pending", 0), pending);
	return (nvmlReturn_t)(code ? code : reply_uint(setting(at.device, "remapped.failed", 0), failed));
}

API nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device, nvmlRowRemapperHistogramValues_t *out)
{
	struct target at;

	ENTER(device, &at);
	if (!out)
		return N_ARGUMENT;
	memset(out, 0, sizeof(*out));
	out->max = (unsigned)setting_whole(at.device, "remapped.banks.max", 640);
	out->high = (unsigned)setting_whole(at.device, "remapped.banks.high", 0);
	out->partial = (unsigned)setting_whole(at.device, "remapped.banks.partial", 0);
	out->low = (unsigned)setting_whole(at.device, "remapped.banks.low", 0);
	out->none = (unsigned)setting_whole(at.device, "remapped.banks.none", 0);
	return 0;
}

/* Pages are what cards before Ampere retire: not supported unless the file has a count. */
static nvmlReturn_t pages(int device, int cause, unsigned *count, unsigned long long *addresses)
{
	struct number number;
	char key[32];
	unsigned i;

	if (!count || cause < 0 || cause > 1)
		return N_ARGUMENT;
	snprintf(key, sizeof(key), "retired.%s", cause ? "double" : "single");
	number = setting_auto(device, key);
	if (number.automatic || number.code)
		return (nvmlReturn_t)(number.code ? number.code : N_UNSUPPORTED);
	if (*count < number.whole) {
		*count = (unsigned)number.whole;
		return N_SIZE;
	}
	*count = (unsigned)number.whole;
	for (i = 0; addresses && i < *count; i++)
		addresses[i] = 0x100000ull * (i + 1);
	return 0;
}

API nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, nvmlPageRetirementCause_t cause,
					   unsigned *count, unsigned long long *addresses)
{
	struct target at;

	ENTER(device, &at);
	return pages(at.device, (int)cause, count, addresses);
}

API nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device, nvmlPageRetirementCause_t cause,
					      unsigned *count, unsigned long long *addresses,
					      unsigned long long *stamps)
{
	struct target at;
	nvmlReturn_t code;

	ENTER(device, &at);
	code = pages(at.device, (int)cause, count, addresses);
	if (code == 0 && stamps)
		memset(stamps, 0, *count * sizeof(*stamps));
	return code;
}

API nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, nvmlEnableState_t *out)
{
	struct number number;
	struct target at;

	ENTER(device, &at);
	number = setting_auto(at.device, "retired.pending");
	if (!out || number.automatic || number.code)
		return (nvmlReturn_t)(!out ? N_ARGUMENT : number.code ? number.code : N_UNSUPPORTED);
	*out = (nvmlEnableState_t)number.whole;
	return 0;
}
