/* SPDX-License-Identifier: Apache-2.0 */
/* lookup FILE: reads addresses from standard input, one in hex a line, and prints the name of the
 * function that covers each, or "-". lookup --bench FILE: figures of loading its table and of
 * finding names. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "elf/symbols.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

struct opened {
	int fd;
	struct elf_file f;
	struct elf_symbols s;
};

static int open_symbols(struct opened *o, const char *path)
{
	struct error err = ERROR_NULL;
	int r;

	o->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (o->fd < 0) {
		perror(path);
		return -1;
	}
	r = elf_file_open(&o->f, o->fd, &err);
	if (r == 0)
		r = elf_symbols_load(&o->s, &o->f, 1u << 24, &err);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", path, err.text);
	return r;
}

static int name_addresses(const struct opened *o)
{
	_cleanup_(buf_free) struct buf name = BUF_NULL;
	uint64_t address;

	while (scanf("%" SCNx64, &address) == 1) {
		if (elf_symbols_find(&o->s, o->fd, address, &name, NULL) == 0)
			printf("%.*s\n", STR_FMT(buf_str(&name)));
		else
			puts("-");
	}
	return 0;
}

static double seconds_since(int64_t start)
{
	return (double)(clock_mono() - start) / (double)NS_PER_SEC;
}

static long peak_kib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

static int bench(const char *path)
{
	struct opened o = {.fd = -1};
	_cleanup_(buf_free) struct buf name = BUF_NULL;
	long before = peak_kib();
	int64_t start = clock_mono();
	uint64_t n = 0, found = 0, step, first, last;
	double load, find;

	if (open_symbols(&o, path) < 0)
		return 1;
	load = seconds_since(start);
	first = o.f.n_segments ? o.f.segments[0].p_vaddr : 0;
	last = first;
	for (size_t i = 0; i < o.f.n_segments; i++)
		if (o.f.segments[i].p_type == PT_LOAD && (o.f.segments[i].p_flags & PF_X))
			last = o.f.segments[i].p_vaddr + o.f.segments[i].p_memsz;
	step = (last - first) / 100000 + 1;
	start = clock_mono();
	for (uint64_t a = first; a < last; a += step, n++)
		found += elf_symbols_find(&o.s, o.fd, a, &name, NULL) == 0;
	find = seconds_since(start);
	printf("%s: %zu functions in %.1f ms (%.1f M/s), table %.2f MiB, peak +%.2f MiB; "
	       "%" PRIu64 " of %" PRIu64 " addresses named, %.0f k/s\n",
	       path, o.s.n, load * 1e3, (double)o.s.n / load / 1e6,
	       (double)elf_symbols_bytes(&o.s) / 1048576, (double)(peak_kib() - before) / 1024,
	       found, n, (double)n / find / 1e3);
	return 0;
}

int main(int argc, char **argv)
{
	struct opened o = {.fd = -1};
	int r;

	if (argc == 3 && str_is(str_of(argv[1]), "--bench"))
		return bench(argv[2]);
	if (argc != 2)
		return 2;
	r = open_symbols(&o, argv[1]);
	if (r == 0)
		r = name_addresses(&o);
	elf_symbols_free(&o.s);
	elf_file_close(&o.f);
	closep(&o.fd);
	return r < 0;
}
