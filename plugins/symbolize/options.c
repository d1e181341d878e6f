/* SPDX-License-Identifier: Apache-2.0 */
/* The option table of profile.symbolize, and its metrics. */
#include "symbolize/options.h"

#include "abi/option.h"
#include "abi/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_BYTES_DEFAULT      INT64_C(33554432)
#define FILE_STEPS_DEFAULT       INT64_C(134217728)
#define DEBUGINFOD_MAX_DEFAULT   INT64_C(268435456)
#define DEBUGINFOD_CACHE_DEFAULT INT64_C(4294967296)

static const struct andiron_option options[] = {
	OPTION(RECEIVERS, "forward_to", NULL, "Where profiles go once their frames have names.",
	       .flags = ANDIRON_OPTION_REQUIRED, .since = "0.1"),
	OPTION(INT, "cache_bytes", "33554432",
	       "How much memory names may take between batches, in bytes, and how much symbol "
	       "tables and debug information. The file used least recently is forgotten first. "
	       "The kernel's list comes on top.",
	       .min = 1 << 20, .max = INT64_C(1) << 36, .since = "0.1"),
	OPTION(INT, "file_bytes", NULL,
	       "How much of that, in bytes, the symbol tables and the debug information of one "
	       "file may take; without it, or where it is more, cache_bytes. A file whose symbol "
	       "table is larger gives no names, one whose debug information is gives those parts "
	       "that fit.",
	       .min = 1 << 20, .max = INT64_C(1) << 36, .since = "0.1"),
	OPTION(INT, "file_steps", "134217728",
	       "How many entries and line instructions of one file's debug information may be "
	       "gone through for a batch: the default is three or four seconds of CPU time. A "
	       "file that takes more gives names by its symbols only from then on.",
	       .min = 1 << 10, .max = INT64_C(1) << 29, .since = "0.1"),
	OPTION(BOOL, "lines", "true",
	       "Whether frames get source files and lines, from debug information and from Go's "
	       "own tables.",
	       .since = "0.1"),
	OPTION(BOOL, "debuginfod", "false",
	       "Whether debug files that are not here are fetched from debuginfod servers, into "
	       "the folder that elfutils' client uses too.",
	       .since = "0.1"),
	OPTION(STRING, "debuginfod_urls", NULL,
	       "The servers, separated by spaces, instead of those in the environment's "
	       "DEBUGINFOD_URLS.",
	       .since = "0.1"),
	OPTION(STRING, "debuginfod_cache_path", NULL,
	       "Where fetched files are kept, instead of $HOME/.cache/debuginfod_client.",
	       .since = "0.1"),
	OPTION(INT, "debuginfod_max_bytes", "268435456",
	       "How large a debug file may be that is fetched whole. Of a larger one only symbols "
	       "and lines are fetched, without inlined calls, where the server gives sections; "
	       "each of those may be as large.",
	       .min = 1, .max = INT64_C(1) << 40, .since = "0.1"),
	OPTION(INT, "debuginfod_cache_bytes", "4294967296",
	       "How much is kept on disk; what was used least recently is removed first, and what "
	       "nobody used in a week. 0: only the latter.",
	       .max = INT64_C(1) << 50, .since = "0.1"),
	OPTION(BOOL, "inlines", "true",
	       "Whether calls that the compiler has inlined become frames.", .since = "0.1"),
};

const struct andiron_options symbolize_options = ANDIRON_OPTIONS(options);

int symbolize_fetch(const struct andiron_value *args, struct fetch *f)
{
	struct fetch_settings settings = {
		.urls = value_str(args, "debuginfod_urls", str_of(getenv("DEBUGINFOD_URLS"))),
		.cache = value_str(args, "debuginfod_cache_path", STR_NULL),
		.max_bytes =
			(uint64_t)value_int(args, "debuginfod_max_bytes", DEBUGINFOD_MAX_DEFAULT),
		.cache_bytes = (uint64_t)value_int(args, "debuginfod_cache_bytes",
						   DEBUGINFOD_CACHE_DEFAULT),
		.lines_only = !value_bool(args, "inlines", true),
	};

	if (!value_bool(args, "debuginfod", false))
		settings.urls = STR_NULL;
	return fetch_set(f, &settings);
}

