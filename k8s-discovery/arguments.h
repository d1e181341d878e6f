/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of discovery.kubernetes, beyond their types. */
#pragma once

#include <andiron/host.h>

/* Reports every finding by the rules of Prometheus's Kubernetes discovery, which are Alloy's: the
 * verb `validate` (andiron/component.h). */
int32_t arguments_check(const struct andiron_host *host, const struct andiron_value *args,
			struct andiron_report *report);

/* The findings about how the server is reached: api_server, kubeconfig_file, and the HTTP client's
 * arguments. */
void arguments_check_server(const struct andiron_host *host, const struct andiron_value *args,
			    struct andiron_report *report);
