/* SPDX-License-Identifier: Apache-2.0 */
/* What a Secret or a ConfigMap holds, from JSON: `data`, whose values a Secret has in base64.
 * Source: Kubernetes, core/v1. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <andiron/value.h>

/* The entries as a MAP of STRINGs in the arena, in the order of their keys; *ret_left_out counts
 * those that are no UTF-8 text. 0, -ENOMEM, or -EINVAL and a text for what is no such object. */
int entries_read(struct arena *arena, struct str json, bool secret, struct andiron_value *ret,
		 size_t *ret_left_out, struct error *err);
