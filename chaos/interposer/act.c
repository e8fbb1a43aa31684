/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real loss of a context, from inside the process, which no other process can cause: its primary
 * context reset under it (then 709 or 201), or a kernel of one instruction that ends in an error
 * which sticks (719). Both give the driver's first answer that was not 0, or -2 without the driver.
 */
#include "local.h"

enum { NO_DRIVER = -2, NON_BLOCKING = 1, RELAXED = 2 };

static const char TRAP[] =
	".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry modelprobe_trap()\n{\n\ttrap;\n\tret;\n}\n";

int act_reset(void)
{
	int (*which)(int *) = (int (*)(int *))driver("cuCtxGetDevice");
	int (*reset)(int) = (int (*)(int))driver("cuDevicePrimaryCtxReset_v2");
	int device = -1, code;

	if (!which || !reset)
		return NO_DRIVER;
	code = which(&device);
	return code ? code : reset(device);
}

static int launch(void)
{
	int (*load)(void **, const void *) = (int (*)(void **, const void *))driver("cuModuleLoadData");
	int (*get)(void **, void *, const char *) =
		(int (*)(void **, void *, const char *))driver("cuModuleGetFunction");
	int (*make)(void **, unsigned) = (int (*)(void **, unsigned))driver("cuStreamCreate");
	int (*go)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
		  void **) = (int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
				      void *, void **, void **))driver("cuLaunchKernel");
	void *module = 0, *kernel = 0, *stream = 0;
	int code;

	if (!load || !get || !make || !go)
		return NO_DRIVER;
	code = load(&module, TRAP);
	if (!code)
		code = get(&kernel, module, "modelprobe_trap");
	if (!code)
		code = make(&stream, NON_BLOCKING);
	return code ? code : go(kernel, 1, 1, 1, 1, 1, 1, 0, stream, 0, 0);
}

/* Loading a module spoils a graph that is being captured, unless the thread says that it may. */
int act_trap(void)
{
	int (*exchange)(int *) = (int (*)(int *))driver("cuThreadExchangeStreamCaptureMode");
	int mode = RELAXED, code, exchanged = exchange && !exchange(&mode);

	code = launch();
	if (exchanged)
		exchange(&mode);
	return code;
}
