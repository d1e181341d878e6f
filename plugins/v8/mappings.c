/* SPDX-License-Identifier: Apache-2.0 */
/* Regions are mappings without a file that follow each other, whatever their protection, and copies
 * of builtins between them. */
#include "v8/mappings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES 20000

static bool ranges_add(struct v8_range *r, uint32_t *n, uint32_t max, uint64_t from, uint64_t to)
{
	for (uint32_t i = 0; i < *n; i++)
		if (r[i].from < to && r[i].to > from)
			return false;
	if (*n == max)
		return false;
	r[(*n)++] = (struct v8_range){from, to};
	return true;
}

/* Whether the builtins begin in a mapping. */
static bool is_blob(const struct v8_binary *b, uint64_t object,
		    const struct andiron_runtime_mapping *m)
{
	return m->object == object && b->blob_bytes != 0 && m->address < b->blob + b->blob_bytes &&
	       m->address + (m->limit - m->start) > b->blob;
}

static bool has_code(const struct andiron_runtime_mapping *m, uint64_t n, uint64_t from,
		     uint64_t to)
{
	for (uint64_t i = 0; i < n; i++)
		if (m[i].object == 0 && m[i].start < to && m[i].limit > from)
			return true;
	return false;
}

uint64_t mappings_hash(const struct andiron_runtime_mapping *list, uint64_t n)
{
	uint64_t h = 1;

	for (uint64_t i = 0; i < n; i++)
		if (list[i].object == 0)
			h = v8_mix(v8_mix(h, list[i].start), list[i].limit);
	return h;
}

/* Whether a line of the process's list is of what may lie in a region. */
static bool is_inside(const char *line, uint64_t from, const struct v8_binary *b, uint64_t object,
		      const struct andiron_runtime_mapping *list, uint64_t n)
{
	const char *name = strpbrk(line, "/[");

	if (!name || strncmp(name, "[anon:", 6) == 0)
		return true;
	for (uint64_t i = 0; i < n; i++)
		if (list[i].start == from && list[i].address >= b->blob &&
		    is_blob(b, object, &list[i]))
			return true;
	return false;
}

/* The next line, without what is too long; false: there is none. */
static bool line_read(FILE *f, char *line, int max)
{
	char rest[64];

	if (!fgets(line, max, f))
		return false;
	for (bool whole = strchr(line, '\n'); !whole && fgets(rest, sizeof(rest), f);)
		whole = strchr(rest, '\n');
	return true;
}

void mappings_read_regions(struct mappings *m, uint32_t pid, const struct v8_binary *binary,
			   uint64_t object, const struct andiron_runtime_mapping *list, uint64_t n)
{
	unsigned long from, to, begin = 0, end = 0;
	char path[32], line[256], *rest;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	f = fopen(path, "re");
	for (int i = 0; f && i < LINES && line_read(f, line, sizeof(line)); i++) {
		bool inside;

		from = strtoul(line, &rest, 16);
		to = *rest == '-' ? strtoul(rest + 1, NULL, 16) : 0;
		if (to <= from)
			continue;
		inside = is_inside(line, from, binary, object, list, n);
		if (!inside || from != end) {
			if (begin != end && has_code(list, n, begin, end))
				ranges_add(m->code, &m->n_code, MAPPINGS_CODE, begin, end);
			begin = from;
		}
		end = to;
		if (!inside)
			begin = end;
	}
	if (begin != end && has_code(list, n, begin, end))
		ranges_add(m->code, &m->n_code, MAPPINGS_CODE, begin, end);
	if (f)
		fclose(f);
}

static bool is_mapped(const struct v8_range *r, const struct andiron_runtime_mapping *list,
		      uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (list[i].start < r->to && list[i].limit > r->from)
			return true;
	return false;
}

