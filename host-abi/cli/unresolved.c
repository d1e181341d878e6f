/* SPDX-License-Identifier: Apache-2.0 */
/* Code without names. Contract in unresolved.h. */
#include "unresolved.h"

#include "abi/unnamed.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "elf/debuglink.h"
#include "elf/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_SYMBOLS (1u << 22)
#define MAX_SHOWN 32u

struct nameless {
	const struct profile_mapping *mapping; /* NULL: no mapping at all */
	int64_t with, leaf; /* value of samples with such a frame, and with one innermost */
	uint32_t seen;      /* sample that was counted last, + 1 */
};

struct found {
	struct nameless *list; /* [0]: no mapping; then by mapping */
	size_t n;
	int64_t sum;
};

static bool is_unnamed(const struct profile *p, const struct profile_location *l)
{
	struct str name;

	if (l->n_lines == 0)
		return true;
	name = p->functions[p->lines[l->line_start].function].name;
	return name.n == 0 || str_is(name, "[unknown]") ||
	       unnamed_is(name, p->mappings[l->mapping].file);
}

static int collect(const struct profile *p, struct found *ret)
{
	ret->n = p->n_mappings + 1;
	ret->list = calloc(ret->n, sizeof(*ret->list));
	if (!ret->list)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n_samples; i++) {
		const struct profile_sample *s = &p->samples[i];
		int64_t value = p->values[i * p->n_types + p->default_type];

		ret->sum += value;
		for (uint32_t k = 0; k < s->n_frames; k++) {
			const struct profile_location *l =
				&p->locations[p->frames[s->frame_start + k]];
			struct nameless *n;

			if (!is_unnamed(p, l))
				continue;
			n = &ret->list[l->mapping < p->n_mappings ? l->mapping + 1 : 0];
			n->mapping = l->mapping < p->n_mappings ? &p->mappings[l->mapping] : NULL;
			n->leaf += k == 0 ? value : 0;
			n->with += n->seen == i + 1 ? 0 : value;
			n->seen = i + 1;
		}
	}
	return 0;
}

static int by_share(const void *x, const void *y)
{
	const struct nameless *a = x, *b = y;

	return a->with > b->with ? -1 : a->with < b->with;
}

/* --- One file, as it is here --- */

struct look {
	struct buf tried; /* sentence parts */
	const char *help;
	bool here;
};

static void tried(struct look *k, const char *source, const char *result)
{
	buf_printf(&k->tried, "%s%s: %s", k->tried.n ? "; " : "", source, result);
}

static bool has_debug_file(const char *build_id)
{
	_cleanup_(buf_free) struct buf path = BUF_NULL;

	return strlen(build_id) >= 4 &&
	       buf_printf(&path, "/usr/lib/debug/.build-id/%.2s/%s.debug%c", build_id, build_id + 2,
			  0) == 0 &&
	       access(path.p, R_OK) == 0;
}

static void look_at_sections(struct look *k, struct elf_file *f, const char *build_id)
{
	struct elf_symbols s = ELF_SYMBOLS_NULL;
	struct elf_debuglinks links = {{0}};

	elf_symbols_load(&s, f, MAX_SYMBOLS, NULL);
	tried(k, ".symtab", s.source == ELF_SYMBOLS_SYMTAB ? "does not cover it" : "stripped");
	tried(k, ".dynsym", elf_file_section_of_type(f, SHT_DYNSYM) ? "does not cover it" : "none");
	tried(k, ".gnu_debugdata",
	      elf_file_section(f, ".gnu_debugdata") ? "does not cover it" : "none");
	tried(k, "debug information",
	      elf_file_section(f, ".debug_info") ? "does not cover it" : "none");
	tried(k, "debug file by build id",
	      !build_id[0]               ? "there is no build id"
	      : has_debug_file(build_id) ? "is here; record again"
					 : "not installed");
	elf_debuglinks_read(f, &links);
	tried(k, ".gnu_debuglink", links.name[0] ? links.name : "none");
	k->help =
		has_debug_file(build_id) ? "record again: its debug file is here by now"
		: build_id[0]
			? "install its debug symbols, or set debuginfod = true in profile.symbolize"
			: "build it with -Wl,--build-id and -g, or do not strip it";
	elf_symbols_free(&s);
}

