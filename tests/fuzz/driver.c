/* SPDX-License-Identifier: Apache-2.0 */
/* TARGET CORPUS: every file of the folder as it is, then inputs made of them by chance: bytes
 * changed, numbers at their borders, pieces cut, doubled, taken from another file. The same ones
 * each time, ANDIRON_FUZZ_RUNS of them (20,000). No input may take more than a second of CPU time
 * (twenty, sanitized), and all of them no more than 256 MB of memory. An input that breaks
 * something is left in ./fuzz-input. */
#include "fuzz.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/vec.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define INPUT_MAX     ((size_t)1 << 20)
#define CPU_NS_MAX    (NS_PER_SEC * (SANITIZED ? 20 : 1))
#define MEMORY_KB_MAX (256L << 10)

struct corpus {
	VEC(struct buf) files;
};

static uint64_t state = 0x9e3779b97f4a7c15;

static size_t chance(size_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return below ? (size_t)(state % below) : 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static bool load(struct corpus *c, const char *path)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent **entries;
	int n = dir < 0 ? -1 : scandir(path, &entries, NULL, by_name);

	for (int i = 0; i < n; i++) {
		struct buf b = BUF_NULL;

		if (entries[i]->d_name[0] != '.' &&
		    (file_read(dir, entries[i]->d_name, &b, INPUT_MAX) < 0 ||
		     !vec_push(&c->files, b)))
			return false;
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	closep(&dir);
	return c->files.n > 0;
}

static void put_number(struct buf *b)
{
	static const uint64_t nasty[] = {0,      1,         0x7f,       0x80,      0xff,
					 0xffff, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX};
	size_t width = (size_t)1 << chance(4), at = chance(b->n);
	uint64_t value = chance(2) ? nasty[chance(sizeof(nasty) / sizeof(nasty[0]))] : state;

	if (at + width <= b->n)
		memcpy(b->p + at, &value, width);
}

/* A piece of this or another input goes somewhere else. */
static void put_piece(struct buf *b, const struct buf *from)
{
	size_t at = chance(b->n), start = chance(from->n), n = chance(64);

	n = n < from->n - start ? n : from->n - start;
	n = n < b->n - at ? n : b->n - at;
	memmove(b->p + at, from->p + start, n);
}

static void change(struct buf *b, const struct corpus *c)
{
	size_t n;

	switch (chance(8)) {
	case 0:
		b->n -= chance(b->n);
		break;
	case 1:
		put_piece(b, &c->files.p[chance(c->files.n)]);
		break;
	case 2:
		n = chance(64) < b->n ? chance(64) % b->n : 0;
		memmove(b->p, b->p + n, b->n - n);
		b->n -= n;
		break;
	case 3:
		b->p[chance(b->n)] ^= (char)(1 << chance(8));
		break;
	default:
		put_number(b);
		break;
	}
}

static void keep(const struct buf *b)
{
	int fd = open("fuzz-input", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd >= 0)
		file_write_fd(fd, b->p, b->n);
	closep(&fd);
}

/* From memory of just its size, so that the sanitizer sees what is read behind it. */
static bool run(const struct buf *b, int64_t *longest_ns)
{
	uint8_t *exact = malloc(b->n ? b->n : 1);
	int64_t start = clock_ns(CLOCK_PROCESS_CPUTIME_ID), took;

	if (!exact)
		return false;
	if (b->n)
		memcpy(exact, b->p, b->n);
	LLVMFuzzerTestOneInput(exact, b->n);
	free(exact);
	took = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start;
	*longest_ns = took > *longest_ns ? took : *longest_ns;
	if (took <= CPU_NS_MAX)
		return true;
	keep(b);
	return false;
}

static bool run_changed(const struct corpus *c, int64_t *longest_ns)
{
	const struct buf *from = &c->files.p[chance(c->files.n)];
	_cleanup_(buf_free) struct buf b = BUF_NULL;

	if (buf_append(&b, from->p, from->n) < 0)
		return false;
	for (size_t i = 1 + chance(6); i > 0 && b.n; i--)
		change(&b, c);
	/* What crashes is found again by running to this one. */
	return run(&b, longest_ns);
}

static uint64_t n_runs(void)
{
	const char *text = getenv("ANDIRON_FUZZ_RUNS");
	uint64_t n;

	return text && str_u64(str_of(text), &n) ? n : 20000;
}

int main(int argc, char **argv)
{
	struct corpus c = {.files = {0}};
	struct rusage usage;
	int64_t longest_ns = 0;
	bool ok = argc == 2 && load(&c, argv[1]), small;

	printf("1..3\n%sok 1 - a corpus of %zu files\n", ok ? "" : "not ", c.files.n);
	for (size_t i = 0; ok && i < c.files.n; i++)
		ok = run(&c.files.p[i], &longest_ns);
	for (uint64_t i = 0; ok && i < n_runs(); i++)
		ok = run_changed(&c, &longest_ns);
	printf("%sok 2 - none took longer than %.0f s; the longest %.6f s\n", ok ? "" : "not ",
	       (double)CPU_NS_MAX / 1e9, (double)longest_ns / 1e9);
	getrusage(RUSAGE_SELF, &usage);
	small = SANITIZED || usage.ru_maxrss <= MEMORY_KB_MAX;
	printf("%sok 3 - %.1f MB at most\n", small ? "" : "not ", (double)usage.ru_maxrss / 1e3);
	vec_each (&c.files, f)
		buf_free(f);
	vec_free(&c.files);
	return !ok || !small;
}
