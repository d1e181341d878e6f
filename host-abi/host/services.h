/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of services that components are given, and the two opaque types
 * of the ABI that belong to the host: the error (instance.h) and the report.
 */
#ifndef HOST_SERVICES_H
#define HOST_SERVICES_H

#include "base/str.h"

#include <andiron/host.h>

/* Where the findings of `validate` go; whoever calls validate fills it in. */
struct andiron_report {
	void *context;
	void (*add)(void *context, uint32_t severity, const struct andiron_value *at,
		    struct str text);
};

/* Lives as long as the process. An unknown instance is refused or ignored. */
const struct andiron_host *services_table(void);

#endif
