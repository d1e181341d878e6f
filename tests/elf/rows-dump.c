/* SPDX-License-Identifier: Apache-2.0 */
/* elf-rows-dump [--json] FILE [DEBUG-FILE]: the rows by which the code of a file is unwound, and
 * what they cost; as JSON the cost alone.
 *
 * The file is read twice: once as the agent does it, for the figures, and once more to print what
 * it holds. `bytes` is what the walker's memory takes for the file: its pages and a reference to
 * each. The rules stand once for all files of a machine and are counted apart. `peak_heap` is the
 * most that was in use at any page's end, the reader's and the page maker's. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/vec.h"
#include "unwind/pages.h"

#include "bpfwire/unwind-tables.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#define REFERENCE_BYTES 4

static const char *const source_names[ELF_ROWS_SOURCES] = {
	[ELF_ROWS_EH_FRAME] = ".eh_frame",
	[ELF_ROWS_DEBUG_FRAME] = ".debug_frame",
	[ELF_ROWS_GO] = ".gopclntab",
	[ELF_ROWS_MADE] = "made",
};

struct rule_words {
	uint64_t rule, aux;
};

struct measure {
	struct elf_rows_stats stats;
	struct pages_stats pages;
	VEC(struct rule_words) rules;
	struct index index;
	struct rule_words sought;
	uint64_t n_pages; /* references, those to pages without rows included */
	uint64_t heap_before, heap;
	int64_t ns;
};

static uint64_t heap_now(void)
{
	struct mallinfo2 m = mallinfo2();

	return (uint64_t)m.uordblks + (uint64_t)m.hblkhd;
}

static bool is_sought(const void *context, uint32_t position)
{
	const struct measure *m = context;

	return m->rules.p[position].rule == m->sought.rule &&
	       m->rules.p[position].aux == m->sought.aux;
}

/* Numbers from 1 on, in the order of their appearance. */
static int32_t number_rule(void *context, uint64_t rule, uint64_t aux)
{
	struct measure *m = context;
	uint64_t hash = hash_mix(rule, aux);
	uint32_t at;

	m->sought = (struct rule_words){rule, aux};
	at = index_find(&m->index, hash, is_sought, m);
	if (at != INDEX_NONE)
		return (int32_t)at + 1;
	if (m->rules.n == UNWIND_RULES_MAX)
		return -ENOSPC;
	if (!vec_push(&m->rules, m->sought))
		return -ENOMEM;
	if (index_add(&m->index, hash, (uint32_t)m->rules.n - 1) < 0)
		return -ENOMEM;
	return (int32_t)m->rules.n;
}

static int count_page(void *context, uint32_t number, const void *bytes, size_t n,
		      const uint16_t *rules, size_t n_rules)
{
	struct measure *m = context;
	uint64_t heap = heap_now() - m->heap_before;

	m->n_pages = (uint64_t)number + 1;
	m->heap = heap > m->heap ? heap : m->heap;
	return 0;
}

static int measure(struct measure *m, struct elf_file *f, const struct elf_rows_options *options,
		   struct error *err)
{
	struct pages_maker *maker = NULL;
	uint64_t base;
	int64_t start;
	int r;

	m->heap_before = heap_now();
	start = clock_mono();
	maker = pages_new(number_rule, count_page, m);
	if (!maker)
		return error_errno(err, -ENOMEM, "cannot make pages");
	r = elf_rows_read(f, options, pages_add, maker, &m->stats, err);
	if (r == 0)
		r = pages_finish(maker, &base);
	pages_get_stats(maker, &m->pages);
	m->ns = clock_mono() - start;
	pages_free(maker);
	return r < 0 && !err->code ? error_errno(err, r, "cannot make pages of its rows") : r;
}

static void measure_fini(struct measure *m)
{
	vec_free(&m->rules);
	index_free(&m->index);
}

static uint64_t total_bytes(const struct measure *m)
{
	return m->pages.bytes + m->n_pages * REFERENCE_BYTES;
}

static double per_row(const struct measure *m)
{
	return m->pages.rows ? (double)total_bytes(m) / (double)m->pages.rows : 0;
}

