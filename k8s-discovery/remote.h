/* SPDX-License-Identifier: Apache-2.0 */
/* remote.kubernetes.secret and remote.kubernetes.configmap: the entries of one object as a value,
 * asked for at an interval. A Secret's entries are secret. An entry that is not UTF-8 text is left
 * out, since values are text; the log says so. Verbs of a component (andiron/component.h). */
#pragma once

#include "client/polling.h"

int32_t remote_check(const struct andiron_host *host, const struct andiron_value *args,
		     struct andiron_report *report);
int32_t remote_create_secret(const struct andiron_host *host, uint64_t instance,
			     const struct andiron_value *args, void **ret_self,
			     struct andiron_error *ret_err);
int32_t remote_create_configmap(const struct andiron_host *host, uint64_t instance,
				const struct andiron_value *args, void **ret_self,
				struct andiron_error *ret_err);
int32_t remote_start(void *self, struct andiron_error *err);
void remote_stop(void *self);
void remote_free(void *self);

void remote_metrics(void *self, const struct andiron_metric_sink *sink);
