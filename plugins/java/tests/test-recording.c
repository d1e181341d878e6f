/* SPDX-License-Identifier: Apache-2.0 */
/* Which bytes are a whole recording. */
#include "java/attach/recording.h"
#include "testing/test.h"

#include <endian.h>

#define CHUNK 100

static char bytes[3 * CHUNK];

static void put_chunk(size_t at, uint64_t length)
{
	length = htobe64(length);
	memcpy(bytes + at, "FLR\0\0\2\0\1", 8);
	memcpy(bytes + at + 8, &length, sizeof(length));
}

static bool whole(size_t n)
{
	return recording_whole((struct str){bytes, n});
}

TEST(chunks_follow_each_other)
{
	put_chunk(0, CHUNK);
	put_chunk(CHUNK, CHUNK);
	expect(whole(CHUNK));
	expect(whole(2 * CHUNK));
}

/* A JVM that was killed leaves a chunk without a length, or less than it says. */
TEST(what_is_cut_short_is_not_whole)
{
	put_chunk(0, CHUNK);
	put_chunk(CHUNK, 0);
	expect(!whole(0));
	for (size_t n = 1; n < CHUNK; n++)
		expect(!whole(n));
	expect(!whole(2 * CHUNK));
	put_chunk(CHUNK, UINT64_MAX);
	expect(!whole(2 * CHUNK));
	put_chunk(CHUNK, 67);
	expect(!whole(2 * CHUNK));
}

TEST(other_files_are_not)
{
	memset(bytes, 'x', sizeof(bytes));
	expect(!whole(sizeof(bytes)));
}
