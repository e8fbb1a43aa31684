/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses behind cuGetProcAddress. Apart from cuda_abi.h, since here they have no types. */
#include "cuda_table.h"

#include "cuda_names.h"

#define DECLARE_TWO(base, since, symbol, thread) extern void symbol(void), thread(void);
#define DECLARE_ONE(base, since, symbol) extern void symbol(void);
NAMES(DECLARE_TWO, DECLARE_ONE)

#define ROW_TWO(base, since, symbol, thread) { #base, since, symbol, thread },
#define ROW_ONE(base, since, symbol) { #base, since, symbol, 0 },
const struct name_row name_rows[] = { NAMES(ROW_TWO, ROW_ONE) { 0, 0, 0, 0 } };
