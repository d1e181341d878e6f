/* SPDX-License-Identifier: Apache-2.0 */
/* discovery.kubelet: the pods of one node, as its kubelet lists them, asked for at an interval. An
 * answer is taken in when it is whole: one that fails in its middle changes nothing, and before the
 * first one nothing is published. One request runs at a time. Targets are those of
 * discovery.kubernetes's role pod.
 *
 * Source: Alloy, internal/component/discovery/kubelet. */
#pragma once

#include "abi/log.h"
#include "abi/metrics.h"

/* Verbs of a component (andiron/component.h). */
int32_t kubelet_check(const struct andiron_host *host, const struct andiron_value *args,
		      struct andiron_report *report);
int32_t kubelet_create(const struct andiron_host *host, uint64_t instance,
		       const struct andiron_value *args, void **ret_self,
		       struct andiron_error *ret_err);
int32_t kubelet_start(void *self, struct andiron_error *err);
/* It asks at once, by the new arguments; targets stay until the answer. */
int32_t kubelet_update(void *self, const struct andiron_value *args, struct andiron_error *ret_err);
void kubelet_stop(void *self);
void kubelet_free(void *self);
/* All targets that are published are published again. */
void kubelet_resend(void *self, const char *export_name);
void kubelet_metrics(void *self, const struct andiron_metric_sink *sink);
