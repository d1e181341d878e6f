/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of unwind tables that no kernel program reads: the process's own. */
#pragma once

#include "ebpf/unwind-store/unwind-store.h"

struct table_memory {
	struct unwind_common *common;
	void *slabs[UNWIND_SLABS_MAX]; /* NULL: none */
	struct unwind_kernel kernel;   /* for unwind_new */
};

/* 0 or -ENOMEM. *m must stay where it is. Pages that nobody has written take no memory. */
int table_memory_init(struct table_memory *m);
/* The store is gone by then. Nothing happens to what is zero. */
void table_memory_fini(struct table_memory *m);