static int print_json(const struct measure *m, const char *path)
{
	json_t *sources = json_object();
	json_t *all;
	int r = 0;

	for (size_t i = 0; i < ELF_ROWS_SOURCES; i++)
		r |= json_object_set_new(sources, source_names[i],
					 json_integer((json_int_t)m->stats.rows[i]));
	all = json_pack("{s:s, s:I, s:I, s:f, s:f, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:b}", "path",
			path, "rows", (json_int_t)m->pages.rows, "bytes",
			(json_int_t)total_bytes(m), "bytes_per_row", per_row(m), "seconds",
			(double)m->ns / (double)NS_PER_SEC, "peak_heap", (json_int_t)m->heap,
			"source", sources, "functions", (json_int_t)m->stats.functions, "pages",
			(json_int_t)m->pages.pages, "rules", (json_int_t)m->rules.n,
			"inexpressible", (json_int_t)m->stats.inexpressible, "broken",
			(json_int_t)m->stats.broken, "auxiliary", m->stats.aux);
	if (r == 0 && all)
		r = json_dumpf(all, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(all);
	return all ? r : -1;
}

static void print_figures(const struct measure *m, const char *path)
{
	printf("%s\n  rows            %" PRIu64 " of %" PRIu64 " functions\n", path, m->pages.rows,
	       m->stats.functions);
	for (size_t i = 0; i < ELF_ROWS_SOURCES; i++)
		if (m->stats.rows[i])
			printf("  from %-13s %" PRIu64 "\n", source_names[i], m->stats.rows[i]);
	printf("  bytes           %" PRIu64 ", %.2f a row, in %" PRIu64 " pages\n"
	       "  rules           %zu%s\n"
	       "  not expressible %" PRIu64 "\n"
	       "  broken          %" PRIu64 " functions\n"
	       "  read in         %.2f ms, with at most %" PRIu64 " KiB of heap\n",
	       total_bytes(m), per_row(m), m->pages.pages, m->rules.n,
	       m->stats.aux ? ", with auxiliary words" : "", m->stats.inexpressible,
	       m->stats.broken, (double)m->ns / 1e6, m->heap / 1024);
}

static const char *register_name(uint16_t machine, uint32_t n)
{
	static const char *const x86[] = {
		"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
		"r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip",
	};
	static const char *const arm[] = {
		"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",  "x8",  "x9",  "x10",
		"x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",
		"x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp",
	};

	if (machine != EM_X86_64)
		return arm[n & 31];
	return n < sizeof(x86) / sizeof(x86[0]) ? x86[n] : "?";
}

struct printer {
	uint16_t machine;
	bool aux;
	struct buf line;
};

static void put_cfa(struct printer *p, uint64_t rule)
{
	const char *base = register_name(p->machine, unwind_rule_base(rule));
	const char *other = register_name(p->machine, unwind_rule_other(rule));
	long long offset = unwind_rule_offset(rule), extra = unwind_rule_extra(rule);

	switch (unwind_rule_cfa(rule)) {
	case UNWIND_CFA_REG:
		buf_printf(&p->line, "%s%+lld", base, offset);
		break;
	case UNWIND_CFA_CHILD:
		buf_printf(&p->line, "%s%+lld, or outermost in a new thread", base, offset);
		break;
	case UNWIND_CFA_DEREF:
		buf_printf(&p->line, "*(%s%+lld)%+lld", base, offset, extra);
		break;
	case UNWIND_CFA_INDEX:
		buf_printf(&p->line, "*(%s+8*%s%+lld)%+lld", base, other, offset, extra);
		break;
	default:
		buf_printf(&p->line, "%s%+lld, and 8 from byte %lld of 16 on", base, offset, extra);
	}
}

static void put_saved(struct printer *p, uint64_t rule)
{
	const char *from = unwind_rule_frame(rule) ? "fp" : "CFA";
	long long fp = unwind_rule_fp(rule) * 8;

	if (unwind_rule_ra(rule) == UNWIND_RA_ALONE)
		buf_printf(&p->line, "  fp kept  ra CFA%+lld", fp);
	else if (unwind_rule_fp(rule) == UNWIND_FP_SAME)
		buf_printf(&p->line, "  fp kept");
	else
		buf_printf(&p->line, "  fp %s%+lld", from, fp);
	if (unwind_rule_ra(rule) == UNWIND_RA_CFA)
		buf_printf(&p->line, "  ra CFA-8");
	else if (unwind_rule_ra(rule) == UNWIND_RA_FP)
		buf_printf(&p->line, "  ra %s%+lld", from, fp + 8);
	else if (unwind_rule_ra(rule) == UNWIND_RA_REGISTER)
		buf_printf(&p->line, "  ra %s", register_name(p->machine, unwind_rule_other(rule)));
}

static void put_aux(struct printer *p, uint64_t aux)
{
	static const uint8_t x86[UNWIND_PRESERVED_X86] = {UNWIND_X86_RBX, 12, 13, 14, 15};
	bool is_x86 = p->machine == EM_X86_64;

	for (uint32_t i = 0; i < (is_x86 ? UNWIND_PRESERVED_X86 : UNWIND_PRESERVED_ARM); i++) {
		uint32_t part = (uint32_t)(is_x86 ? aux >> 12 * i & 0xfff : aux >> 6 * i & 63);
		int n = part & 0x400 ? (int)(part & 0x7ff) - 0x800 : (int)(part & 0x7ff);

		if (!part)
			continue;
		buf_printf(&p->line, "  %s",
			   register_name(p->machine, is_x86 ? x86[i] : UNWIND_ARM_X19 + i));
		if (part == (is_x86 ? UNWIND_AUX_X86_LOST : UNWIND_AUX_ARM_LOST))
			buf_printf(&p->line, " lost");
		else if (is_x86)
			buf_printf(&p->line, " %s%+d", part & UNWIND_AUX_X86_FRAME ? "fp" : "CFA",
				   8 * n);
		else
			buf_printf(&p->line, " CFA-%u", 8 * part);
	}
}

static int print_row(void *context, const struct elf_row *row)
{
	struct printer *p = context;

	buf_clear(&p->line);
	switch (unwind_rule_cfa(row->rule)) {
	case UNWIND_CFA_NONE:
		buf_printf(&p->line, "nothing known");
		break;
	case UNWIND_CFA_END:
		buf_printf(&p->line, "outermost frame");
		break;
	case UNWIND_CFA_SIGNAL:
		buf_printf(&p->line, "signal frame, registers at %s%+lld",
			   register_name(p->machine, unwind_rule_base(row->rule)),
			   (long long)unwind_rule_offset(row->rule));
		break;
	default:
		put_cfa(p, row->rule);
		put_saved(p, row->rule);
		put_aux(p, row->aux);
	}
	if (p->line.failed)
		return -ENOMEM;
	printf("%016" PRIx64 "  %.*s\n", row->address, STR_FMT(buf_str(&p->line)));
	return ferror(stdout) ? -EIO : 0;
}

static int print_rows(struct elf_file *f, const struct elf_rows_options *options, struct error *err)
{
	struct printer p = {.machine = f->machine};
	struct elf_rows_stats stats;
	int r = elf_rows_read(f, options, print_row, &p, &stats, err);

	buf_free(&p.line);
	return r < 0 && !err->code ? error_errno(err, r, "cannot print the rows") : r;
}

static int dump(struct elf_file *f, const struct elf_file *debug, const char *path, bool json,
		struct error *err)
{
	const struct elf_rows_options options = {.debug = debug};
	struct measure m = {0};
	int r = measure(&m, f, &options, err);

	if (r == 0 && json)
		r = print_json(&m, path) < 0 ? error_errno(err, -EIO, "cannot be printed") : 0;
	if (r == 0 && !json)
		print_figures(&m, path);
	measure_fini(&m);
	return r < 0 || json ? r : print_rows(f, &options, err);
}

static int open_elf(const char *path, struct elf_file *f, int *ret_fd, struct error *err)
{
	*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? error_errno(err, -errno, "cannot be opened")
			   : elf_file_open(f, *ret_fd, err);
}

int main(int argc, char **argv)
{
	bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
	_cleanup_(closep) int fd = -1, debug_fd = -1;
	struct elf_file f = ELF_FILE_NULL, debug = ELF_FILE_NULL;
	const char *path = argv[1 + json], *debug_path = path ? argv[2 + json] : NULL;
	struct error err = ERROR_NULL;
	int r;

	if (!path) {
		fputs("usage: elf-rows-dump [--json] FILE [DEBUG-FILE]\n", stderr);
		return 2;
	}
	r = open_elf(path, &f, &fd, &err);
	if (r == 0 && debug_path)
		r = open_elf(debug_path, &debug, &debug_fd, &err);
	if (r == 0 && debug_path)
		r = elf_file_load_sections(&debug, &err);
	if (r == 0)
		r = dump(&f, debug_path ? &debug : NULL, path, json, &err);
	elf_file_close(&f);
	elf_file_close(&debug);
	if (r == 0 && fflush(stdout) != 0)
		r = error_errno(&err, -errno, "cannot print");
	if (r < 0)
		fprintf(stderr, "elf-rows-dump: %s: %s\n", path, err.text);
	return r < 0;
}
