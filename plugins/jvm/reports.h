/* SPDX-License-Identifier: Apache-2.0 */
/* What the program reports (jvm-records.h), as entries of the cache of names. A report is not
 * trusted: its texts are a process's. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "jvm/walk/jvm-records.h"
#include "runtime-kit/name-cache.h"

/* The kind of an entry. */
enum {
	REPORT_METHOD,    /* function, file and line table of a method, or a stub's name */
	REPORT_METHOD_19, /* likewise; the table is written as from JDK 19 on */
	REPORT_SITE,
};

/* Keeps a report of n bytes. *ret_id: its id, 0 if it is no report. 0 or a negative errno. */
int report_keep(struct name_cache *cache, const void *report, size_t n, uint64_t *ret_id);

struct report_site {
	uint32_t n, cut;
	uint64_t methods[JVM_INLINED];
	uint16_t bcis[JVM_INLINED];
};

/* The site of an entry of its kind. 0 or -EPROTO. */
int report_site(const struct name *name, struct report_site *ret);