/* Only the file that was profiled counts, by its build id where it has one. */
static void look_at_file(struct look *k, struct str path, struct str build_id)
{
	_cleanup_(freep) char *name = str_dup(path);
	_cleanup_(closep) int fd =
		name ? open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
	struct elf_file f = ELF_FILE_NULL;
	struct elf_ids ids = {{0}};

	if (fd < 0 || elf_file_open(&f, fd, NULL) < 0) {
		tried(k, "the file", "cannot be read here");
		k->help = "run this where it was recorded";
		return;
	}
	if (elf_ids_read(&f, &ids) == 0 && build_id.n && ids.gnu_build_id[0] &&
	    !str_is(build_id, ids.gnu_build_id)) {
		tried(k, "the file", "is of another build here");
		k->help = "run this where it was recorded";
	} else {
		k->here = true;
		look_at_sections(k, &f, ids.gnu_build_id);
	}
	elf_file_close(&f);
}

static void look_at(struct look *k, const struct profile_mapping *m)
{
	if (m && m->file.n && m->file.p[0] == '/' && !str_ends(m->file, STR(".map"))) {
		look_at_file(k, m->file, m->build_id);
		return;
	}
	tried(k, "a file", m ? "there is none behind this memory" : "no mapping holds the address");
	tried(k, "perf map", "none when the code was mapped, or it does not cover it");
	k->help =
		m ? "node --perf-basic-prof, python3 -X perf (3.12), or a JVM's perf map (jcmd PID "
		    "Compiler.perfmap)"
		  : "record for longer, so that mappings are read while the process lives";
}

/* --- Output --- */

static double percent(int64_t part, int64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* Paths are strangers': nothing that could steer a terminal, or turn a line around. */
static void put_plain(struct buf *out, struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		buf_putc(out, s.p[i] < ' ' || s.p[i] > '~' ? '?' : s.p[i]);
}

static void put_text(struct buf *out, const struct nameless *n, const struct look *k, int64_t sum)
{
	buf_printf(out, "%6.2f%% of samples (%.2f%% innermost)  ", percent(n->with, sum),
		   percent(n->leaf, sum));
	put_plain(out, n->mapping && n->mapping->file.n ? n->mapping->file : STR("(no mapping)"));
	if (n->mapping && n->mapping->build_id.n) {
		buf_str_append(out, STR("\n  build id  "));
		put_plain(out, n->mapping->build_id);
	}
	buf_str_append(out, STR("\n  tried     "));
	put_plain(out, buf_str(&k->tried));
	buf_printf(out, "\n  to fix    %s\n", k->help);
}

static void put_json(struct buf *out, const struct nameless *n, const struct look *k, int64_t sum)
{
	buf_printf(out, "{\"share\":%.6f,\"innermost\":%.6f,\"file\":", percent(n->with, sum) / 100,
		   percent(n->leaf, sum) / 100);
	json_put_str(out, n->mapping ? n->mapping->file : STR(""));
	buf_str_append(out, STR(",\"build_id\":"));
	json_put_str(out, n->mapping ? n->mapping->build_id : STR(""));
	buf_str_append(out, STR(",\"tried\":"));
	json_put_str(out, buf_str(&k->tried));
	buf_str_append(out, STR(",\"help\":"));
	json_put_str(out, str_of(k->help));
	buf_putc(out, '}');
}

int unresolved_write(const struct profile *p, bool json, struct buf *out)
{
	struct found found = {0};
	unsigned int shown = 0;

	if (collect(p, &found) < 0)
		return -ENOMEM;
	qsort(found.list, found.n, sizeof(*found.list), by_share);
	if (json)
		buf_str_append(out, STR("{\"unresolved\":["));
	for (size_t i = 0; i < found.n && found.list[i].with && shown < MAX_SHOWN; i++, shown++) {
		struct look k = {0};

		look_at(&k, found.list[i].mapping);
		if (json && shown)
			buf_putc(out, ',');
		(json ? put_json : put_text)(out, &found.list[i], &k, found.sum);
		buf_free(&k.tried);
	}
	if (json)
		buf_str_append(out, STR("]}\n"));
	else if (!shown)
		buf_str_append(out, STR("Every frame has a name.\n"));
	free(found.list);
	return out->failed ? -ENOMEM : 0;
}
