/* SPDX-License-Identifier: Apache-2.0 */
/* A session of one sampler: the binaries and processes that it has come across, and a thread that
 * reads functions as soon as walks see them, so that names are there when processes are gone.
 *
 * A thread and not a copy by the BPF program: a line needs a script's source and code's tables,
 * which have no bound that a program could copy.
 *
 * The functions are those of struct andiron_runtime. None of them waits for a process. */
#pragma once

#include <andiron/abi.h>
#include <andiron/runtime.h>

/* `self` is a struct runtime_service (runtime-kit/service.h), which outlives its sessions. */
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
