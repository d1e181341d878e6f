/* SPDX-License-Identifier: Apache-2.0 */
/* The spool's format, version 1. Little-endian throughout. A segment is a file NUMBER.spool (16 hex
 * digits) of entries without gaps, the first of which is a HEAD:
 *
 *     u32 magic, u32 crc, u32 length of the body, u32 kind, u64 sequence, body
 *
 * The crc (zlib's crc32) is over all that follows it. A sequence is the segment's number in the
 * upper half and the entry's in the lower, from 0. Bodies:
 *
 *     HEAD   u32 version, u32 0, i64 last time, 32 bytes owner, NUL-padded
 *     BEGIN  u64 samples
 *     DATA   i64 time, u64 samples, u64 raw bytes, u64 n, n × u64 endpoint, message
 *     END    nothing
 *     MARK   u64 endpoint, u32 what, u32 n, n × u64 sequence
 *
 * Beside them lies the file `page`, written in place: u32 magic, u32 crc of all that follows, u32
 * version, u32 0, u64 sequence of the entry to come, u64 coming, u64 in memory, u64 uncertain, 14 ×
 * (24 bytes reason, NUL-padded, u64 samples that were dropped for it). */
#pragma once

#include "base/str.h"

#include <endian.h>

#define ENTRY_MAGIC       0x4c505341u /* "ASPL" */
#define ENTRY_VERSION     1u
#define ENTRY_HEAD_BYTES  24u
#define ENTRY_OWNER_BYTES 32u

enum entry_kind { ENTRY_HEAD = 1, ENTRY_BEGIN, ENTRY_DATA, ENTRY_END, ENTRY_MARK };

struct spool_entry {
	uint32_t kind;
	uint64_t sequence;
	struct str body;
	size_t length; /* with its head */
};

static inline void entry_put_u32(char *p, uint32_t value)
{
	value = htole32(value);
	memcpy(p, &value, sizeof(value));
}

static inline void entry_put_u64(char *p, uint64_t value)
{
	value = htole64(value);
	memcpy(p, &value, sizeof(value));
}

/* Takes numbers off the front of a body; 0 where it is too short, and `ended` is set. */
struct entry_reader {
	struct str rest;
	bool ended;
};

static inline uint64_t entry_number(struct entry_reader *r, size_t n)
{
	uint64_t value = 0;

	if (r->rest.n < n) {
		r->ended = true;
		return 0;
	}
	memcpy(&value, r->rest.p, n);
	r->rest = str_skip(r->rest, n);
	return le64toh(value);
}

static inline uint64_t entry_u64(struct entry_reader *r)
{
	return entry_number(r, 8);
}

static inline uint32_t entry_u32(struct entry_reader *r)
{
	return (uint32_t)entry_number(r, 4);
}

/* The whole entry at the front of `data`, checked; false if there is none. */
bool entry_parse(struct str data, struct spool_entry *ret);

/* Writes the head before a body that follows it in memory: `p` has ENTRY_HEAD_BYTES bytes and then
 * the body. */
void entry_seal(char *p, uint32_t kind, uint64_t sequence, size_t body);
