/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPM: two samples and what happened between them, in percent. `auto` figures come from kernel time;
 * `gpm.ID` sets one, `gpm.ID.GI` for one MIG instance. Supported from compute capability 9.0 on.
 */
#define _GNU_SOURCE
#include "nvml_local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct nvmlGpmSample_st {
	int device, instance;
	uint64_t at, busy;
};

struct metric { unsigned id; const char *name, *unit; double share; };

static const struct metric METRICS[] = { /* share: of busy time, what a plain mix of kernels shows */
	{ 1, "Graphics Util", "%", 1.0 },
	{ 2, "SM Util", "%", 0.9 },
	{ 3, "SM Occupancy", "%", 0.4 },
	{ 4, "Integer Util", "%", 0.1 },
	{ 5, "Any Tensor Util", "%", 0.35 },
	{ 6, "DFMA Tensor Util", "%", 0 },
	{ 7, "HMMA Tensor Util", "%", 0.35 },
	{ 9, "IMMA Tensor Util", "%", 0 },
	{ 10, "DRAM BW Util", "%", 0.6 },
	{ 11, "FP64 Util", "%", 0 },
	{ 12, "FP32 Util", "%", 0.15 },
	{ 13, "FP16 Util", "%", 0.1 },
	{ 20, "PCIe TX", "MiB/sec", 0 },
	{ 21, "PCIe RX", "MiB/sec", 0 },
	{ 60, "NVLink Total RX", "MiB/sec", 0 },
	{ 61, "NVLink Total TX", "MiB/sec", 0 },
};

static int supported(int device)
{
	char cc[16] = "9.0";

	setting_text(device, "compute_capability", cc, sizeof(cc));
	return (int)setting_whole(device, "gpm", strtod(cc, 0) >= 9.0);
}

API nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *out)
{
	struct target at;

	ENTER(device, &at);
	if (!out)
		return N_ARGUMENT;
	if (out->version != 1)
		return N_VERSION;
	out->isSupportedDevice = (unsigned)supported(at.device);
	return 0;
}

API nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *out)
{
	ENTER_SYSTEM();
	if (!out)
		return N_ARGUMENT;
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : N_UNKNOWN;
}

API nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
	ENTER_SYSTEM();
	free(sample);
	return sample ? 0 : N_ARGUMENT;
}

static nvmlReturn_t sample(int device, int instance, nvmlGpmSample_t out)
{
	struct state *state = state_get();

	if (!out)
		return N_ARGUMENT;
	if (!supported(device))
		return N_UNSUPPORTED;
	state_sweep(state, 0);
	*out = (struct nvmlGpmSample_st){ .device = device, .instance = instance, .at = now_ns() };
	out->busy = busy_ever(state, device, instance, out->at);
	return 0;
}

API nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t out)
{
	struct target at;

	ENTER(device, &at);
	return sample(at.device, at.instance, out);
}

API nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned id, nvmlGpmSample_t out)
{
	struct instance instance;
	struct target at;
	int slot;

	ENTER(device, &at);
	for (slot = 0; slot < SLOTS && mig_instance(at.device, slot, &instance); slot++)
		if (instance.gpu == (int)id)
			return sample(at.device, instance.gpu, out);
	return mig_enabled(at.device) ? N_NOTFOUND : N_UNSUPPORTED;
}

static void answer(nvmlGpmMetric_t *metric, nvmlGpmSample_t from, nvmlGpmSample_t to)
{
	double busy = to->at > from->at && to->busy > from->busy ?
			      (double)(to->busy - from->busy) / (double)(to->at - from->at) : 0;
	const struct metric *known = 0;
	struct number number;
	char key[40], text[64];
	size_t i;

	busy = busy < 1 ? busy : 1;
	for (i = 0; i < sizeof(METRICS) / sizeof(*METRICS); i++)
		if (METRICS[i].id == metric->metricId)
			known = &METRICS[i];
	number = (struct number){ known ? 0 : N_UNSUPPORTED, 0, 0, known ? busy * known->share * 100 : 0 };
	snprintf(key, sizeof(key), "gpm.%u.%d", metric->metricId, to->instance);
	if (to->instance < 0 || !setting_text(to->device, key, text, sizeof(text))) {
		snprintf(key, sizeof(key), "gpm.%u", metric->metricId);
		if (!setting_text(to->device, key, text, sizeof(text)))
			key[0] = 0;
	}
	if (key[0] && strcmp(text, "auto"))
		number = number_parse(text);
	metric->nvmlReturn = (nvmlReturn_t)number.code;
	metric->value = number.real;
	metric->metricInfo.shortName = metric->metricInfo.longName = (char *)(known ? known->name : "");
	metric->metricInfo.unit = (char *)(known ? known->unit : "");
}

API nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *get)
{
	unsigned i;

	ENTER_SYSTEM();
	if (!get || !get->sample1 || !get->sample2)
		return N_ARGUMENT;
	if (get->version != 1)
		return N_VERSION;
	if (get->sample1->device != get->sample2->device || !get->sample1->at || !get->sample2->at)
		return N_ARGUMENT;
	for (i = 0; i < get->numMetrics; i++)
		answer(&get->metrics[i], get->sample1, get->sample2);
	return 0;
}
