/* SPDX-License-Identifier: Apache-2.0 */
/* A report for a language model: what costs most, in few words, within a budget. First what the
 * profile is, then functions by self, then the call tree down to what still fits, then what was
 * left out, so that no reader takes a part for the whole.
 *
 * Tokens are counted as DIGEST_TOKEN_BYTES bytes each. Tokenizers differ; names of functions take
 * about that much in all of them, and prose takes less. */
#pragma once

#include "cli/report/input.h"
#include "cli/report/losses.h"

#include "export/top.h"

#define DIGEST_TOKEN_BYTES 3u
#define DIGEST_TOKENS      4000u /* where none are named */
#define DIGEST_MIN_TOKENS  500u
#define DIGEST_MAX_TOKENS  1000000u

struct digest {
	const struct input *input;
	const struct call_tree *tree;
	struct top *top; /* is sorted anew */
	const struct losses *losses;
};

/* Appends at most tokens * DIGEST_TOKEN_BYTES bytes. 0 or -ENOMEM. O(nodes log nodes). */
int digest_write(const struct digest *d, size_t tokens, struct buf *out);
