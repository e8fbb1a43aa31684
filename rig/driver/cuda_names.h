/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Base name, the CUDA version from which on this form answers to it, the symbol, and the form for the
 * per-thread default stream where there is one. cuGetProcAddress searches this, the tests check it.
 */
#define NAMES(X, Y) \
	Y(cuCtxCreate, 3020, cuCtxCreate_v2) \
	Y(cuCtxCreate, 11040, cuCtxCreate_v3) \
	Y(cuCtxCreate, 12050, cuCtxCreate_v4) \
	Y(cuCtxDestroy, 4000, cuCtxDestroy_v2) \
	Y(cuCtxEnablePeerAccess, 4000, cuCtxEnablePeerAccess) \
	Y(cuCtxGetApiVersion, 3020, cuCtxGetApiVersion) \
	Y(cuCtxGetCurrent, 4000, cuCtxGetCurrent) \
	Y(cuCtxGetDevice, 2000, cuCtxGetDevice) \
	Y(cuCtxGetFlags, 7000, cuCtxGetFlags) \
	Y(cuCtxGetLimit, 3010, cuCtxGetLimit) \
	Y(cuCtxGetStreamPriorityRange, 5050, cuCtxGetStreamPriorityRange) \
	Y(cuCtxPopCurrent, 4000, cuCtxPopCurrent_v2) \
	Y(cuCtxPushCurrent, 4000, cuCtxPushCurrent_v2) \
	Y(cuCtxSetCurrent, 4000, cuCtxSetCurrent) \
	Y(cuCtxSetLimit, 3010, cuCtxSetLimit) \
	Y(cuCtxSynchronize, 2000, cuCtxSynchronize) \
	Y(cuCtxSynchronize, 13000, cuCtxSynchronize_v2) \
	Y(cuDeviceCanAccessPeer, 4000, cuDeviceCanAccessPeer) \
	Y(cuDeviceComputeCapability, 2000, cuDeviceComputeCapability) \
	Y(cuDeviceGet, 2000, cuDeviceGet) \
	Y(cuDeviceGetAttribute, 2000, cuDeviceGetAttribute) \
	Y(cuDeviceGetByPCIBusId, 4010, cuDeviceGetByPCIBusId) \
	Y(cuDeviceGetCount, 2000, cuDeviceGetCount) \
	Y(cuDeviceGetDefaultMemPool, 11020, cuDeviceGetDefaultMemPool) \
	Y(cuDeviceGetMemPool, 11020, cuDeviceGetMemPool) \
	Y(cuDeviceGetName, 2000, cuDeviceGetName) \
	Y(cuDeviceGetPCIBusId, 4010, cuDeviceGetPCIBusId) \
	Y(cuDeviceGetUuid, 9020, cuDeviceGetUuid) \
	Y(cuDeviceGetUuid, 11040, cuDeviceGetUuid_v2) \
	Y(cuDevicePrimaryCtxGetState, 7000, cuDevicePrimaryCtxGetState) \
	Y(cuDevicePrimaryCtxRelease, 11000, cuDevicePrimaryCtxRelease_v2) \
	Y(cuDevicePrimaryCtxReset, 11000, cuDevicePrimaryCtxReset_v2) \
	Y(cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain) \
	Y(cuDevicePrimaryCtxSetFlags, 11000, cuDevicePrimaryCtxSetFlags_v2) \
	Y(cuDeviceSetMemPool, 11020, cuDeviceSetMemPool) \
	Y(cuDeviceTotalMem, 3020, cuDeviceTotalMem_v2) \
	Y(cuDriverGetVersion, 2020, cuDriverGetVersion) \
	Y(cuEventCreate, 2000, cuEventCreate) \
	Y(cuEventDestroy, 4000, cuEventDestroy_v2) \
	Y(cuEventElapsedTime, 2000, cuEventElapsedTime) \
	Y(cuEventElapsedTime, 12080, cuEventElapsedTime_v2) \
	Y(cuEventQuery, 2000, cuEventQuery) \
	X(cuEventRecord, 2000, cuEventRecord, cuEventRecord_ptsz) \
	X(cuEventRecordWithFlags, 11010, cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz) \
	Y(cuEventSynchronize, 2000, cuEventSynchronize) \
	Y(cuFuncGetAttribute, 2020, cuFuncGetAttribute) \
	Y(cuFuncGetName, 12030, cuFuncGetName) \
	Y(cuFuncSetAttribute, 9000, cuFuncSetAttribute) \
	Y(cuFuncSetCacheConfig, 3000, cuFuncSetCacheConfig) \
	Y(cuGetErrorName, 6000, cuGetErrorName) \
	Y(cuGetErrorString, 6000, cuGetErrorString) \
	Y(cuGetExportTable, 3000, cuGetExportTable) \
	Y(cuGetProcAddress, 11030, cuGetProcAddress) \
	Y(cuGetProcAddress, 12000, cuGetProcAddress_v2) \
	Y(cuGraphAddKernelNode, 10000, cuGraphAddKernelNode) \
	Y(cuGraphAddKernelNode, 12000, cuGraphAddKernelNode_v2) \
	Y(cuGraphCreate, 10000, cuGraphCreate) \
	Y(cuGraphDestroy, 10000, cuGraphDestroy) \
	Y(cuGraphExecDestroy, 10000, cuGraphExecDestroy) \
	Y(cuGraphInstantiateWithFlags, 11040, cuGraphInstantiateWithFlags) \
	Y(cuGraphInstantiate, 11000, cuGraphInstantiate_v2) \
	X(cuGraphLaunch, 10000, cuGraphLaunch, cuGraphLaunch_ptsz) \
	X(cuGraphUpload, 11010, cuGraphUpload, cuGraphUpload_ptsz) \
	Y(cuInit, 2000, cuInit) \
	Y(cuKernelGetAttribute, 12000, cuKernelGetAttribute) \
	Y(cuKernelGetFunction, 12000, cuKernelGetFunction) \
	Y(cuKernelSetAttribute, 12000, cuKernelSetAttribute) \
	X(cuLaunchCooperativeKernel, 9000, cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz) \
	X(cuLaunchHostFunc, 10000, cuLaunchHostFunc, cuLaunchHostFunc_ptsz) \
	X(cuLaunchKernel, 4000, cuLaunchKernel, cuLaunchKernel_ptsz) \
	X(cuLaunchKernelEx, 11060, cuLaunchKernelEx, cuLaunchKernelEx_ptsz) \
	Y(cuLibraryGetKernel, 12000, cuLibraryGetKernel) \
	Y(cuLibraryGetModule, 12000, cuLibraryGetModule) \
	Y(cuLibraryLoadData, 12000, cuLibraryLoadData) \
	Y(cuLibraryUnload, 12000, cuLibraryUnload) \
	Y(cuMemAddressFree, 10020, cuMemAddressFree) \
	Y(cuMemAddressReserve, 10020, cuMemAddressReserve) \
	X(cuMemAllocAsync, 11020, cuMemAllocAsync, cuMemAllocAsync_ptsz) \
	X(cuMemAllocFromPoolAsync, 11020, cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz) \
	Y(cuMemAllocHost, 3020, cuMemAllocHost_v2) \
	Y(cuMemAllocManaged, 6000, cuMemAllocManaged) \
	Y(cuMemAllocPitch, 3020, cuMemAllocPitch_v2) \
	Y(cuMemAlloc, 3020, cuMemAlloc_v2) \
	Y(cuMemCreate, 10020, cuMemCreate) \
	X(cuMemFreeAsync, 11020, cuMemFreeAsync, cuMemFreeAsync_ptsz) \
	Y(cuMemFreeHost, 2000, cuMemFreeHost) \
	Y(cuMemFree, 3020, cuMemFree_v2) \
	Y(cuMemGetAddressRange, 3020, cuMemGetAddressRange_v2) \
	Y(cuMemGetAllocationGranularity, 10020, cuMemGetAllocationGranularity) \
	Y(cuMemGetInfo, 3020, cuMemGetInfo_v2) \
	Y(cuMemHostAlloc, 2020, cuMemHostAlloc) \
	Y(cuMemHostGetDevicePointer, 3020, cuMemHostGetDevicePointer_v2) \
	Y(cuMemHostRegister, 6050, cuMemHostRegister_v2) \
	Y(cuMemHostUnregister, 4000, cuMemHostUnregister) \
	Y(cuMemMap, 10020, cuMemMap) \
	Y(cuMemPoolCreate, 11020, cuMemPoolCreate) \
	Y(cuMemPoolDestroy, 11020, cuMemPoolDestroy) \
	Y(cuMemPoolGetAttribute, 11020, cuMemPoolGetAttribute) \
	Y(cuMemPoolSetAttribute, 11020, cuMemPoolSetAttribute) \
	Y(cuMemPoolTrimTo, 11020, cuMemPoolTrimTo) \
	Y(cuMemRelease, 10020, cuMemRelease) \
	Y(cuMemSetAccess, 10020, cuMemSetAccess) \
	Y(cuMemUnmap, 10020, cuMemUnmap) \
	X(cuMemcpy, 4000, cuMemcpy, cuMemcpy_ptds) \
	X(cuMemcpyAsync, 4000, cuMemcpyAsync, cuMemcpyAsync_ptsz) \
	X(cuMemcpyDtoDAsync, 3020, cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz) \
	X(cuMemcpyDtoD, 3020, cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds) \
	X(cuMemcpyDtoHAsync, 3020, cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz) \
	X(cuMemcpyDtoH, 3020, cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds) \
	X(cuMemcpyHtoDAsync, 3020, cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz) \
	X(cuMemcpyHtoD, 3020, cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds) \
	X(cuMemcpyPeerAsync, 4000, cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz) \
	X(cuMemsetD32Async, 3020, cuMemsetD32Async, cuMemsetD32Async_ptsz) \
	X(cuMemsetD32, 3020, cuMemsetD32_v2, cuMemsetD32_v2_ptds) \
	X(cuMemsetD8Async, 3020, cuMemsetD8Async, cuMemsetD8Async_ptsz) \
	X(cuMemsetD8, 3020, cuMemsetD8_v2, cuMemsetD8_v2_ptds) \
	Y(cuModuleGetFunction, 2000, cuModuleGetFunction) \
	Y(cuModuleGetGlobal, 3020, cuModuleGetGlobal_v2) \
	Y(cuModuleLoad, 2000, cuModuleLoad) \
	Y(cuModuleLoadData, 2000, cuModuleLoadData) \
	Y(cuModuleLoadDataEx, 2010, cuModuleLoadDataEx) \
	Y(cuModuleLoadFatBinary, 2000, cuModuleLoadFatBinary) \
	Y(cuModuleUnload, 2000, cuModuleUnload) \
	Y(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, cuOccupancyMaxActiveBlocksPerMultiprocessor) \
	Y(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) \
	Y(cuPointerGetAttribute, 4000, cuPointerGetAttribute) \
	Y(cuProfilerStart, 4000, cuProfilerStart) \
	Y(cuProfilerStop, 4000, cuProfilerStop) \
	X(cuStreamBeginCapture, 10010, cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz) \
	Y(cuStreamCreate, 2000, cuStreamCreate) \
	Y(cuStreamCreateWithPriority, 5050, cuStreamCreateWithPriority) \
	Y(cuStreamDestroy, 4000, cuStreamDestroy_v2) \
	X(cuStreamEndCapture, 10000, cuStreamEndCapture, cuStreamEndCapture_ptsz) \
	X(cuStreamGetCtx, 9020, cuStreamGetCtx, cuStreamGetCtx_ptsz) \
	X(cuStreamGetFlags, 5050, cuStreamGetFlags, cuStreamGetFlags_ptsz) \
	X(cuStreamGetPriority, 5050, cuStreamGetPriority, cuStreamGetPriority_ptsz) \
	X(cuStreamIsCapturing, 10000, cuStreamIsCapturing, cuStreamIsCapturing_ptsz) \
	X(cuStreamQuery, 2000, cuStreamQuery, cuStreamQuery_ptsz) \
	X(cuStreamSynchronize, 2000, cuStreamSynchronize, cuStreamSynchronize_ptsz) \
	X(cuStreamWaitEvent, 3020, cuStreamWaitEvent, cuStreamWaitEvent_ptsz) \
	Y(cuThreadExchangeStreamCaptureMode, 10010, cuThreadExchangeStreamCaptureMode)
