/* SPDX-License-Identifier: Apache-2.0 */
/* Walks recordings of real stacks (recording.py; the folder is RECORDINGS) natively: the kernel's
 * own walker over tables made of the very files, and every frame has to be gdb's. No kernel takes
 * part, so it runs under the sanitizers. What differs is told by recording.
 *
 * The copy that the walker gets is what the kernel would hand over (SAMPLER_SNAPSHOT_PARTS): where
 * it ends, the frames so far have to be right. Recordings where gdb itself did not come to the
 * thread's entry are walked, for the sanitizers' sake, and not compared. */
#include "host/objects/objects.h"
#include "ebpf/unwind-store/mapped-rows.h"
#include "ebpf/tests/test-kernel.h"
#include "ebpf/unwind-store/unwind-store.h"
#include "ebpf/unwinding/native-unwind.h"

#include "base/buf.h"
#include "base/file.h"
#include "testing/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_MAX    4096u
#define RECORDING_MAX (8u << 20)

static const char *const names[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
				    "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

struct replay {
	struct test_kernel kernel;
	struct andiron_extension service; /* of objects */
	struct objects *objects;
	struct mapped_files *images;
	struct unwind *store;
	uint32_t n_processes;
	uint32_t n_same, n_cut, n_beyond, n_different;
};

struct recording {
	struct sampler_snapshot snapshot; /* without its stack */
	uint8_t stack[SAMPLER_SNAPSHOT_PARTS * SAMPLER_SNAPSHOT_BYTES];
	uint64_t n_stack;
	struct buf maps; /* in the words of /proc/PID/maps */
	uint64_t pcs[FRAMES_MAX];
	uint32_t n_pcs;
	bool whole;
};

static uint64_t hex(struct str word)
{
	uint64_t value = 0;

	for (size_t i = 0; i < word.n; i++) {
		const char *digits = "0123456789abcdef";
		const char *at = strchr(digits, word.p[i]);

		if (!at || !word.p[i])
			test_fail(__FILE__, __LINE__, "\"%.*s\" is no number", STR_FMT(word));
		value = value << 4 | (uint64_t)(at - digits);
	}
	return value;
}

static void take_register(struct recording *r, struct str name, uint64_t value)
{
	if (str_is(name, "rip"))
		r->snapshot.pc = value;
	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_is(name, names[i])) {
			r->snapshot.regs[i] = value;
			r->snapshot.known |= 1u << i;
		}
}

/* From the stack pointer on, as the kernel copies it. */
static void take_stack(struct recording *r, uint64_t start, struct str bytes)
{
	uint64_t sp = r->snapshot.regs[WALK_STACK_POINTER];
	size_t skip = 2 * (size_t)(sp - start);

	r->n_stack = sp - sampler_snapshot_start(sp);
	for (size_t i = skip; i + 2 <= bytes.n && r->n_stack < sizeof(r->stack); i += 2)
		r->stack[r->n_stack++] = (uint8_t)hex((struct str){bytes.p + i, 2});
}

static void take_line(struct recording *r, struct str line)
{
	struct str kind = str_cut(&line, ' '), first = str_cut(&line, ' ');

	if (str_is(kind, "reg")) {
		take_register(r, first, hex(line));
	} else if (str_is(kind, "map")) {
		struct str end = str_cut(&line, ' '), offset = str_cut(&line, ' ');

		buf_printf(&r->maps, "%.*s-%.*s r-xp %.*s 00:00 1 %.*s\n", STR_FMT(first),
			   STR_FMT(end), STR_FMT(offset), STR_FMT(line));
	} else if (str_is(kind, "stack")) {
		take_stack(r, hex(first), line);
	} else if (str_is(kind, "pc") && r->n_pcs < FRAMES_MAX) {
		r->pcs[r->n_pcs++] = hex(first);
	} else if (str_is(kind, "whole")) {
		r->whole = true;
	}
}

static struct recording *read_recording(const char *path)
{
	struct recording *r = calloc(1, sizeof(*r));
	struct buf text = BUF_NULL;
	struct str rest;

	expect(r != NULL);
	if (file_read(AT_FDCWD, path, &text, RECORDING_MAX) != 0)
		test_fail(__FILE__, __LINE__, "%s cannot be read", path);
	for (rest = buf_str(&text); rest.n > 0;)
		take_line(r, str_cut(&rest, '\n'));
	buf_free(&text);
	r->snapshot.exact = 1;
	return r;
}

