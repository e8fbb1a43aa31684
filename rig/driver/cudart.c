/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's calls that engines make, each one driver call and the bookkeeping of the last error. */
#define _GNU_SOURCE
#include "cudart_local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __thread int last, device;
static void *module;

cudaError_t done(int code)
{
	/* 600 (not ready) is an answer and no error; the rest of the numbers agree with the driver's. */
	if (code && code != 600)
		last = code;
	return (cudaError_t)code;
}

static int bind(int ordinal)
{
	void *context = 0;
	int code = driver.retain(&context, ordinal);

	return code ? code : driver.set(context);
}

int ready(void)
{
	void *context = 0;
	int code = found();

	if (!code)
		code = driver.current(&context);
	if (!code && !context) /* one that is there is used, also when it was reset behind our back */
		code = bind(device);
	if (code)
		done(code);
	return code;
}


API cudaError_t cudaGetLastError(void)
{
	int code = last;

	last = 0;
	return (cudaError_t)code;
}

API cudaError_t cudaPeekAtLastError(void)
{
	return (cudaError_t)last;
}

API cudaError_t cudaGetDeviceCount(int *count)
{
	return done(found() ? found() : driver.count(count));
}

API cudaError_t cudaSetDevice(int ordinal)
{
	int count = 0;

	if (found() || driver.count(&count) || ordinal < 0 || ordinal >= count)
		return done(found() ? found() : 101);
	device = ordinal;
	return done(bind(ordinal));
}

API cudaError_t cudaGetDevice(int *ordinal)
{
	if (!ordinal || found())
		return done(ordinal ? found() : 1);
	*ordinal = device;
	return (cudaError_t)0;
}

API cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr which, int ordinal)
{
	return done(found() ? found() : driver.attribute(value, (int)which, ordinal));
}

API cudaError_t cudaDeviceReset(void)
{
	if (found() || driver.reset(device))
		return done(found() ? found() : 101);
	return done(driver.set(0)); /* the next call begins anew */
}

API cudaError_t cudaDeviceSynchronize(void)
{
	READY();
	return done(driver.synchronize());
}

API cudaError_t cudaDriverGetVersion(int *version)
{
	return done(found() ? found() : driver.version(version));
}

API cudaError_t cudaRuntimeGetVersion(int *version)
{
	if (!version)
		return done(1);
	*version = 13000;
	return (cudaError_t)0;
}

API const char *cudaGetErrorName(cudaError_t error)
{
	const char *text = 0;

	if ((int)error == 35)
		return "cudaErrorInsufficientDriver";
	if (found() == 35 || driver.error_name((int)error, &text) || !text)
		return "cudaErrorUnknown";
	return text;
}

API const char *cudaGetErrorString(cudaError_t error)
{
	const char *text = 0;

	if ((int)error == 35)
		return "CUDA driver version is insufficient for CUDA runtime version";
	if (found() == 35 || driver.error_text((int)error, &text) || !text)
		return "unrecognized error code";
	return text;
}

/* A kernel's handle is an address in the program; its name here is that address, or what was registered. */
int kernel_of(const void *handle, void **function)
{
	static __thread const void *known;
	static __thread void *its;
	char name[32];
	int code = 0;

	if (handle != known || !its) {
		if (!module)
			code = driver.load(&module, "");
		snprintf(name, sizeof(name), "kernel_%lx", (unsigned long)(uintptr_t)handle);
		if (!code)
			code = driver.function(&its, module, name);
		known = code ? 0 : handle;
	}
	*function = its;
	return code;
}

static cudaError_t launch(const void *handle, dim3 grid, dim3 block, void **args, size_t shared, void *stream)
{
	void *function = 0;
	int code;

	READY();
	code = kernel_of(handle, &function);
	if (!code)
		code = driver.launch(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
				     (unsigned)shared, stream, args, 0);
	return done(code);
}

API cudaError_t cudaLaunchKernel(const void *handle, dim3 grid, dim3 block, void **args, size_t shared,
				 cudaStream_t stream)
{
	return launch(handle, grid, block, args, shared, stream);
}

API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *handle, void **args)
{
	if (!config)
		return done(1);
	return launch(handle, config->gridDim, config->blockDim, args, config->dynamicSmemBytes,
		      config->stream);
}

/* What compiled launches call since 12.1: the handle is a kernel, not an address of the program. */
API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
				   cudaStream_t stream)
{
	return launch((const void *)kernel, grid, block, args, shared, stream);
}
