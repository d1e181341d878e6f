/* SPDX-License-Identifier: Apache-2.0 */
/* Code without names. Contract in missing-symbols.h. */
#include "cli/report/missing-symbols.h"

#include "cli/report/runtime-gaps.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "base/search.h"
#include "elf/debuglink.h"
#include "elf/symbols.h"
#include "export/call-tree.h"
#include "export/frame-type.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SYMBOLS (1u << 22)
#define MAX_SHOWN   32u

struct nameless {
	const struct profile_mapping *mapping; /* NULL: no mapping at all */
	int64_t with, leaf; /* value of samples with such a frame, and with one innermost */
	uint32_t seen;      /* sample that was counted last, + 1 */
	int64_t most;       /* value of its heaviest sample, */
	uint64_t address;   /* and where that was: what sources are asked for */
};

struct found {
	struct nameless *list; /* [0]: no mapping; then by mapping */
	size_t n;
	int64_t sum;
};

/* A runtime's frames are not looked for in a file: runtime-gaps.h tells of them. */
static bool is_unnamed(const struct profile *p, const struct profile_location *l)
{
	struct str name, file = p->mappings[l->mapping].file;

	if (l->n_lines == 0)
		return true;
	name = p->functions[p->lines[l->line_start].function].name;
	return call_tree_unsymbolized(name, file) && !frame_type_is_runtime(file);
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
			if (value > n->most) {
				n->most = value;
				n->address = l->address;
			}
			n->seen = i + 1;
		}
	}
	return 0;
}

static int by_share(const void *x, const void *y)
{
	const struct nameless *a = x, *b = y;

	return compare(b->with, a->with);
}

/* --- One file, as it is here --- */

struct look {
	struct buf tried; /* sentence parts */
	struct buf help;
	uint64_t address;
};

static void tried(struct look *k, const char *source, const char *result)
{
	buf_printf(&k->tried, "%s%s: %s", k->tried.n ? "; " : "", source, result);
}

static void help(struct look *k, const char *text)
{
	buf_clear(&k->help);
	buf_str_append(&k->help, str_of(text));
}

/* Whether the symbols of a file cover the address; *ret_source is the table's. */
static bool covers(struct elf_file *f, uint64_t address, int *ret_source)
{
	_cleanup_(buf_free) struct buf name = BUF_NULL;
	struct elf_symbols s = ELF_SYMBOLS_NULL;
	bool found;

	elf_symbols_load(&s, f, MAX_SYMBOLS, NULL);
	*ret_source = s.source;
	found = elf_symbols_find(&s, f->fd, address, &name, NULL) == 0;
	elf_symbols_free(&s);
	return found;
}

enum debug_file { DEBUG_ABSENT, DEBUG_USELESS, DEBUG_COVERS };

static enum debug_file look_at_debug_file(const struct look *k, const char *path)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct elf_file f = ELF_FILE_NULL;
	enum debug_file found = DEBUG_USELESS;
	int source;

	if (fd < 0)
		return DEBUG_ABSENT;
	if (elf_file_open(&f, fd, NULL) == 0 && covers(&f, k->address, &source))
		found = DEBUG_COVERS;
	elf_file_close(&f);
	return found;
}

static const char *coverage(bool there, bool found)
{
	return !there ? "none" : found ? "covers it now: record again" : "does not cover it";
}

/* What would name code of a file of which only a debug file could tell more. */
static void help_by_debug_file(struct look *k, const char *build_id, const char *path)
{
	if (!build_id[0]) {
		help(k, "build it with -Wl,--build-id and -g, or do not strip it");
		return;
	}
	buf_printf(&k->help,
		   "install its debug symbols, as %s, or get them: debuginfod-find debuginfo %s "
		   "(an agent does with debuginfod = true in profile.symbolize)",
		   path, build_id);
}

static void look_at_sections(struct look *k, struct elf_file *f, const char *build_id)
{
	static const char *const debug_words[] = {"not installed", "does not cover it",
						  "is here by now, and covers it"};
	char path[512] = "";
	struct elf_debuglinks links = {{0}};
	enum debug_file debug = DEBUG_ABSENT;
	int source = 0;
	bool found = covers(f, k->address, &source), whole = source == ELF_SYMBOLS_SYMTAB;

	if (strlen(build_id) >= 4) {
		snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", build_id,
			 build_id + 2);
		debug = look_at_debug_file(k, path);
	}
	elf_debuglinks_read(f, &links);
	tried(k, ".symtab", whole ? coverage(true, found) : "stripped");
	tried(k, ".dynsym", coverage(elf_file_section_of_type(f, SHT_DYNSYM), found && !whole));
	tried(k, ".gnu_debugdata", coverage(elf_file_section(f, ".gnu_debugdata"), false));
	tried(k, "debug information", coverage(elf_file_section(f, ".debug_info"), false));
	tried(k, "debug file by build id", path[0] ? debug_words[debug] : "there is no build id");
	tried(k, ".gnu_debuglink", links.name[0] ? links.name : "none");
	tried(k, "debuginfod", "asked only where profile.symbolize has debuginfod = true");
	if (found || debug == DEBUG_COVERS)
		help(k, "record again: what names it is here by now");
	else if (whole || debug == DEBUG_USELESS)
		help(k, "nothing: the code has no symbol, as linkage stubs (PLT) and assembly have "
			"none; where it begins is all there is");
	else
		help_by_debug_file(k, build_id, path);
}

