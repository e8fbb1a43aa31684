/* SPDX-License-Identifier: Apache-2.0 */
/* cuGetProcAddress: by base name, version and flags. The newest form that the version knows wins. */
#include "cuda_local.h"
#include "cuda_table.h"

#include <string.h>

enum { FOUND = 0, NO_SYMBOL = 1, TOO_OLD = 2 };

static void (*search(const char *name, int version, cuuint64_t flags, int *status))(void)
{
	const struct name_row *row, *best = 0;

	*status = NO_SYMBOL;
	for (row = name_rows; row->base; row++) {
		if (strcmp(row->base, name))
			continue;
		if (row->since <= version && (!best || row->since > best->since))
			best = row;
		*status = best ? FOUND : TOO_OLD;
	}
	if (!best)
		return 0;
	return (flags & 2) && best->per_thread ? best->per_thread : best->symbol;
}

/* From 12.0 on an unknown name is no error of the call: the status says it. */
API CUresult cuGetProcAddress_v2(const char *name, void **out, int version, cuuint64_t flags,
				 CUdriverProcAddressQueryResult *status)
{
	void (*found)(void);
	int state;

	ENTER(NOTHING, 0);
	if (!name || !out || flags > 3)
		return E_VALUE;
	found = search(name, version, flags, &state);
	memcpy(out, &found, sizeof(found));
	if (status)
		*status = (CUdriverProcAddressQueryResult)state;
	return found || status ? OK : E_NOTFOUND;
}

API CUresult cuGetProcAddress(const char *name, void **out, int version, cuuint64_t flags)
{
	void (*found)(void);
	int state;

	ENTER(NOTHING, 0);
	if (!name || !out || flags > 3)
		return E_VALUE;
	found = search(name, version, flags, &state);
	memcpy(out, &found, sizeof(found));
	return found ? OK : E_NOTFOUND;
}

API CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	ENTER(NOTHING, 0);
	if (!table || !id)
		return E_VALUE;
	*table = memcmp(id->bytes, STREAM_TABLE_ID, 16) ? 0 : &stream_table;
	return *table ? OK : E_NOTFOUND;
}
