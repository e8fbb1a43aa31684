/* SPDX-License-Identifier: Apache-2.0 */
/* What libnvidia-ml keeps in its own process: that it was initialised, and which handle means what. */
#ifndef NVML_LOCAL_H
#define NVML_LOCAL_H

#include "nvml_abi.h"
#include "settings.h"
#include "state.h"

enum { N_OK = 0, N_UNINITIALIZED = 1, N_ARGUMENT = 2, N_UNSUPPORTED = 3, N_PERMISSION = 4, N_NOTFOUND = 6,
       N_SIZE = 7, N_TIMEOUT = 10, N_LOST = 15, N_VERSION = 25, N_UNKNOWN = 999 };
enum { SLOTS = 8 };		/* MIG devices on one GPU */
#define ALL_ONES 0xffffffffu

struct nvmlDevice_st {		/* behind an opaque handle: of a GPU, or of a MIG device on it */
	int device, slot;	/* slot -1: the GPU itself */
	int instance, compute;
};

struct instance { /* a line `mig.instance = GI …` */
	int gpu, compute;
	unsigned profile, slices, multiprocessors;
	uint64_t memory;
	char uuid[64], name[48];
};

struct target {
	int device, instance, compute; /* -1 for the whole GPU */
};

/* Ends the call with what the configuration has for it; else *target says which device is meant. */
#define ENTER(handle, target) \
	do { nvmlReturn_t entered = (nvmlReturn_t)nvml_enter(__func__, handle, target); \
	     if (entered) return entered; } while (0)
#define ENTER_SYSTEM() \
	do { nvmlReturn_t entered = (nvmlReturn_t)nvml_enter_system(__func__, 1); \
	     if (entered) return entered; } while (0)

int nvml_enter(const char *name, nvmlDevice_t handle, struct target *target);
int nvml_enter_system(const char *name, int initialised);
int device_total(void);
nvmlDevice_t device_handle(int device);
nvmlDevice_t mig_handle(int device, int slot);
int mig_enabled(int device);
int mig_instance(int device, int slot, struct instance *instance); /* 0 when there is none */
int mig_by_uuid(const char *uuid, nvmlDevice_t *handle);
void device_uuid(int device, char *out, size_t size);
void device_name(int device, char *out, size_t size);
void device_pci(int device, unsigned parts[3]);

/* Figures that more than one call gives out; each a code and a value. */
struct number busy_percent(int device, int instance);
struct number power_now(int device);
struct number energy_now(int device);
struct number temperature_now(int device);
struct number clock_now(int device, int type);
uint64_t throttle_now(int device);

int reply_uint(struct number number, unsigned *out);
int reply_ull(struct number number, unsigned long long *out);
#endif
