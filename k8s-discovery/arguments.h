/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is wrong with arguments beyond their types. The rules are those of
 * Prometheus's Kubernetes discovery, which Alloy's component has as its own.
 */
#ifndef K8S_ARGUMENTS_H
#define K8S_ARGUMENTS_H

#include <andiron/host.h>

/* Reports every finding. No side effects. */
void arguments_check(const struct andiron_host *host, const struct andiron_value *args,
		     struct andiron_report *report);

#endif
