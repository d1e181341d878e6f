/* SPDX-License-Identifier: Apache-2.0 */
/* What a sampler's session knows: JVM libraries, processes, names. The functions are those of
 * andiron/runtime.h. */
#pragma once

#include <andiron/object.h>
#include <andiron/runtime.h>

/* The objects are the host's and outlive the session. */
int32_t session_recognizes(const struct andiron_objects *objects, void *objects_self,
			   uint64_t object);
int32_t session_new(const struct andiron_objects *objects, void *objects_self,
		    const struct andiron_runtime_map *maps, uint64_t n_maps, void **ret);

void session_close(void *session);
int32_t session_claim(void *session, const struct andiron_runtime_process *process,
		      const struct andiron_runtime_mapping *mappings, uint64_t n,
		      struct andiron_runtime_claim *ret, uint64_t max);
void session_gone(void *session, const struct andiron_runtime_process *process);
int32_t session_resolve(void *session, const struct andiron_runtime_process *process, uint64_t what,
			uint64_t where, struct andiron_runtime_frame *ret, uint64_t max);
int32_t session_describe(void *session, const struct andiron_runtime_process *process, char *ret,
			 uint64_t max);
