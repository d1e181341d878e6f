/* SPDX-License-Identifier: Apache-2.0 */
/* A process's own list of mappings shows the regions that V8 has reserved: the sampler tells of
 * those that are executable, which are a few pages of them. */
#include "mappings.h"

#include <stdio.h>
#include <string.h>

#define LINES 20000

static void range_add(struct v8_range *r, uint32_t max, uint64_t from, uint64_t to)
{
	for (uint32_t i = 0; i < max; i++) {
		if (r[i].from == from)
			return;
		if (r[i].to == 0) {
			r[i] = (struct v8_range){from, to};
			return;
		}
	}
}

/* The next line of a list of mappings, whole; *ret_named: it is of a file, or has a name. */
static bool line_read(FILE *f, char *line, int max, bool *ret_named)
{
	if (!fgets(line, max, f))
		return false;
	*ret_named = strchr(line, '/') || strchr(line, '[');
	for (char rest[64]; !strchr(line, '\n') && fgets(rest, sizeof(rest), f);) {
		*ret_named = true;
		if (strchr(rest, '\n'))
			break;
	}
	return true;
}

static bool has_code(const struct andiron_runtime_mapping *m, uint64_t n, uint64_t from,
		     uint64_t to)
{
	for (uint64_t i = 0; i < n; i++)
		if (m[i].object == 0 && m[i].start < to && m[i].limit > from)
			return true;
	return false;
}

/* Mappings without a file that follow each other, whatever their protection. */
static void regions_read(struct v8_process *ret, uint32_t pid,
			 const struct andiron_runtime_mapping *m, uint64_t n)
{
	unsigned long from, to, begin = 0, end = 0, inode;
	char path[32], line[256];
	bool named;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	f = fopen(path, "re");
	for (int i = 0; f && i < LINES && line_read(f, line, sizeof(line), &named); i++) {
		if (sscanf(line, "%lx-%lx %*s %*s %*s %lu", &from, &to, &inode) != 3)
			continue;
		if (named || from != end) {
			if (begin != end && has_code(m, n, begin, end))
				range_add(ret->code, V8_RANGES, begin, end);
			begin = from;
		}
		end = to;
		if (named)
			begin = end;
	}
	if (begin != end && has_code(m, n, begin, end))
		range_add(ret->code, V8_RANGES, begin, end);
	if (f)
		fclose(f);
}

void mappings_read(struct v8_process *ret, uint32_t pid, const struct v8_binary *binary,
		   uint64_t object, const struct andiron_runtime_mapping *mappings, uint64_t n)
{
	bool without_file = false;

	for (uint64_t i = 0; i < n; i++) {
		const struct andiron_runtime_mapping *m = &mappings[i];
		uint64_t start = m->start + (binary->blob - m->address);

		without_file |= m->object == 0;
		if (m->object == object && binary->spill >= m->address &&
		    binary->spill - m->address < m->limit - m->start)
			range_add(&ret->spill, 1, m->start + (binary->spill - m->address),
				  m->start + (binary->spill - m->address) + V8_SPILL_BYTES);
		if (m->object != object || m->address >= binary->blob + binary->blob_bytes ||
		    m->address + (m->limit - m->start) <= binary->blob)
			continue;
		range_add(ret->blobs, V8_BLOBS, start, start + binary->blob_bytes);
		if (binary->handlers_to != 0)
			range_add(ret->handlers, V8_BLOBS, start + binary->handlers_from,
				  start + binary->handlers_to);
	}
	if (without_file)
		regions_read(ret, pid, mappings, n);
	/* No map of this process is to be read by now, or it is an unusual one. */
	for (uint64_t i = 0; i < n; i++)
		if (mappings[i].object == 0 &&
		    !(ret->code[0].from <= mappings[i].start &&
		      ret->code[0].to >= mappings[i].limit) &&
		    ret->code[0].to == 0)
			range_add(ret->code, V8_RANGES, mappings[i].start, mappings[i].limit);
}
