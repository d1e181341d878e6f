/* SPDX-License-Identifier: Apache-2.0 */
/* The programs that report processes of language runtimes as they begin (bpf/launch.bpf.c), loaded
 * beside the sampler: they share its ring and its sets. Without them such a process is reported by
 * its first sample. */
#pragma once

#include "bpfwire/sampler.h"

#include <stdint.h>

struct bpf_object;
struct launches;

/* Loads and attaches them. 0 or a negative errno. Some 10 ms. `hierarchy` as of the sampler. */
int launches_open(const struct bpf_object *sampler, uint32_t hierarchy, struct launches **ret);
void launches_close(struct launches *l);

/* What is sampled from now on (SAMPLER_ALL, …). */
void launches_configure(struct launches *l, uint32_t mode);
/* Reports processes that execute the program that this one has, or had, with that generation, from
 * now on; of one that has executed another since, none: a child of an interpreter that starts a
 * command has been the interpreter. For LAUNCH_FILES programs, those executed last; others are
 * reported by their first sample. Some µs. */
void launches_watch(struct launches *l, const struct sampler_process_key *process,
		    uint64_t generation);

/* Instructions that the verifier has walked. */
uint64_t launches_verified(const struct launches *l);
