/* SPDX-License-Identifier: Apache-2.0 */
/* Initialisation, the door of every call, and what concerns no device. */
#define _GNU_SOURCE
#include "nvml_local.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int initialised;

int nvml_enter_system(const char *name, int needed)
{
	int sticky, code;

	settings_look();
	if (needed && __atomic_load_n(&initialised, __ATOMIC_ACQUIRE) <= 0)
		return N_UNINITIALIZED;
	code = gate(name, ANY_DEVICE, &sticky);
	return code ? code : state_get() ? N_OK : N_UNKNOWN;
}

int nvml_enter(const char *name, nvmlDevice_t handle, struct target *target)
{
	struct instance instance;
	int code, sticky;

	settings_look();
	if (__atomic_load_n(&initialised, __ATOMIC_ACQUIRE) <= 0)
		return N_UNINITIALIZED;
	if (!handle || handle->device < 0 || handle->device >= device_total())
		return N_ARGUMENT;
	code = gate(name, handle->device, &sticky);
	if (code)
		return code;
	if (setting_whole(handle->device, "lost", 0))
		return N_LOST;
	if (!state_get())
		return N_UNKNOWN;
	if (handle->slot >= 0 && (!mig_enabled(handle->device) ||
				  !mig_instance(handle->device, handle->slot, &instance) ||
				  instance.gpu != handle->instance || instance.compute != handle->compute))
		return (int)setting_whole(handle->device, "mig.stale", N_NOTFOUND);
	if (target)
		*target = (struct target){ handle->device, handle->slot < 0 ? -1 : handle->instance,
					   handle->slot < 0 ? -1 : handle->compute };
	return N_OK;
}

int device_total(void)
{
	uint64_t total = setting_whole(ANY_DEVICE, "devices", 1);

	return total < DEVICES ? (int)total : DEVICES;
}

static nvmlReturn_t start(const char *name)
{
	nvmlReturn_t code = (nvmlReturn_t)nvml_enter_system(name, 0);

	if (code == 0)
		__atomic_fetch_add(&initialised, 1, __ATOMIC_ACQ_REL);
	return code;
}

API nvmlReturn_t nvmlInit(void)
{
	return start(__func__);
}

API nvmlReturn_t nvmlInit_v2(void)
{
	return start(__func__);
}

API nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
	(void)flags;
	return start(__func__);
}

API nvmlReturn_t nvmlShutdown(void)
{
	ENTER_SYSTEM();
	__atomic_fetch_sub(&initialised, 1, __ATOMIC_ACQ_REL);
	return 0;
}

static APART const char *text_of(int code)
{
	static const char *const TEXTS[] = {
		"Success", "Uninitialized", "Invalid Argument", "Not Supported", "Insufficient Permissions",
		"Already Initialized", "Not Found", "Insufficient Size", "Insufficient External Power",
		"Driver Not Loaded", "Timeout", "Interrupt Request Issue", "NVML Shared Library Not Found",
		"Function Not Found", "Corrupted infoROM", "GPU is lost", "GPU requires reset",
		"The operating system has blocked the request.", "Driver/library version mismatch",
		"In use by another client", "Insufficient Memory", "No data", "vGPU ECC not supported",
		"Insufficient resources", "Frequency not supported", "Argument version mismatch",
		"Deprecated", "Not ready", "GPU not found", "Invalid state", "Reset type not supported",
	};

	return code >= 0 && (size_t)code < sizeof(TEXTS) / sizeof(*TEXTS) ? TEXTS[code] :
									      "Unknown Error";
}

API const char *nvmlErrorString(nvmlReturn_t code)
{
	return text_of((int)code);
}

static nvmlReturn_t words(const char *key, const char *fallback, char *out, unsigned size)
{
	char value[96];

	snprintf(value, sizeof(value), "%s", fallback);
	setting_text(ANY_DEVICE, key, value, sizeof(value));
	if (!out || strlen(value) >= size)
		return out ? N_SIZE : N_ARGUMENT;
	strcpy(out, value);
	return 0;
}

API nvmlReturn_t nvmlSystemGetDriverVersion(char *out, unsigned size)
{
	ENTER_SYSTEM();
	return words("driver.version", "580.95.05", out, size);
}

/* Answers without initialisation, as the real one does when driver and library differ. */
API nvmlReturn_t nvmlSystemGetNVMLVersion(char *out, unsigned size)
{
	nvmlReturn_t code = (nvmlReturn_t)nvml_enter_system(__func__, 0);

	return code ? code : words("nvml.version", "13.580.95.05", out, size);
}

static nvmlReturn_t cuda_version(int *version)
{
	if (!version)
		return N_ARGUMENT;
	*version = (int)setting_whole(ANY_DEVICE, "cuda.version", 13000);
	return 0;
}

API nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
	ENTER_SYSTEM();
	return cuda_version(version);
}

API nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	ENTER_SYSTEM();
	return cuda_version(version);
}

/* A pid as NVML shows it: of the host, when the file says that we are in a container. */
API nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *out, unsigned size)
{
	char path[40], text[256], *name;
	ssize_t got;
	int fd, nth;

	ENTER_SYSTEM();
	if (!out || !size)
		return N_ARGUMENT;
	for (nth = 0; setting_nth(ANY_DEVICE, "process", nth, text, sizeof(text)); nth++)
		if ((unsigned)atoi(text) == pid && (name = strstr(text, "name "))) {
			snprintf(out, size, "%s", name + 5);
			return 0;
		}
	snprintf(path, sizeof(path), "/proc/%d/cmdline",
		 (int)pid - (int)setting_whole(ANY_DEVICE, "pid_offset", 0));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return N_NOTFOUND;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[got > 0 ? got : 0] = 0;
	snprintf(out, size, "%s", text);
	return got > 0 ? 0 : N_NOTFOUND;
}

#define COUNT(name, value) \
API nvmlReturn_t name(unsigned *count) \
{ \
	ENTER_SYSTEM(); \
	if (!count) \
		return N_ARGUMENT; \
	*count = (unsigned)(value); \
	return 0; \
}
COUNT(nvmlDeviceGetCount_v2, device_total())
COUNT(nvmlDeviceGetCount, device_total())
COUNT(nvmlUnitGetCount, 0)

int reply_uint(struct number number, unsigned *out)
{
	if (!out)
		return N_ARGUMENT;
	if (!number.code)
		*out = (unsigned)number.whole;
	return number.code;
}

int reply_ull(struct number number, unsigned long long *out)
{
	if (!out)
		return N_ARGUMENT;
	if (!number.code)
		*out = number.whole;
	return number.code;
}
