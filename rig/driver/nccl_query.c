/* SPDX-License-Identifier: Apache-2.0 */
/* What a communicator says of itself. */
#include "nccl_local.h"

API ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *out)
{
	ENTER(comm);
	if (!comm || !out)
		return C_ARGUMENT;
	*out = (ncclResult_t)setting_whole(comm->device, "nccl.async_error", (uint64_t)comm_error(comm));
	return C_OK;
}

API ncclResult_t ncclCommCount(const ncclComm_t comm, int *out)
{
	ENTER(comm);
	if (!comm || !out)
		return C_ARGUMENT;
	*out = comm->ranks;
	return C_OK;
}

API ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *out)
{
	ENTER(comm);
	if (!comm || !out)
		return C_ARGUMENT;
	*out = comm->rank;
	return C_OK;
}

API ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *out)
{
	ENTER(comm);
	if (!comm || !out)
		return C_ARGUMENT;
	*out = comm->device;
	return C_OK;
}

static APART const char *text_of(int code)
{
	static const char *const TEXTS[] = {
		"no error", "unhandled cuda error", "unhandled system error", "internal error",
		"invalid argument", "invalid usage", "remote process exited or there was a network error",
		"NCCL operation in progress", "timeout",
	};

	return code >= 0 && code < 9 ? TEXTS[code] : "unknown result code";
}

API const char *ncclGetErrorString(ncclResult_t code)
{
	return text_of((int)code);
}

API const char *ncclGetLastError(ncclComm_t comm)
{
	HELD(held, comm);
	return held && __atomic_load_n(&held->missed_at, __ATOMIC_ACQUIRE) ?
		       "a rank of this communicator has gone" : "";
}
