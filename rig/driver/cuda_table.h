/* SPDX-License-Identifier: Apache-2.0 */
/* One form of one driver function, see cuda_names.h. */
#ifndef CUDA_TABLE_H
#define CUDA_TABLE_H

struct name_row {
	const char *base;
	int since;
	void (*symbol)(void), (*per_thread)(void);
};

extern const struct name_row name_rows[];	/* ends with a row without a name */
#endif
