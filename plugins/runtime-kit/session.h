/* SPDX-License-Identifier: Apache-2.0 */
/* One sampler's use of a runtime: the binaries, processes and names that it has come across. The
 * functions are those of struct andiron_runtime (andiron/runtime.h), and each plugin of a runtime
 * has them; `self` is its struct runtime_service (service.h), which outlives the sessions. */
#pragma once

#include <andiron/runtime.h>

int32_t session_recognizes(void *self, uint64_t object);
int32_t session_open(void *self, const struct andiron_runtime_map *maps, uint64_t n_maps,
		     void **ret);
void session_close(void *session);
int32_t session_claim(void *session, const struct andiron_runtime_process *process,
		      const struct andiron_runtime_mapping *mappings, uint64_t n_mappings,
		      struct andiron_runtime_claim *ret, uint64_t max);
void session_gone(void *session, const struct andiron_runtime_process *process);
int32_t session_resolve(void *session, const struct andiron_runtime_process *process, uint64_t what,
			uint64_t where, struct andiron_runtime_frame *ret, uint64_t max);
int32_t session_describe(void *session, const struct andiron_runtime_process *process, char *ret,
			 uint64_t max);
