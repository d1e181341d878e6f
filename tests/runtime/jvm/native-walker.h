/* SPDX-License-Identifier: Apache-2.0 */
/* The walker of plugins/jvm/walk/ as ordinary C: over a stopped process or a recording of what a
 * walk has read. One at a time; who includes this says where memory is (memory_at). */
#pragma once

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JVM_INLINE static inline __attribute__((unused))
#define JVM_GLOBAL static __attribute__((unused))

#include "jvm/line-table.h"
#include "jvm/reports.h"
#include "jvm/walk/jvm-records.h"

struct jvm_state;
struct andiron_walk;

/* 0, or -1: it is not there. */
static int memory_at(void *to, uint32_t n, uint64_t address);

#define KEPT 20000

/* What the program's maps and the plugin's cache hold. */
static struct kept {
	struct name_cache *names;
	struct jvm_place places[KEPT];
	__u64 ids[KEPT];
	uint32_t n_places;
} kept;

static struct jvm_state *h_state(__u32 cpu);
static struct andiron_walk *h_walk(__u32 cpu);

static int h_read(void *to, __u32 n, __u64 address)
{
	return memory_at(to, n, address) != 0;
}

static int h_tables(struct jvm_state *s, __u32 pid)
{
	return 0;
}

static int h_reported(__u64 id)
{
	struct name name;

	name_cache_begin(kept.names);
	return name_cache_find(kept.names, id, &name);
}

static void h_report(const struct jvm_report *report, __u32 n)
{
	uint64_t id;

	report_keep(kept.names, report, n, &id);
	while (name_cache_excess(kept.names) != 0)
		;
}

static const __u64 *h_place_find(const struct jvm_place *place)
{
	for (uint32_t i = 0; i < kept.n_places; i++)
		if (memcmp(&kept.places[i], place, sizeof(*place)) == 0)
			return &kept.ids[i];
	return NULL;
}

static void h_place_put(const struct jvm_place *place, const __u64 *id)
{
	if (kept.n_places == KEPT)
		return;
	kept.places[kept.n_places] = *place;
	kept.ids[kept.n_places++] = *id;
}

static inline void kept_clear(void)
{
	name_cache_free(kept.names);
	kept.names = name_cache_new(8u << 20);
	kept.n_places = 0;
	if (!kept.names)
		abort();
}

#include "jvm/walk/walk.h"

static struct jvm_state native_state;
static struct andiron_walk native_walk;

static struct jvm_state *h_state(__u32 cpu)
{
	return &native_state;
}

static struct andiron_walk *h_walk(__u32 cpu)
{
	return &native_walk;
}

/* Walks until native code or nothing is found. */
static inline void walk_all(const struct jvm_process *process)
{
	native_state.process = *process;
	for (int i = 0; i < 6 && native_walk.end == 0; i++) {
		jvm_walk(0, &native_state, &native_walk);
		if (heap_of(&native_state, native_walk.pc) < 0)
			break;
	}
}

static inline void method_text(FILE *to, uint64_t id, uint32_t bci, char kind)
{
	struct name name;
	uint32_t first = 0, line;

	if (!name_cache_find(kept.names, id, &name) || name.kind == REPORT_SITE) {
		fprintf(to, "?:%c\n", kind);
		return;
	}
	line = line_find(name.table, name.n_table, name.kind == REPORT_METHOD_19,
			 bci == JVM_BCI_NONE ? 0 : bci, &first);
	fprintf(to, "%.*s:%u:%c\n", (int)name.n_function, name.function,
		bci == JVM_BCI_NONE ? 0 : line, kind);
}

/* The stack, a line for each frame, inlined ones included: FUNCTION:LINE:KIND. */
static inline void walk_text(FILE *to)
{
	const struct andiron_walk *w = &native_walk;
	struct report_site site;
	struct name name;

	for (uint32_t i = 0; i + 1 < w->n_words; i += 2) {
		uint64_t what = w->frames[i], where = w->frames[i + 1];

		name_cache_begin(kept.names);
		switch (JVM_KIND(what)) {
		case JVM_FRAME_METHOD:
			method_text(to, where, (uint32_t)(what & 0xffff), 'i');
			break;
		case JVM_FRAME_SITE:
			if (!name_cache_find(kept.names, where, &name) ||
			    report_site(&name, &site) != 0) {
				fprintf(to, "?:site\n");
				break;
			}
			for (uint32_t k = 0; k < site.n; k++)
				method_text(to, site.methods[k], site.bcis[k],
					    k + 1 < site.n ? 'n' : 'c');
			break;
		case JVM_FRAME_STUB:
			method_text(to, where, JVM_BCI_NONE, 's');
			break;
		default:
			fprintf(to, "[%u]\n", (unsigned)(what & 0xff));
		}
	}
}
