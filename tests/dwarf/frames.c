/* SPDX-License-Identifier: Apache-2.0 */
/* frames FILE [ALT [PACKAGE]]: reads addresses from standard input, one in hex a line, and prints
 * for each its frames, innermost first, as "NAME FILE:LINE:COLUMN" a line, "?" for what is unknown,
 * and an empty line. "-" for a file that there is not. Split units that lie in files of their own
 * are found where the program says. The function itself bears its symbol's name, where there is
 * one. frames --quiet …: prints only figures. frames --debug-names …: the function itself bears the
 * name that debug information has. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "dwarf/dwarf.h"
#include "elf/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

static int open_arg(char **argv, int argc, int i)
{
	int fd;

	if (i >= argc || !strcmp(argv[i], "-"))
		return -1;
	fd = open(argv[i], O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		perror(argv[i]);
	return fd;
}

static struct str or_unknown(const struct dwarf_frames *f, struct dwarf_text t)
{
	return t.n ? dwarf_frame_text(f, t) : STR("?");
}

static void print(const struct dwarf_frames *f, const struct buf *symbol)
{
	for (size_t i = 0; i < f->list.n; i++) {
		const struct dwarf_frame *frame = &f->list.p[i];
		struct str name = or_unknown(f, frame->function);

		if (i + 1 == f->list.n && symbol->n)
			name = buf_str(symbol);
		printf("%.*s %.*s:%u:%u\n", STR_FMT(name), STR_FMT(or_unknown(f, frame->file)),
		       frame->line, frame->column);
	}
}

static void load_symbols(int fd, struct elf_symbols *ret)
{
	struct elf_file f = ELF_FILE_NULL;

	if (elf_file_open(&f, fd, NULL) == 0)
		elf_symbols_load(ret, &f, 1u << 24, NULL);
	elf_file_close(&f);
}

/* As whoever has andiron.objects/1 does. */
static bool add_wanted(struct dwarf *d)
{
	bool added = false;
	const char *path;

	while ((path = dwarf_wants(d))) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		added |= fd >= 0 && dwarf_add_split(d, fd) == 0;
	}
	return added;
}

static void print_figures(uint64_t n, uint64_t found, int64_t opened_ns, int64_t start_ns,
			  const struct dwarf *d)
{
	int64_t now = clock_mono();
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	printf("opened in %.3f s; %" PRIu64 " addresses, %" PRIu64
	       " found, in %.3f s: %.0f a second; %.1f MB kept, peak resident %.1f MB\n",
	       (double)(opened_ns - start_ns) / 1e9, n, found, (double)(now - opened_ns) / 1e9,
	       (double)n * 1e9 / (double)(now - opened_ns), (double)dwarf_bytes(d) / 1e6,
	       (double)usage.ru_maxrss / 1e3);
}

/* One address that was found, or not. */
static void print_answer(struct dwarf_frames *f, int r, const struct buf *symbol)
{
	if (r == -ENOENT && vec_push(&f->list, (struct dwarf_frame){0}))
		r = 0;
	if (r == 0)
		print(f, symbol);
	else
		puts("! ?:0:0");
	puts("");
}

int main(int argc, char **argv)
{
	const char *option = argc > 1 ? argv[1] : "";
	bool quiet = !strcmp(option, "--quiet"), symbols_too = option[0] != '-';
	int first = symbols_too ? 1 : 2;
	struct dwarf_files files = {
		.fd = open_arg(argv, argc, first),
		.alt = open_arg(argv, argc, first + 1),
		.split = open_arg(argv, argc, first + 2),
		.max_bytes = (size_t)40 << 20,
		.steps = UINT64_MAX,
	};
	struct dwarf_frames frames = {0};
	struct elf_symbols symbols = ELF_SYMBOLS_NULL;
	struct buf symbol = BUF_NULL;
	struct error err = ERROR_NULL;
	uint64_t address, n = 0, found = 0;
	int64_t start = clock_mono(), opened;
	struct dwarf *d;
	int r = dwarf_new(&d, &files, &err);

	if (r < 0) {
		fprintf(stderr, "%s: %s (error %d)\n", argv[first], err.text, -r);
		return 1;
	}
	opened = clock_mono();
	if (symbols_too)
		load_symbols(files.fd, &symbols);
	while (scanf("%" SCNx64, &address) == 1) {
		r = dwarf_find(d, address, &frames);
		if (add_wanted(d))
			r = dwarf_find(d, address, &frames);
		n++;
		found += r == 0;
		if (quiet)
			continue;
		if (elf_symbols_find(&symbols, files.fd, address, &symbol, NULL) < 0)
			buf_clear(&symbol);
		print_answer(&frames, r, &symbol);
	}
	if (quiet)
		print_figures(n, found, opened, start, d);
	buf_free(&symbol);
	elf_symbols_free(&symbols);
	dwarf_frames_free(&frames);
	dwarf_free(d);
	return 0;
}
