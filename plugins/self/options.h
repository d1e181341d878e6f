/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of profile.self, as the sampler's own. */
#pragma once

#include "ebpf/options.h"

extern const struct andiron_options self_options;

/* As ebpf_options_read. */
int self_options_read(struct ebpf_options *o, const struct andiron_value *args);
/* See `validate` of component.h. */
int32_t self_options_validate(const struct andiron_host *host, const struct andiron_value *args,
			      struct andiron_report *report);
