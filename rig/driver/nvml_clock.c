/* SPDX-License-Identifier: Apache-2.0 */
/* Utilisation, power, temperature, clocks; where they come from stands in nvml_busy.c. */
#define _GNU_SOURCE
#include "nvml_local.h"

#include <stdio.h>

#define GETTER(name, key, fallback) \
API nvmlReturn_t name(nvmlDevice_t device, unsigned *out) \
{ \
	struct target at; \
\
	ENTER(device, &at); \
	return (nvmlReturn_t)reply_uint(setting(at.device, key, fallback), out); \
}

API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *out)
{
	struct number gpu, memory;
	struct target at;

	ENTER(device, &at);
	gpu = busy_percent(at.device, at.instance);
	memory = setting_auto(at.device, "utilization.memory");
	if (memory.automatic) {
		memory = gpu;
		memory.whole /= 2;
	}
	if (!out || gpu.code || memory.code)
		return (nvmlReturn_t)(!out ? N_ARGUMENT : gpu.code ? gpu.code : memory.code);
	out->gpu = (unsigned)gpu.whole;
	out->memory = (unsigned)memory.whole;
	return 0;
}

#define ENGINE(name, key) \
API nvmlReturn_t name(nvmlDevice_t device, unsigned *out, unsigned *period) \
{ \
	struct target at; \
\
	ENTER(device, &at); \
	if (period) \
		*period = 167000; \
	return (nvmlReturn_t)reply_uint(setting(at.device, key, 0), out); \
}
ENGINE(nvmlDeviceGetEncoderUtilization, "utilization.encoder")
ENGINE(nvmlDeviceGetDecoderUtilization, "utilization.decoder")
ENGINE(nvmlDeviceGetJpgUtilization, "utilization.jpeg")
ENGINE(nvmlDeviceGetOfaUtilization, "utilization.ofa")

API nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *out)
{
	struct target at;

	ENTER(device, &at);
	return (nvmlReturn_t)reply_uint(power_now(at.device), out);
}

API nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *out)
{
	struct target at;

	ENTER(device, &at);
	return (nvmlReturn_t)reply_ull(energy_now(at.device), out);
}

GETTER(nvmlDeviceGetPowerManagementLimit, "power.limit", 700000)
GETTER(nvmlDeviceGetPowerManagementDefaultLimit, "power.limit.default", 700000)
GETTER(nvmlDeviceGetEnforcedPowerLimit, "power.limit", 700000)
GETTER(nvmlDeviceGetFanSpeed, "fan", 0)
GETTER(nvmlDeviceGetNumFans, "fans", 0)
GETTER(nvmlDeviceGetMemoryBusWidth, "memory.bus_width", 5120)
GETTER(nvmlDeviceGetNumGpuCores, "cores", 16896)
GETTER(nvmlDeviceGetMultiGpuBoard, "board.multi", 0)
GETTER(nvmlDeviceGetBoardId, "board.id", 256)

API nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned *least,
							      unsigned *most)
{
	struct target at;
	int code;

	ENTER(device, &at);
	code = reply_uint(setting(at.device, "power.limit.min", 200000), least);
	return (nvmlReturn_t)(code ? code : reply_uint(setting(at.device, "power.limit.max", 700000), most));
}

API nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned *out)
{
	struct target at;

	ENTER(device, &at);
	if ((int)sensor)
		return N_ARGUMENT;
	return (nvmlReturn_t)reply_uint(temperature_now(at.device), out);
}

API nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *out)
{
	struct number number;
	struct target at;

	ENTER(device, &at);
	if (!out || (int)out->sensorType)
		return N_ARGUMENT;
	if (out->version != (1u << 24 | sizeof(*out)))
		return N_VERSION;
	number = temperature_now(at.device);
	out->temperature = (int)number.whole;
	return (nvmlReturn_t)number.code;
}

API nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t device, nvmlMarginTemperature_t *out)
{
	struct number number;
	struct target at;

	ENTER(device, &at);
	if (!out)
		return N_ARGUMENT;
	if (out->version != (1u << 24 | sizeof(*out)))
		return N_VERSION;
	number = setting(at.device, "temperature.margin", 45);
	out->marginTemperature = (int)number.whole;
	return (nvmlReturn_t)number.code;
}

API nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t which,
						   unsigned *out)
{
	static const double FALLBACK[] = { 92, 89, 95, 87 };
	struct target at;
	char key[40];

	ENTER(device, &at);
	if ((unsigned)which > 3)
		return N_UNSUPPORTED;
	snprintf(key, sizeof(key), "temperature.threshold.%d", (int)which);
	return (nvmlReturn_t)reply_uint(setting(at.device, key, FALLBACK[which]), out);
}

API nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned *out)
{
	struct target at;

	ENTER(device, &at);
	return (nvmlReturn_t)((unsigned)type > 3 ? N_ARGUMENT : reply_uint(clock_now(at.device, (int)type), out));
}

API nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned *out)
{
	static const char *const KEYS[] = { "clock.graphics.max", "clock.sm.max", "clock.memory.max",
					    "clock.video.max" };
	static const double MOST[] = { 1980, 1980, 2619, 1545 };
	struct target at;

	ENTER(device, &at);
	if ((unsigned)type > 3)
		return N_ARGUMENT;
	return (nvmlReturn_t)reply_uint(setting(at.device, KEYS[type], MOST[type]), out);
}

API nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t type, nvmlClockId_t id, unsigned *out)
{
	struct target at;

	ENTER(device, &at);
	if ((unsigned)type > 3 || (int)id)
		return (unsigned)type > 3 ? N_ARGUMENT : N_UNSUPPORTED;
	return (nvmlReturn_t)reply_uint(clock_now(at.device, (int)type), out);
}

#define REASONS(name, value) \
API nvmlReturn_t name(nvmlDevice_t device, unsigned long long *out) \
{ \
	struct number number; \
	struct target at; \
\
	ENTER(device, &at); \
	number = setting_auto(at.device, "throttle.reasons"); \
	if (!out || number.code) \
		return (nvmlReturn_t)(out ? number.code : N_ARGUMENT); \
	*out = value; \
	return 0; \
}
REASONS(nvmlDeviceGetCurrentClocksThrottleReasons, throttle_now(at.device))
REASONS(nvmlDeviceGetCurrentClocksEventReasons, throttle_now(at.device))
REASONS(nvmlDeviceGetSupportedClocksThrottleReasons, 0x1ff)
REASONS(nvmlDeviceGetSupportedClocksEventReasons, 0x1ff)

#define SWITCH(name, type, key, fallback) \
API nvmlReturn_t name(nvmlDevice_t device, type *out) \
{ \
	struct number number; \
	struct target at; \
\
	ENTER(device, &at); \
	if (!out) \
		return N_ARGUMENT; \
	number = setting(at.device, key, fallback); \
	*out = (type)number.whole; \
	return (nvmlReturn_t)number.code; \
}
SWITCH(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, "persistence_mode", 1)
SWITCH(nvmlDeviceGetComputeMode, nvmlComputeMode_t, "compute_mode", 0)
SWITCH(nvmlDeviceGetPowerManagementMode, nvmlEnableState_t, "power.management", 1)
SWITCH(nvmlDeviceGetDisplayMode, nvmlEnableState_t, "display.mode", 0)
SWITCH(nvmlDeviceGetDisplayActive, nvmlEnableState_t, "display.active", 0)
SWITCH(nvmlDeviceGetPerformanceState, nvmlPstates_t, "pstate", 0)
SWITCH(nvmlDeviceGetPowerState, nvmlPstates_t, "pstate", 0)
SWITCH(nvmlDeviceGetBrand, nvmlBrandType_t, "brand", 2)

/* Nanoseconds spent under a policy; the reference is µs of driver time. */
API nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, nvmlPerfPolicyType_t policy,
					      nvmlViolationTime_t *out)
{
	struct number number;
	struct target at;
	char key[32];

	ENTER(device, &at);
	if (!out)
		return N_ARGUMENT;
	snprintf(key, sizeof(key), "violation.%d", (int)policy);
	number = setting(at.device, key, 0);
	out->referenceTime = (now_ns() - state_get()->born_at) / 1000;
	out->violationTime = number.whole;
	return (nvmlReturn_t)number.code;
}