/* Only the file that was profiled counts, by its build id where it has one. */
static void look_at_file(struct look *k, struct str path, struct str build_id)
{
	_cleanup_(freep) char *name = str_dup(path);
	_cleanup_(closep) int fd = name ? open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
					: -1;
	struct elf_file f = ELF_FILE_NULL;
	struct elf_ids ids = {{0}};

	help(k, "run this where it was recorded, while the file is there");
	if (fd < 0 || elf_file_open(&f, fd, NULL) < 0) {
		tried(k, "the file", fd < 0 ? strerror(errno) : "is no ELF file");
		return;
	}
	if (elf_ids_read(&f, &ids) == 0 && build_id.n && ids.gnu_build_id[0] &&
	    !str_is(build_id, ids.gnu_build_id)) {
		tried(k, "the file", "is of another build here");
	} else {
		buf_clear(&k->help);
		look_at_sections(k, &f, ids.gnu_build_id);
	}
	elf_file_close(&f);
}

/* A perf map or a jitdump, that the runtime has not written this far. */
static bool is_told(struct str file)
{
	struct str base = call_tree_base_name(file);

	return (str_starts(base, STR("perf-")) && str_ends(base, STR(".map"))) ||
	       (str_starts(base, STR("jit-")) && str_ends(base, STR(".dump")));
}

static void look_at(struct look *k, const struct profile_mapping *m)
{
	struct str file = m ? m->file : STR("");

	if (is_told(file)) {
		tried(k, "what the runtime tells of its code", "does not cover it, or did not yet");
		help(k,
		     "record once the program has run for a while; a JVM tells again by `jcmd PID "
		     "Compiler.perfmap`");
	} else if (file.n && file.p[0] == '/') {
		look_at_file(k, file, m->build_id);
	} else if (str_starts(file, STR("[kernel"))) {
		tried(k, "/proc/kallsyms", "does not cover it, or hides its addresses");
		help(k,
		     "if all of the kernel is unnamed: sysctl kernel.kptr_restrict=1, and run with "
		     "CAP_SYSLOG");
	} else if (!m || !file.n) {
		tried(k, "a file", "no mapping holds the address");
		help(k, "record for longer, so that mappings are read while the process lives");
	} else {
		tried(k, "a file", "there is none behind this memory");
		tried(k, "perf map, jitdump", "there was none, or it does not cover it");
		help(k, "let the program's runtime write a perf map (`jcmd PID Compiler.perfmap`, "
			"`node --perf-basic-prof`, DOTNET_PerfMapEnabled=1); then record again");
	}
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
	buf_str_append(out, STR("\n  to fix    "));
	put_plain(out, buf_str(&k->help));
	buf_putc(out, '\n');
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
	json_put_str(out, buf_str(&k->help));
	buf_putc(out, '}');
}

int unresolved_write(const struct profile *p, bool json, struct buf *out)
{
	struct found found = {0};
	unsigned int shown = 0;
	int n_gaps;

	if (collect(p, &found) < 0)
		return -ENOMEM;
	qsort(found.list, found.n, sizeof(*found.list), by_share);
	if (json)
		buf_str_append(out, STR("{\"unresolved\":["));
	for (size_t i = 0; i < found.n && found.list[i].with && shown < MAX_SHOWN; i++, shown++) {
		struct look k = {.address = found.list[i].address};

		look_at(&k, found.list[i].mapping);
		if (json && shown)
			buf_putc(out, ',');
		(json ? put_json : put_text)(out, &found.list[i], &k, found.sum);
		buf_free(&k.tried);
		buf_free(&k.help);
	}
	free(found.list);
	if (json)
		buf_str_append(out, STR("],\"runtimes\":["));
	n_gaps = runtime_gaps_write(p, json, out);
	if (json)
		buf_str_append(out, STR("]}\n"));
	else if (!shown && n_gaps == 0)
		buf_str_append(out, STR("Every frame has a name.\n"));
	return out->failed || n_gaps < 0 ? -ENOMEM : 0;
}
