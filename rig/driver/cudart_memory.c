/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the runtime: the driver's, as pointers. */
#include "cudart_local.h"

#define AT(pointer) ((device_pointer)(uintptr_t)(pointer))

API cudaError_t cudaMalloc(void **out, size_t size)
{
	device_pointer at = 0;
	int code;

	READY();
	if (!out)
		return done(1);
	code = size ? driver.alloc(&at, size) : 0;
	*out = (void *)(uintptr_t)at;
	return done(code);
}

API cudaError_t cudaFree(void *at)
{
	READY();
	return done(at ? driver.release(AT(at)) : 0);
}

API cudaError_t cudaMallocAsync(void **out, size_t size, cudaStream_t stream)
{
	device_pointer at = 0;
	int code;

	READY();
	code = driver.alloc_async(&at, size, stream);
	*out = (void *)(uintptr_t)at;
	return done(code);
}

API cudaError_t cudaFreeAsync(void *at, cudaStream_t stream)
{
	READY();
	return done(driver.free_async(AT(at), stream));
}

API cudaError_t cudaMallocManaged(void **out, size_t size, unsigned flags)
{
	device_pointer at = 0;
	int code;

	READY();
	code = driver.managed(&at, size, flags);
	*out = (void *)(uintptr_t)at;
	return done(code);
}

API cudaError_t cudaMallocHost(void **out, size_t size)
{
	READY();
	return done(driver.host_alloc(out, size, 0));
}

API cudaError_t cudaHostAlloc(void **out, size_t size, unsigned flags)
{
	READY();
	return done(driver.host_alloc(out, size, flags));
}

API cudaError_t cudaFreeHost(void *at)
{
	READY();
	return done(driver.host_free(at));
}

API cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
	READY();
	return done(driver.info(free_bytes, total));
}

API cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind)
{
	READY();
	return done((unsigned)kind > 4 ? 21 : driver.copy(AT(to), AT(from), size));
}

API cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
				cudaStream_t stream)
{
	READY();
	return done((unsigned)kind > 4 ? 21 : driver.copy_async(AT(to), AT(from), size, stream));
}

API cudaError_t cudaMemset(void *at, int value, size_t count)
{
	READY();
	return done(driver.fill(AT(at), (unsigned char)value, count));
}

API cudaError_t cudaMemsetAsync(void *at, int value, size_t count, cudaStream_t stream)
{
	READY();
	return done(driver.fill_async(AT(at), (unsigned char)value, count, stream));
}