static int open_by_path(void *context, const struct maps_line *line, char *reopen, size_t n)
{
	char path[4096];

	if (line->path.n == 0 || line->path.p[0] != '/' || line->path.n >= sizeof(path))
		return -1;
	memcpy(path, line->path.p, line->path.n);
	path[line->path.n] = '\0';
	return open(path, O_RDONLY | O_CLOEXEC);
}

static const uint8_t *slab(void *context, uint32_t number)
{
	return unwind_slab(context, number);
}

/* Whether the frames are gdb's: callers one byte less, and none too many. */
static bool same(const struct recording *r, const struct andiron_walk *w)
{
	if (w->n_words > r->n_pcs || (w->end == UNWIND_END_COMPLETE && w->n_words != r->n_pcs))
		return false;
	for (uint32_t i = 0; i < w->n_words; i++)
		if (w->frames[i] != r->pcs[i] && (i == 0 || w->frames[i] != r->pcs[i] - 1))
			return false;
	return w->end == UNWIND_END_COMPLETE || w->end == UNWIND_END_CUT;
}

static void tell(const char *path, const struct recording *r, const struct andiron_walk *w)
{
	uint32_t i = 0;

	while (i < w->n_words && i < r->n_pcs && (w->frames[i] | 1) - (r->pcs[i] & ~1ull) < 2)
		i++;
	printf("# %s: %u frames, end %u; gdb has %u; from frame %u on\n", path, w->n_words, w->end,
	       r->n_pcs, i);
}

static void replay_one(struct replay *p, const char *path)
{
	struct sampler_process_key key = {.start_ns = 1, .tgid = ++p->n_processes};
	struct recording *r = read_recording(path);
	struct andiron_walk *w = calloc(1, sizeof(*w));
	struct walk_tables tables = {
		p->store, slab,           p->kernel.rules, UNWIND_RULES_MAX + 1,
		~0ull,    p->kernel.rows, p->kernel.chains};
	const struct walk_stack stacks[SAMPLER_COPIES] = {
		[SAMPLER_COPY_STACK] = {
			r->stack, r->n_stack,
			sampler_snapshot_start(r->snapshot.regs[WALK_STACK_POINTER])}};
	struct mapset *set = mapset_parse(buf_str(&r->maps), p->images, open_by_path, NULL, NULL,
					  NULL);

	expect(set && w);
	while (unwind_map(p->store, &key, 1, set) == 1)
		unwind_wait(p->store);
	walk_snapshot(&tables, &r->snapshot, stacks, unwind_word(p->store, &key, 1), w);
	if (!r->whole)
		p->n_beyond++;
	else if (!same(r, w))
		p->n_different++, tell(path, r, w);
	else if (w->end == UNWIND_END_CUT)
		p->n_cut++;
	else
		p->n_same++;
	unwind_unmap(p->store, &key);
	mapset_free(set);
	buf_free(&r->maps);
	free(r);
	free(w);
}

static void init(struct replay *p)
{
	struct unwind_kernel kernel;
	struct error err = ERROR_NULL;

	expect_eq(objects_new(&p->objects, &err), 0);
	p->service = (struct andiron_extension){&objects_service, p->objects};
	test_kernel_init(&p->kernel);
	kernel = test_kernel_all(&p->kernel);
	p->images = mapped_files_new(&p->service);
	p->store = unwind_new(&kernel, &(struct unwind_options){UINT64_C(96) << 20,
								mapped_rows_read, &p->service});
	expect(p->images && p->store);
}

static void fini(struct replay *p)
{
	unwind_free(p->store);
	mapped_files_free(p->images);
	objects_free(p->objects);
	test_kernel_fini(&p->kernel);
}

static void replay_all(struct replay *p, const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	char path[4096];

	if (!dir)
		test_fail(__FILE__, __LINE__, "%s cannot be read", folder);
	while ((entry = readdir(dir)))
		if (strstr(entry->d_name, ".stack")) {
			snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
			replay_one(p, path);
		}
	closedir(dir);
}

/* Walked natively, real stacks are gdb's, frame by frame. */
TEST(recorded_stacks_are_walked_as_gdb_does)
{
	const char *folder = getenv("RECORDINGS");
	struct replay p = {0};
	uint32_t n;

	if (!folder)
		test_skip("RECORDINGS names no folder of recordings: recording.py makes one");
	init(&p);
	replay_all(&p, folder);
	n = p.n_same + p.n_cut + p.n_different;
	printf("# %u recordings: %u the same, %u the same as far as the copy goes, %u different; "
	       "%u beyond gdb's reach\n",
	       n + p.n_beyond, p.n_same, p.n_cut, p.n_different, p.n_beyond);
	expect(n > 0);
	expect(p.n_different * 100 <= n);
	fini(&p);
}
