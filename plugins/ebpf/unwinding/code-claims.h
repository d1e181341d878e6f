/* SPDX-License-Identifier: Apache-2.0 */
/* Code that language runtimes claim (andiron/runtime.h). A claim belongs to a file, not to a
 * process: the store keeps it by file as it does tables, and learns only of changes, so that a
 * hundred processes of one interpreter cost one change of mapping tables. Files are retained, so
 * that the next process of a program needs no new claim; there are at most CODE_CLAIMS_FILES. */
#pragma once

#include "ebpf/processes/maps.h"
#include "ebpf/unwind-store/unwind-store.h"

#include <andiron/runtime.h>

#define CODE_CLAIMS_FILES 1024u

/* Ascending, and apart from each other. */
struct claims {
	VEC(struct code_claim) list;
};

/* What the runtime in a slot claims. */
struct claim_answer {
	const struct andiron_runtime_claim *p;
	uint32_t n;
	uint32_t slot;
};

/* Inserts what is claimed of one object, or, with 0, of the process's addresses. False: some of it
 * is no range, overlaps what is claimed, or found no room. */
bool claims_insert(struct claims *to, const struct claim_answer *answer, uint64_t object);

struct claimed_file {
	struct mapped_file *file; /* retained */
	VEC(struct code_claim) list;
};

struct code_claims {
	VEC(struct claimed_file) files;
	struct claims fresh; /* of the file at hand */
};

/* Releases all files. */
void code_claims_fini(struct code_claims *t);

/* Puts what is claimed of a file in place of what this slot had of it, also in the store. 0;
 * -EEXIST: as claims_insert; -ENOSPC: so many files with claims are mapped; -ENOMEM. Where it
 * fails with the latter two, all is as before. */
int code_claims_replace(struct code_claims *t, struct mapped_file *file,
			const struct claim_answer *answer, struct unwind *store);

/* Whether some mapped file has claims. O(mappings times claimed files). */
bool code_claims_has(const struct code_claims *t, const struct mapset *set);
