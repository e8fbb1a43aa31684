/* SPDX-License-Identifier: Apache-2.0 */
/* A library with a name of NCCL's in it: tells that its own function was called, not another's. */
int ncclAllReduce(void)
{
	return NUMBER;
}
