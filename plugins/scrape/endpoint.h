/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of a target for one kind of profile, and how the answer is labelled: from the
 * target's labels and the settings, as Alloy does it. Nothing of it is kept, since thousands of
 * targets have thousands of URLs; it is made again for each scrape.
 *
 * Source: Alloy, internal/component/pyroscope/scrape, target.go. */
#pragma once

#include "abi/target-list.h"
#include "base/buf.h"
#include "base/sha256.h"
#include "scrape/settings.h"

#define ENDPOINT_MAX_LABELS 128

struct endpoint {
	struct buf url;
	struct arena arena;
	/* Sorted by name: what a profile is pushed with, `__name__` among it. Borrowed from the
	 * target, the settings and the arena. */
	struct target_label labels[ENDPOINT_MAX_LABELS];
	uint32_t n_labels;
};

/* 0, -ENOMEM, or -EINVAL and why the target cannot be asked. endpoint_fini must follow in any case.
 * O(labels). */
int endpoint_init(struct endpoint *ret, const struct settings *s, const struct target_row *row,
		  const struct kind *kind, struct error *err);
void endpoint_fini(struct endpoint *e);

/* Digest of URL and labels; the same in every process. Targets choose their labels, so it is one
 * that nobody can have two of: then labels need not be kept to be compared. */
void endpoint_identity(const struct endpoint *e, unsigned char ret[SHA256_BYTES]);

/* An identity's first bytes, for tables and for a place in time. */
static inline uint64_t endpoint_hash(const unsigned char identity[SHA256_BYTES])
{
	uint64_t hash;

	memcpy(&hash, identity, sizeof(hash));
	return hash;
}

/* Which labels of a target matter here: all but metadata that no rule has copied. */
bool endpoint_keeps(struct str name);
