/* SPDX-License-Identifier: Apache-2.0 */
/* discovery.http: target groups at a URL, asked for at an interval. An answer that cannot be used
 * leaves the targets as they are. One request runs at a time; its answer is read on a worker. */
#pragma once

#include "abi/log.h"
#include "base/str.h"

#include <andiron/value.h>

/* Verbs of a component (andiron/component.h). */
int32_t url_create(const struct andiron_host *host, uint64_t instance,
		   const struct andiron_value *args, void **ret_self,
		   struct andiron_error *ret_err);
int32_t url_start(void *self, struct andiron_error *err);
void url_stop(void *self);
void url_free(void *self);

struct url_counts {
	uint64_t targets, reads, failures;
};
struct url_counts url_counts(const void *self);

struct client_loop;
/* NULL: not started, or stopped. */
const struct client_loop *url_loop(const void *self);

/* Whether an answer's content type is that of target groups. */
bool url_type_is_json(struct str type);
