/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the spool, sealed and checked. Contract in spool-entry.h. */
#include "pyroscope-push/spool/spool-entry.h"

#include <zlib.h>

static uint32_t checksum(const char *p, size_t n)
{
	return (uint32_t)crc32_z(crc32_z(0, NULL, 0), (const unsigned char *)p, n);
}

bool entry_parse(struct str data, struct spool_entry *ret)
{
	struct entry_reader r = {.rest = data};
	uint32_t magic = entry_u32(&r), crc = entry_u32(&r), length = entry_u32(&r);
	struct spool_entry e = {.kind = entry_u32(&r)};

	e.sequence = entry_u64(&r);
	if (r.ended || magic != ENTRY_MAGIC || length > r.rest.n)
		return false;
	e.body = str_first(r.rest, length);
	e.length = ENTRY_HEAD_BYTES + length;
	if (checksum(data.p + 8, e.length - 8) != crc)
		return false;
	*ret = e;
	return true;
}

void entry_seal(char *p, uint32_t kind, uint64_t sequence, size_t body)
{
	uint64_t number = htole64(sequence);

	entry_put_u32(p, ENTRY_MAGIC);
	entry_put_u32(p + 8, (uint32_t)body);
	entry_put_u32(p + 12, kind);
	memcpy(p + 16, &number, sizeof(number));
	entry_put_u32(p + 4, checksum(p + 8, ENTRY_HEAD_BYTES - 8 + body));
}