struct symbolizer_settings symbolize_settings(const struct andiron_value *args)
{
	int64_t cache_bytes = value_int(args, "cache_bytes", CACHE_BYTES_DEFAULT);
	int64_t file_bytes = value_int(args, "file_bytes", cache_bytes);

	return (struct symbolizer_settings){
		.cache_bytes = (size_t)cache_bytes,
		.file_bytes = (size_t)(file_bytes < cache_bytes ? file_bytes : cache_bytes),
		.file_steps = (uint64_t)value_int(args, "file_steps", FILE_STEPS_DEFAULT),
		.lines = value_bool(args, "lines", true),
		.inlines = value_bool(args, "inlines", true),
	};
}

/* One counter for each of `words`, told apart by a label. */
static void add_family(const struct andiron_metric_sink *sink, struct andiron_metric m,
		       const char *label, const char *const *words, const uint64_t *values)
{
	for (; *words; words++, values++) {
		const struct andiron_kv kv = {{label, strlen(label)}, {*words, strlen(*words)}};

		m.kind = ANDIRON_METRIC_COUNTER;
		m.n_labels = 1;
		m.labels = &kv;
		m.value = (double)*values;
		sink->add(sink->self, &m);
	}
}

void symbolize_count(const struct symbolizer *s, uint64_t unnamed_batches,
		     const struct andiron_metric_sink *sink)
{
	static const char *const sources[] = {"symtab", "debug", "dynsym", "minidebug", "go",
					      "dwarf",  "jit",   "kernel", NULL};
	static const char *const reasons[] = {"no_object",     "unavailable", "broken", "no_symbol",
					      "kernel_hidden", "opted_out",   NULL};
	static const char *const asides[] = {"broken", "crash", "time", "memory", NULL};
	const struct andiron_metric resolved = {.name = "andiron_symbolize_frames_resolved_total",
						.help = "Frames that got a name, by its source."};
	const struct andiron_metric unresolved = {
		.name = "andiron_symbolize_frames_unresolved_total",
		.help = "Frames that got no name, by the reason."};
	const struct andiron_metric set_aside = {
		.name = "andiron_symbolize_files_set_aside_total",
		.help = "Files that give no names (broken, crash), or not all (time, memory: beyond "
			"file_steps, file_bytes), by the reason."};
	const struct {
		const char *name, *help;
		uint64_t value;
		uint32_t kind;
	} single[] = {
		{"lines_total", "Frames that got a source line.", s->totals.lines, 0},
		{"inlined_total", "Inlined calls that became frames.", s->totals.inlined, 0},
		{"fetched_total", "Debug files of debuginfod servers that came into use.",
		 s->totals.fetched, 0},
		{"crashes_total", "How often the process that reads files died.", s->totals.crashes,
		 0},
		{"unnamed_batches_total", "Batches that went on without names.", unnamed_batches,
		 0},
		{"kallsyms_reads_total", "How often the list of kernel symbols was read.",
		 s->kernel.reads, 0},
		{"cache_bytes", "Remembered names, without the kernel's.", s->cache.bytes, 1},
		{"kernel_bytes", "Memory of the kernel's names.", kernel_bytes(&s->kernel), 1},
	};

	_Static_assert(sizeof(asides) / sizeof(asides[0]) == ASIDE_COUNT + 1, "a word a reason");
	_Static_assert(sizeof(sources) / sizeof(sources[0]) == FROM_COUNT + 1, "a word a source");
	add_family(sink, resolved, "source", sources, s->totals.resolved);
	add_family(sink, unresolved, "reason", reasons, s->totals.unresolved);
	add_family(sink, set_aside, "reason", asides, s->totals.set_aside);
	for (size_t k = 0; k < sizeof(single) / sizeof(single[0]); k++) {
		char name[64];
		const struct andiron_metric m = {.name = name,
						 .help = single[k].help,
						 .kind = single[k].kind ? ANDIRON_METRIC_GAUGE
									: ANDIRON_METRIC_COUNTER,
						 .value = (double)single[k].value};

		snprintf(name, sizeof(name), "andiron_symbolize_%s", single[k].name);
		sink->add(sink->self, &m);
	}
}
