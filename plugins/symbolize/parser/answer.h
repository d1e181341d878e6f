/* SPDX-License-Identifier: Apache-2.0 */
/* What the parser says, as bytes. Whoever reads them does not trust them: lengths are checked,
 * numbers are only shown, texts are to be cleaned.
 *
 *   head     u32 number of addresses, i32 error (0: the file was read; else a negative errno and no
 *            addresses), u32 whether a debug file would tell more, then texts: why, the file that
 *            .gnu_debuglink names, build id of dwz's file
 *   address  u8 source (FROM_COUNT: none), u8 whether it could not be read, u16 number of frames,
 *            u32 of zero, u64 where the function begins that has no name (0: not known)
 *   frame    u32 line, u32 column, u32 start line, then texts: name, linked name, file
 *   text     u32 length and bytes
 *   tail     paths of split units that were missing, each with a NUL behind it, the u32 length of
 *            all of them, and an i32: what the file would have cost too much of (0; -ETIME, -E2BIG)
 */
#pragma once

#include "base/buf.h"

#define ANSWER_MAX_BYTES ((size_t)64 << 20)

struct answer_head {
	uint32_t n;
	int32_t error;
	uint32_t lacking;          /* not 0: a debug file would tell more */
	struct str why, link, alt; /* borrowed from the bytes */
};

struct answer_address {
	uint8_t source;
	uint8_t unread;
	uint16_t n_frames;
	uint32_t reserved;
	uint64_t function;
};

struct answer_frame {
	uint32_t line, column, start_line;
	struct str name, linked, file;
};

struct answer_tail {
	int32_t over; /* not all was read: -ETIME, it took more steps than it may; -E2BIG, memory */
	struct str wanted; /* borrowed from the bytes */
};

/* Each 0, -ENOMEM or -E2BIG. */
int answer_put_head(struct buf *b, const struct answer_head *head);
int answer_put_address(struct buf *b, const struct answer_address *address);
int answer_put_frame(struct buf *b, const struct answer_frame *frame);

/* At the very end, always. */
int answer_put_tail(struct buf *b, const struct answer_tail *tail);

/* Takes it off the end of *rest; false, and nothing is taken, where it is too short. */
bool answer_tail(struct str *rest, struct answer_tail *ret);

/* Each takes its part off the front of *rest. False, and *ret is void, where that is too short. */
bool answer_head(struct str *rest, struct answer_head *ret);
bool answer_address(struct str *rest, struct answer_address *ret);
bool answer_frame(struct str *rest, struct answer_frame *ret);
