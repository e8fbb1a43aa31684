/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libnccl asks of libcuda: a place on a stream that is over when a function says so. Handed out
 * by cuGetExportTable under an id of our own, as the real libraries do between themselves.
 */
#ifndef STREAMS_H
#define STREAMS_H

#include <stdint.h>

#define STREAM_TABLE_ID "modelprobe.strm"	/* 16 bytes with the final 0 */

struct stream_table {
	unsigned long size;
	/* `what`: see spin_what. `done` may be called by any thread that looks at the stream; `release` once, when over. */
	int (*wait)(void *stream, uint64_t what,
		    int (*done)(void *arg, uint64_t now, uint64_t *finish),
		    void (*release)(void *arg), void *arg);
	/* When a piece of work put on the stream now would begin: at *at, or *after ns behind a wait. */
	int (*place)(void *stream, uint64_t *at, uint64_t *after);
	int (*device)(void *stream);	/* index on the machine; -1 without a context */
};
#endif
