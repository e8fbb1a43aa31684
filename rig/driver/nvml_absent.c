/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library has and does not do. Readings answer NOT_SUPPORTED, changes NO_PERMISSION, unless
 * `fail.NAME` says otherwise. The rest of the API has no symbol, as in an older driver.
 */
#include "nvml_local.h"

#define UNSUPPORTED(X) \
	X(nvmlDeviceClearAccountingPids) \
	X(nvmlDeviceGetAccountingBufferSize) \
	X(nvmlDeviceGetAccountingMode) \
	X(nvmlDeviceGetAccountingPids) \
	X(nvmlDeviceGetAccountingStats) \
	X(nvmlDeviceGetAccountingStats_v2) \
	X(nvmlDeviceGetActiveVgpus) \
	X(nvmlDeviceGetAdaptiveClockInfoStatus) \
	X(nvmlDeviceGetAddressingMode) \
	X(nvmlDeviceGetApplicationsClock) \
	X(nvmlDeviceGetAutoBoostedClocksEnabled) \
	X(nvmlDeviceGetBoardPartNumber) \
	X(nvmlDeviceGetBridgeChipInfo) \
	X(nvmlDeviceGetBusType) \
	X(nvmlDeviceGetC2cModeInfoV) \
	X(nvmlDeviceGetClkMonStatus) \
	X(nvmlDeviceGetConfComputeMemSizeInfo) \
	X(nvmlDeviceGetCpuAffinity) \
	X(nvmlDeviceGetDefaultApplicationsClock) \
	X(nvmlDeviceGetDefaultEccMode) \
	X(nvmlDeviceGetDriverModel) \
	X(nvmlDeviceGetDynamicPstatesInfo) \
	X(nvmlDeviceGetEncoderCapacity) \
	X(nvmlDeviceGetEncoderSessions) \
	X(nvmlDeviceGetEncoderStats) \
	X(nvmlDeviceGetFBCSessions) \
	X(nvmlDeviceGetFBCStats) \
	X(nvmlDeviceGetFanSpeed_v2) \
	X(nvmlDeviceGetGpuFabricInfoV) \
	X(nvmlDeviceGetGpuInstanceRemainingCapacity) \
	X(nvmlDeviceGetGpuOperationMode) \
	X(nvmlDeviceGetGridLicensableFeatures_v4) \
	X(nvmlDeviceGetGspFirmwareMode) \
	X(nvmlDeviceGetHostVgpuMode) \
	X(nvmlDeviceGetInforomConfigurationChecksum) \
	X(nvmlDeviceGetInforomVersion) \
	X(nvmlDeviceGetIrqNum) \
	X(nvmlDeviceGetLastBBXFlushTime) \
	X(nvmlDeviceGetMaxCustomerBoostClock) \
	X(nvmlDeviceGetMemoryAffinity) \
	X(nvmlDeviceGetMinMaxFanSpeed) \
	X(nvmlDeviceGetNvLinkRemoteDeviceType) \
	X(nvmlDeviceGetNvLinkUtilizationControl) \
	X(nvmlDeviceGetNvLinkUtilizationCounter) \
	X(nvmlDeviceGetPerformanceModes) \
	X(nvmlDeviceGetPowerSource) \
	X(nvmlDeviceGetRunningProcessDetailList) \
	X(nvmlDeviceGetSamples) \
	X(nvmlDeviceGetSramEccErrorStatus) \
	X(nvmlDeviceGetSupportedGraphicsClocks) \
	X(nvmlDeviceGetSupportedMemoryClocks) \
	X(nvmlDeviceGetSupportedPerformanceStates) \
	X(nvmlDeviceGetSupportedVgpus) \
	X(nvmlDeviceGetTargetFanSpeed) \
	X(nvmlDeviceGetThermalSettings) \
	X(nvmlDeviceGetTopologyNearestGpus) \
	X(nvmlDeviceGetVirtualizationMode)

#define NOT_PERMITTED(X) \
	X(nvmlComputeInstanceDestroy) \
	X(nvmlDeviceClearEccErrorCounts) \
	X(nvmlDeviceCreateGpuInstance) \
	X(nvmlDeviceRemoveGpu) \
	X(nvmlDeviceResetApplicationsClocks) \
	X(nvmlDeviceResetGpuLockedClocks) \
	X(nvmlDeviceResetMemoryLockedClocks) \
	X(nvmlDeviceSetAccountingMode) \
	X(nvmlDeviceSetApplicationsClocks) \
	X(nvmlDeviceSetComputeMode) \
	X(nvmlDeviceSetEccMode) \
	X(nvmlDeviceSetGpuLockedClocks) \
	X(nvmlDeviceSetMemoryLockedClocks) \
	X(nvmlDeviceSetMigMode) \
	X(nvmlDeviceSetPersistenceMode) \
	X(nvmlDeviceSetPowerManagementLimit) \
	X(nvmlGpuInstanceCreateComputeInstance) \
	X(nvmlGpuInstanceDestroy)

static int refuse(const char *name, nvmlDevice_t device, int code)
{
	int first = device ? nvml_enter(name, device, 0) : nvml_enter_system(name, 1);

	return first ? first : code;
}

#define READING(name) \
API int name(nvmlDevice_t device); \
API int name(nvmlDevice_t device) { return refuse(__func__, device, N_UNSUPPORTED); }
#define CHANGE(name) \
API int name(void); \
API int name(void) { return refuse(__func__, 0, N_PERMISSION); }
UNSUPPORTED(READING)
NOT_PERMITTED(CHANGE)
