/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules and functions. An image is not read: a module has every function that is asked of it, and
 * what a kernel costs in time, registers and shared memory stands in the file under `kernel.NAME.`.
 */
#include "cuda_local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CUmod_st {
	uint32_t magic;
	CUfunction functions;
};

enum { MAGIC_MODULE = 0x6d6f6431 };

static CUresult load(CUmodule *out)
{
	if (!out)
		return E_VALUE;
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return E_MEMORY;
	(*out)->magic = MAGIC_MODULE;
	return OK;
}

static CUresult function(CUmodule module, const char *name, CUfunction *out)
{
	CUfunction found;

	if (!module || module->magic != MAGIC_MODULE || !name || !out)
		return module && name ? E_VALUE : E_HANDLE;
	pthread_mutex_lock(&cuda_lock);
	for (found = module->functions; found && strcmp(found->name, name); found = found->next)
		;
	if (!found && (found = calloc(1, sizeof(*found)))) {
		snprintf(found->name, sizeof(found->name), "%s", name);
		found->next = module->functions;
		module->functions = found;
	}
	pthread_mutex_unlock(&cuda_lock);
	*out = found;
	return found ? OK : E_MEMORY;
}

/* `kernel.NAME.what`, or `kernel.what` for all kernels. */
static double figure(const char *name, int device, const char *what, double fallback)
{
	char key[160], any[48];

	snprintf(key, sizeof(key), "kernel.%s.%s", name, what);
	snprintf(any, sizeof(any), "kernel.%s", what);
	return setting_real(device, key, setting_real(device, any, fallback));
}

uint64_t function_cost(CUfunction function, int device, int *trap)
{
	unsigned generation = settings_generation() + 1;
	char key[160];

	if (function->generation != generation) {
		function->cost = (uint64_t)(figure(function->name, device, "seconds", 10e-6) * 1e9);
		snprintf(key, sizeof(key), "trap.%s", function->name);
		function->trap = (int)setting_whole(device, key, 0);
		function->generation = generation;
	}
	*trap = function->trap;
	return function->cost;
}

int function_attribute(CUfunction function, int device, int which, int *value)
{
	static const struct { int which; const char *name; double fallback; } KNOWN[] = {
		{ 0, "threads", 1024 }, { 1, "shared", 0 }, { 2, "constant", 0 }, { 3, "local", 0 },
		{ 4, "registers", 32 },
	};
	char cc[16] = "9.0";
	size_t i;

	if (!function || !value)
		return function ? E_VALUE : E_HANDLE;
	*value = 0;
	for (i = 0; i < sizeof(KNOWN) / sizeof(*KNOWN); i++)
		if (KNOWN[i].which == which)
			*value = (int)figure(function->name, device, KNOWN[i].name, KNOWN[i].fallback);
	if (which == 5 || which == 6) {
		setting_text(device, "compute_capability", cc, sizeof(cc));
		*value = (int)(strtod(cc, 0) * 10 + 0.5);
	}
	if (which == 8)
		*value = function->dynamic_shared ? function->dynamic_shared : 49152;
	if (which == 9)
		*value = -1;
	return which >= 0 && which < 16 ? OK : E_VALUE;
}

API CUresult cuModuleLoad(CUmodule *module, const char *path)
{
	ENTER(CONTEXT, 0);
	return path ? load(module) : E_VALUE;
}

API CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	ENTER(CONTEXT, 0);
	return image ? load(module) : E_VALUE;
}

API CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, CUjit_option *options,
				void **values)
{
	ENTER(CONTEXT, 0);
	return image && (!count || (options && values)) ? load(module) : E_VALUE;
}

API CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	ENTER(CONTEXT, 0);
	return image ? load(module) : E_VALUE;
}

API CUresult cuModuleUnload(CUmodule module)
{
	ENTER(CONTEXT, 0);
	if (!module || module->magic != MAGIC_MODULE)
		return E_HANDLE;
	module->magic = 0; /* its functions stay: somebody may still hold them */
	return OK;
}

API CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name)
{
	ENTER(CONTEXT, 0);
	return function(module, name, out);
}

API CUresult cuModuleGetGlobal_v2(CUdeviceptr *at, size_t *size, CUmodule module, const char *name)
{
	ENTER(CONTEXT, 0);
	(void)at;
	(void)size;
	return module && name ? E_NOTFOUND : E_VALUE;
}

API CUresult cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction function)
{
	CUcontext context;

	ENTER(CONTEXT, &context);
	return (CUresult)function_attribute(function, context->device, (int)which, value);
}

API CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value)
{
	ENTER(CONTEXT, 0);
	if (!function || value < -1)
		return function ? E_VALUE : E_HANDLE;
	if ((int)which == 8)
		function->dynamic_shared = value;
	return OK;
}

API CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
	ENTER(CONTEXT, 0);
	return function && (int)config >= 0 ? OK : E_HANDLE;
}

API CUresult cuFuncGetName(const char **name, CUfunction function)
{
	ENTER(CONTEXT, 0);
	if (!name || !function)
		return E_VALUE;
	*name = function->name;
	return OK;
}

/* Libraries and kernels are modules and functions by another name. */
API CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options, void **values,
			       unsigned count, CUlibraryOption *library_options, void **library_values,
			       unsigned library_count)
{
	ENTER(INITIALISED, 0);
	if (!code || (count && (!options || !values)) ||
	    (library_count && (!library_options || !library_values)))
		return E_VALUE;
	return load((CUmodule *)library);
}

API CUresult cuLibraryUnload(CUlibrary library)
{
	ENTER(INITIALISED, 0);
	return library ? OK : E_HANDLE;
}

API CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	ENTER(INITIALISED, 0);
	return function((CUmodule)library, name, (CUfunction *)kernel);
}

API CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
	ENTER(INITIALISED, 0);
	*module = (CUmodule)library;
	return library ? OK : E_HANDLE;
}

API CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	ENTER(CONTEXT, 0);
	*function = (CUfunction)kernel;
	return kernel ? OK : E_HANDLE;
}

API CUresult cuKernelGetAttribute(int *value, CUfunction_attribute which, CUkernel kernel, CUdevice device)
{
	ENTER(INITIALISED, 0);
	if (device_of(device) < 0)
		return E_DEVICE;
	return (CUresult)function_attribute((CUfunction)kernel, device_of(device), (int)which, value);
}

API CUresult cuKernelSetAttribute(CUfunction_attribute which, int value, CUkernel kernel, CUdevice device)
{
	ENTER(INITIALISED, 0);
	if (device_of(device) < 0 || !kernel)
		return kernel ? E_DEVICE : E_HANDLE;
	if ((int)which == 8)
		((CUfunction)kernel)->dynamic_shared = value;
	return OK;
}
