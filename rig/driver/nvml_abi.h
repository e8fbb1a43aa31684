/* SPDX-License-Identifier: Apache-2.0 */
/* NVML's types as far as its calling convention needs them; see cuda_abi.h for the other mode. */
#ifndef NVML_ABI_H
#define NVML_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef MODELPROBE_AGAINST_HEADERS
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>
#else
typedef int nvmlReturn_t;
typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct nvmlEventSet_st *nvmlEventSet_t;
typedef struct nvmlGpuInstance_st *nvmlGpuInstance_t;
typedef struct nvmlComputeInstance_st *nvmlComputeInstance_t;
typedef struct nvmlGpmSample_st *nvmlGpmSample_t;
typedef unsigned nvmlDeviceArchitecture_t;
typedef int nvmlMemoryErrorType_t, nvmlEccCounterType_t, nvmlMemoryLocation_t, nvmlPerfPolicyType_t,
	nvmlPcieUtilCounter_t, nvmlNvLinkErrorCounter_t, nvmlNvLinkCapability_t, nvmlTemperatureThresholds_t,
	nvmlTemperatureSensors_t, nvmlPageRetirementCause_t, nvmlClockType_t, nvmlClockId_t, nvmlEnableState_t,
	nvmlBrandType_t, nvmlPstates_t, nvmlComputeMode_t, nvmlGpuTopologyLevel_t, nvmlGpuP2PCapsIndex_t,
	nvmlGpuP2PStatus_t, nvmlValueType_t;
typedef struct { unsigned long long total, free, used; } nvmlMemory_t;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } nvmlMemory_v2_t;
typedef struct { unsigned long long bar1Total, bar1Free, bar1Used; } nvmlBAR1Memory_t;
typedef struct { unsigned gpu, memory; } nvmlUtilization_t;
typedef struct {
	char busIdLegacy[16];
	unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
	char busId[32];
} nvmlPciInfo_t;
typedef struct { unsigned pid; unsigned long long usedGpuMemory; } nvmlProcessInfo_v1_t;
typedef struct {
	unsigned pid;
	unsigned long long usedGpuMemory;
	unsigned gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_v2_t, nvmlProcessInfo_t;
typedef struct {
	unsigned pid;
	unsigned long long timeStamp;
	unsigned smUtil, memUtil, encUtil, decUtil;
} nvmlProcessUtilizationSample_t;
typedef struct { unsigned long long referenceTime, violationTime; } nvmlViolationTime_t;
typedef struct { unsigned long long l1Cache, l2Cache, deviceMemory, registerFile; } nvmlEccErrorCounts_t;
typedef struct { unsigned max, high, partial, low, none; } nvmlRowRemapperHistogramValues_t;
typedef union {
	double dVal;
	int siVal;
	unsigned uiVal;
	unsigned long ulVal;
	unsigned long long ullVal;
	signed long long sllVal;
	unsigned short usVal;
} nvmlValue_t;
typedef struct {
	unsigned fieldId, scopeId;
	long long timestamp, latencyUsec;
	nvmlValueType_t valueType;
	nvmlReturn_t nvmlReturn;
	nvmlValue_t value;
} nvmlFieldValue_t;
typedef struct {
	nvmlDevice_t device;
	unsigned long long eventType, eventData;
	unsigned gpuInstanceId, computeInstanceId;
} nvmlEventData_t;
typedef struct { unsigned version; nvmlTemperatureSensors_t sensorType; int temperature; } nvmlTemperature_t;
typedef struct { unsigned version; int marginTemperature; } nvmlMarginTemperature_t;
typedef struct {
	unsigned metricId;
	nvmlReturn_t nvmlReturn;
	double value;
	struct { char *shortName, *longName, *unit; } metricInfo;
} nvmlGpmMetric_t;
typedef struct {
	unsigned version, numMetrics;
	nvmlGpmSample_t sample1, sample2;
	nvmlGpmMetric_t metrics[1];	/* as many as numMetrics says: the header's bound grows */
} nvmlGpmMetricsGet_t;
typedef struct { unsigned version, isSupportedDevice; } nvmlGpmSupport_t;
typedef struct {
	unsigned multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount,
		sharedJpegCount, sharedOfaCount, gpuInstanceSliceCount, computeInstanceSliceCount;
	unsigned long long memorySizeMB;
} nvmlDeviceAttributes_t;
typedef struct { unsigned start, size; } nvmlGpuInstancePlacement_t, nvmlComputeInstancePlacement_t;
typedef struct {
	nvmlDevice_t device;
	unsigned id, profileId;
	nvmlGpuInstancePlacement_t placement;
} nvmlGpuInstanceInfo_t;
typedef struct {
	nvmlDevice_t device;
	nvmlGpuInstance_t gpuInstance;
	unsigned id, profileId;
	nvmlComputeInstancePlacement_t placement;
} nvmlComputeInstanceInfo_t;
typedef struct {
	unsigned id, isP2pSupported, sliceCount, instanceCount, multiprocessorCount, copyEngineCount,
		decoderCount, encoderCount, jpegCount, ofaCount;
	unsigned long long memorySizeMB;
} nvmlGpuInstanceProfileInfo_t;
#endif

_Static_assert(sizeof(nvmlMemory_v2_t) == 40 && sizeof(nvmlPciInfo_t) == 68, "layout");
_Static_assert(sizeof(nvmlProcessInfo_v1_t) == 16 && sizeof(nvmlProcessInfo_v2_t) == 24, "layout");
_Static_assert(sizeof(nvmlFieldValue_t) == 40 && sizeof(nvmlEventData_t) == 32, "layout");
_Static_assert(sizeof(nvmlGpmMetric_t) == 40 && offsetof(nvmlGpmMetricsGet_t, metrics) == 24, "layout");
_Static_assert(sizeof(nvmlDeviceAttributes_t) == 40 && sizeof(nvmlGpuInstanceInfo_t) == 24, "layout");
_Static_assert(sizeof(nvmlComputeInstanceInfo_t) == 32, "layout");
_Static_assert(sizeof(nvmlGpuInstanceProfileInfo_t) == 48, "layout");
_Static_assert(sizeof(nvmlProcessUtilizationSample_t) == 32, "layout");
#endif