bool mappings_update(struct mappings *m, const struct v8_binary *binary, uint64_t object,
		     const struct andiron_runtime_mapping *list, uint64_t n)
{
	struct v8_range known[MAPPINGS_CODE], blobs[MAPPINGS_BLOBS];
	uint32_t n_known = m->n_code - m->n_rest, n_blobs = m->n_blobs;
	bool all = true;

	memcpy(known, m->code, sizeof(known));
	memcpy(blobs, m->blobs, sizeof(blobs));
	m->n_code = m->n_blobs = m->n_rest = m->n_gone = 0;
	for (uint32_t i = 0; i < n_known; i++)
		if (has_code(list, n, known[i].from, known[i].to))
			m->code[m->n_code++] = known[i];
	for (uint64_t i = 0; i < n; i++) {
		uint64_t start = list[i].start + (binary->blob - list[i].address);
		uint64_t call = list[i].start + (binary->collector_call - list[i].address);
		bool inside = false;

		if (is_blob(binary, object, &list[i]))
			ranges_add(m->blobs, &m->n_blobs, MAPPINGS_BLOBS, start,
				   start + binary->blob_bytes);
		if (list[i].object == object && binary->collector_call >= list[i].address &&
		    call < list[i].limit && m->collector_call.to == 0)
			m->collector_call = (struct v8_range){call, call + V8_COLLECTOR_CALL_BYTES};
		for (uint32_t k = 0; k < m->n_code && list[i].object == 0; k++)
			inside |= m->code[k].from <= list[i].start &&
				  m->code[k].to >= list[i].limit;
		all &= list[i].object != 0 || inside;
	}
	for (uint32_t i = 0; i < n_blobs; i++)
		if (!is_mapped(&blobs[i], list, n))
			m->n_gone += ranges_add(m->blobs, &m->n_blobs, MAPPINGS_BLOBS,
						blobs[i].from, blobs[i].to);
	return all;
}

void mappings_add_rest(struct mappings *m, const struct andiron_runtime_mapping *list, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (list[i].object == 0)
			m->n_rest += ranges_add(m->code, &m->n_code, MAPPINGS_CODE, list[i].start,
						list[i].limit);
}

/* [from, to) is now in something else; false: there is no room. */
static bool segments_paint(__u64 *s, uint32_t *n, const struct v8_range *r, uint32_t in)
{
	uint32_t before = 0, behind = 0;
	uint64_t after;

	while (before < *n && s[before] >> 8 < r->from)
		before++;
	for (behind = before; behind < *n && s[behind] >> 8 <= r->to; behind++)
		;
	if (before == 0 || behind == 0 || *n - (behind - before) + 2 > V8_SEGMENTS)
		return false;
	after = V8_SEGMENT(r->to, s[behind - 1] & 7);
	memmove(s + before + 2, s + behind, (*n - behind) * sizeof(*s));
	s[before] = V8_SEGMENT(r->from, in);
	s[before + 1] = after;
	*n = *n - (behind - before) + 2;
	return true;
}

void mappings_segments(struct mappings *m, struct v8_process *process)
{
	__u64 *ret = process->segments;
	uint32_t n = 1, kept = 0, living = m->n_blobs - m->n_gone;

	ret[0] = V8_SEGMENT(0, V8_IN_NONE);
	if (m->collector_call.to != 0)
		segments_paint(ret, &n, &m->collector_call, V8_IN_COLLECTOR_CALL);
	for (uint32_t i = 0; i < m->n_code; i++)
		if (segments_paint(ret, &n, &m->code[i], V8_IN_CODE))
			m->code[kept++] = m->code[i];
	m->n_rest -= m->n_code - kept < m->n_rest ? m->n_code - kept : m->n_rest;
	m->n_code = kept;
	kept = 0;
	for (uint32_t i = 0; i < living; i++)
		if (segments_paint(ret, &n, &m->blobs[i], V8_IN_BLOB))
			m->blobs[kept++] = m->blobs[i];
	memmove(m->blobs + kept, m->blobs + living, m->n_gone * sizeof(*m->blobs));
	m->n_blobs = kept + m->n_gone;
	for (; n < V8_SEGMENTS; n++)
		ret[n] = V8_SEGMENT_NONE;
}
