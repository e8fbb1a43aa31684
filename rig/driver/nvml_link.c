/* SPDX-License-Identifier: Apache-2.0 */
/* PCIe, NVLink, topology. Links are numbered as in the file: `nvlink.3.state = 0`. */
#define _GNU_SOURCE
#include "nvml_local.h"

#include <stdio.h>
#include <string.h>

#define GETTER(name, key, fallback) \
API nvmlReturn_t name(nvmlDevice_t device, unsigned *out) \
{ \
	struct target at; \
\
	ENTER(device, &at); \
	return (nvmlReturn_t)reply_uint(setting(at.device, key, fallback), out); \
}
GETTER(nvmlDeviceGetPcieReplayCounter, "pcie.replay", 0)
GETTER(nvmlDeviceGetCurrPcieLinkGeneration, "pcie.generation", 5)
GETTER(nvmlDeviceGetMaxPcieLinkGeneration, "pcie.generation.max", 5)
GETTER(nvmlDeviceGetGpuMaxPcieLinkGeneration, "pcie.generation.max", 5)
GETTER(nvmlDeviceGetCurrPcieLinkWidth, "pcie.width", 16)
GETTER(nvmlDeviceGetMaxPcieLinkWidth, "pcie.width.max", 16)
GETTER(nvmlDeviceGetPcieLinkMaxSpeed, "pcie.speed.max", 5)
GETTER(nvmlDeviceGetPcieSpeed, "pcie.speed", 32000)
GETTER(nvmlDeviceGetNumaNodeId, "numa", 0)

API nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlPcieUtilCounter_t which, unsigned *out)
{
	struct target at;

	ENTER(device, &at);
	if ((unsigned)which > 1)
		return N_ARGUMENT;
	return (nvmlReturn_t)reply_uint(setting(at.device, which ? "pcie.rx" : "pcie.tx", 0), out);
}

static struct number link_number(int device, unsigned link, const char *what, double fallback)
{
	char key[48];

	snprintf(key, sizeof(key), "nvlink.%u.%s", link, what);
	return setting(device, key, fallback);
}

static int no_link(int device, unsigned link)
{
	struct number links = setting(device, "nvlinks", 0);

	if (links.code)
		return links.code;
	return link < links.whole ? 0 : links.whole ? N_ARGUMENT : N_UNSUPPORTED;
}

API nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, nvmlEnableState_t *out)
{
	struct number number;
	struct target at;

	ENTER(device, &at);
	if (!out || no_link(at.device, link))
		return (nvmlReturn_t)(out ? no_link(at.device, link) : N_ARGUMENT);
	number = link_number(at.device, link, "state", 1);
	*out = (nvmlEnableState_t)number.whole;
	return (nvmlReturn_t)number.code;
}

API nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned link, unsigned *out)
{
	struct target at;

	ENTER(device, &at);
	if (no_link(at.device, link))
		return (nvmlReturn_t)no_link(at.device, link);
	return (nvmlReturn_t)reply_uint(link_number(at.device, link, "version", 4), out);
}

API nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned link, nvmlNvLinkCapability_t which,
					       unsigned *out)
{
	struct target at;

	ENTER(device, &at);
	(void)which;
	if (!out || no_link(at.device, link))
		return (nvmlReturn_t)(out ? no_link(at.device, link) : N_ARGUMENT);
	*out = 1;
	return 0;
}

API nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned link,
						 nvmlNvLinkErrorCounter_t which, unsigned long long *out)
{
	static const char *const NAMES[] = { "replay", "recovery", "crc_flit", "crc_data", "ecc" };
	struct target at;

	ENTER(device, &at);
	if (no_link(at.device, link) || (unsigned)which > 4)
		return (nvmlReturn_t)(no_link(at.device, link) ? no_link(at.device, link) : N_ARGUMENT);
	return (nvmlReturn_t)reply_ull(link_number(at.device, link, NAMES[which], 0), out);
}

API nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned link, nvmlPciInfo_t *out)
{
	struct target at;

	ENTER(device, &at);
	if (!out || no_link(at.device, link))
		return (nvmlReturn_t)(out ? no_link(at.device, link) : N_ARGUMENT);
	memset(out, 0, sizeof(*out));
	out->bus = 0xf0 + link / 4;
	snprintf(out->busId, sizeof(out->busId), "00000000:%02X:00.0", out->bus & 0xff);
	snprintf(out->busIdLegacy, sizeof(out->busIdLegacy), "0000:%02X:00.0", out->bus & 0xff);
	return 0;
}

API nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t one, nvmlDevice_t other,
						     nvmlGpuTopologyLevel_t *out)
{
	struct target at;

	ENTER(one, &at);
	if (!other || !out)
		return N_ARGUMENT;
	*out = (nvmlGpuTopologyLevel_t)setting_whole(at.device, "topology", 30);
	return 0;
}

API nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t one, nvmlDevice_t other, nvmlGpuP2PCapsIndex_t which,
					nvmlGpuP2PStatus_t *out)
{
	struct target at;

	ENTER(one, &at);
	(void)which;
	if (!other || !out)
		return N_ARGUMENT;
	*out = (nvmlGpuP2PStatus_t)setting_whole(at.device, "p2p", 0);
	return 0;
}
