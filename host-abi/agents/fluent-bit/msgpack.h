/* SPDX-License-Identifier: Apache-2.0 */
/* Reading msgpack (its spec.md). The bytes are untrusted: nothing is read behind their end, and
 * what an array or a map says it has is no more than there are bytes. */
#pragma once

#include "base/str.h"

enum token_kind { TOKEN_OTHER, TOKEN_NUMBER, TOKEN_TEXT, TOKEN_ARRAY, TOKEN_MAP };

struct token {
	enum token_kind kind;
	uint64_t number;  /* two's complement; true is 1 */
	uint64_t entries; /* that follow; of a map, pairs */
	struct str text;  /* also of bytes */
};

/* Takes what stands at the front: false where it is cut off or no msgpack. */
bool msgpack_next(struct str *in, struct token *ret);

/* Takes a whole value, whatever it has within. O(its bytes). */
bool msgpack_skip(struct str *in);

/* Looks for a key in the map at the front: 1 and where its value begins, up to the end of `map`; 0:
 * there is none; -EBADMSG. */
int msgpack_find(struct str map, struct str key, struct str *ret);
