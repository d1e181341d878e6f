/* SPDX-License-Identifier: Apache-2.0 */
/* A run's profile: the batches of the whole run merged by stack in bounded memory, and written to
 * every path at its end. The suffix of a path says what is written: .pb.gz (pprof), .folded, .html
 * (flame graph). The pictures are drawn from the pprof bytes themselves, so that all files of a run
 * agree. */
#pragma once

#include "abi/batch-view.h"
#include "base/error.h"

#define RECORDING_SUFFIXES ".pb.gz, .folded, .html"

/* Beyond this much in wire form nothing new is taken. */
#define RECORDING_MAX_BYTES ((size_t)64 << 20)

/* Whether a path's suffix is known. */
bool recording_knows(struct str path);

struct recording;

struct recording_options {
	struct str title;
	const struct str *groups; /* labels that pictures are grouped by, outermost first */
	size_t n_groups;
	size_t max_bytes;
	bool addresses; /* frames without a name are written as addresses: EXPORT_ADDRESSES */
};

/* Paths and options are copied. NULL when memory is short. */
struct recording *recording_new(const struct str *paths, size_t n,
				const struct recording_options *options);
void recording_free(struct recording *r);

/* Merges a batch. *ret_full and *ret_lost are the samples that were left out, because max_bytes is
 * reached, or because memory was short, their profile type differs from that of the run's first
 * batch, or they are profiles as somebody else has encoded them. */
void recording_add(struct recording *r, const struct andiron_batch *batch, uint64_t *ret_full,
		   uint64_t *ret_lost);

/* Samples taken in so far; and encoded profiles left out. */
uint64_t recording_samples(const struct recording *r);
uint64_t recording_n_encoded(const struct recording *r);

/* Writes every path, each atomically. It goes on after a path that fails; the error is the first
 * one, and names path and cause. 0 or a negative errno (-EINVAL for an unknown suffix). The
 * recording stays and can go on. */
int recording_write(struct recording *r, struct error *err);
