/* SPDX-License-Identifier: Apache-2.0 */
/* The options of discovery.kubernetes (options.c), and what is wrong beyond types (arguments.c). */
#pragma once

#include <andiron/host.h>
#include <andiron/option.h>

extern const struct andiron_options kubernetes_options;

/* Reports every finding by the rules of Prometheus's Kubernetes discovery, which are Alloy's. */
void arguments_check(const struct andiron_host *host, const struct andiron_value *args,
		     struct andiron_report *report);
