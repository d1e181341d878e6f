/* SPDX-License-Identifier: Apache-2.0 */
/* remote.http: what a URL answers, as a value. Verbs of a component (andiron/component.h). */
#pragma once

#include "client/polling.h"

int32_t remote_create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret_self,
		      struct andiron_error *ret_err);
int32_t remote_start(void *self, struct andiron_error *err);
void remote_stop(void *self);
void remote_free(void *self);

void remote_metrics(void *self, const struct andiron_metric_sink *sink);
