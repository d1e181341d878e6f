/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of runtimes. Contract in jit.h. */
#include "elf/jit.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/search.h"
#include "elf/symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#define PIECE       ((size_t)65536)
#define MAX_BACK    64
#define MAX_RECORDS (1u << 22)  /* read at a time; most are functions */
#define DUMP_MAGIC  0x4a695444u /* "JiTD" as the writer's machine orders it */

#define CODE_LOAD 0u
#define CODE_MOVE 1u

void jit_free(struct jit *j)
{
	vec_free(&j->list);
	buf_free(&j->names);
	*j = JIT_NULL;
}

size_t jit_bytes(const struct jit *j)
{
	return j->list.capacity * sizeof(*j->list.p) + j->names.capacity;
}

struct reader {
	struct jit *j;
	int fd;
	size_t max_bytes;
	bool added;
};

static int push(struct reader *r, struct jit_function f)
{
	f.order = r->j->orders++;
	if (r->j->list.n >= JIT_MAX_FUNCTIONS)
		return -E2BIG;
	if (!vec_push(&r->j->list, f))
		return -ENOMEM;
	r->added = true;
	return 0;
}

static uint32_t bounded(uint64_t size)
{
	return size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
}

static int add(struct reader *r, uint64_t address, uint64_t size, struct str name)
{
	struct jit *j = r->j;
	struct jit_function f = {
		.address = address,
		.size = bounded(size),
		.name = (uint32_t)j->names.n,
		.length = (uint32_t)(name.n < ELF_NAME_MAX ? name.n : ELF_NAME_MAX),
	};

	if (!f.size || !f.length)
		return 0;
	if (j->names.n + f.length > r->max_bytes)
		return -E2BIG;
	return buf_append(&j->names, name.p, f.length) < 0 ? -ENOMEM : push(r, f);
}

/* --- Perf maps --- */

static bool parse_line(struct str line, uint64_t *address, uint64_t *size, struct str *name)
{
	struct str start = str_cut(&line, ' '), length = str_cut(&line, ' ');

	*name = str_trim(line);
	if (str_starts(start, STR("0x")))
		start = str_skip(start, 2);
	if (str_starts(length, STR("0x")))
		length = str_skip(length, 2);
	return str_hex(start, address) && str_hex(length, size);
}

/* The whole lines of a piece; how many bytes they are. */
static int take_lines(struct reader *r, struct str piece, size_t *ret_n)
{
	size_t end = str_rfind(piece, '\n');
	struct str rest = str_first(piece, end);

	*ret_n = end < piece.n ? end + 1 : 0;
	if (!*ret_n)
		return 0;
	while (rest.n) {
		struct str line = str_cut(&rest, '\n'), name;
		uint64_t address, size;
		int e = parse_line(line, &address, &size, &name) ? add(r, address, size, name) : 0;

		if (e < 0)
			return e;
	}
	return 0;
}

static int read_map(struct reader *r, uint64_t size)
{
	_cleanup_(freep) char *piece = malloc(PIECE);

	if (!piece)
		return -ENOMEM;
	while (r->j->at < size) {
		size_t n = size - r->j->at < PIECE ? (size_t)(size - r->j->at) : PIECE, taken = 0;
		int e = file_pread(r->fd, piece, n, r->j->at);

		if (e == 0)
			e = take_lines(r, (struct str){piece, n}, &taken);
		if (e < 0)
			return e;
		check(taken <= n);
		/* A line longer than a piece is none. */
		if (!taken && n < PIECE)
			return 0;
		r->j->at += taken ? taken : n;
	}
	return 0;
}

/* --- jitdump --- */

struct record {
	uint32_t kind, size;
	uint64_t time;
};

struct code_load {
	uint32_t pid, tid;
	uint64_t vma, address, size, index;
};

struct code_move {
	uint32_t pid, tid;
	uint64_t vma, from, to, size, index;
};

static int take_load(struct reader *r, uint64_t at, uint32_t size)
{
	char name[ELF_NAME_MAX];
	struct code_load load;
	size_t n = size - sizeof(struct record);
	int e;

	if (n < sizeof(load))
		return 0;
	n -= sizeof(load);
	n = n < sizeof(name) ? n : sizeof(name);
	at += sizeof(struct record);
	e = file_pread(r->fd, &load, sizeof(load), at);
	if (e == 0)
		e = file_pread(r->fd, name, n, at + sizeof(load));
	return e < 0 ? e : add(r, load.address, load.size, (struct str){name, strnlen(name, n)});
}

static int by_address(const void *x, const void *y)
{
	const struct jit_function *a = x, *b = y;

	return compare(a->address, b->address) ?: compare(a->order, b->order);
}

/* What has moved keeps its name. Moves are rare: the list is searched from its end. */
static int take_move(struct reader *r, uint64_t at, uint32_t size)
{
	struct code_move move;
	int e;

	if (size < sizeof(struct record) + sizeof(move))
		return 0;
	e = file_pread(r->fd, &move, sizeof(move), at + sizeof(struct record));
	for (size_t i = r->j->list.n, tries = 0; e == 0 && i-- && tries < 4096; tries++) {
		struct jit_function f = r->j->list.p[i];

		if (f.address != move.from)
			continue;
		f.address = move.to;
		f.size = bounded(move.size);
		return f.size ? push(r, f) : 0;
	}
	return e;
}

static int read_dump(struct reader *r, uint64_t size)
{
	struct record record;

	for (uint32_t n = 0; size - r->j->at >= sizeof(record); n++) {
		int e = file_pread(r->fd, &record, sizeof(record), r->j->at);

		if (e == 0 && n == MAX_RECORDS)
			e = -E2BIG;
		if (e < 0)
			return e;
		if (record.size < sizeof(record))
			return -ENOEXEC;
		if (record.size > size - r->j->at)
			return 0;
		if (record.kind == CODE_LOAD)
			e = take_load(r, r->j->at, record.size);
		else if (record.kind == CODE_MOVE)
			e = take_move(r, r->j->at, record.size);
		if (e < 0)
			return e;
		r->j->at += record.size;
	}
	return 0;
}

/* Which kind of file it is, by how it begins; 0 also where it is empty yet. */
static int begin(struct reader *r, uint64_t size)
{
	uint64_t address, length;
	uint32_t head[10];
	char line[256];
	struct str text = {line, size < sizeof(line) ? (size_t)size : sizeof(line)}, name;
	int e = file_pread(r->fd, line, text.n, 0);

	if (e < 0 || size == 0)
		return e;
	if (size >= sizeof(head)) {
		memcpy(head, line, sizeof(head));
		if (head[0] == DUMP_MAGIC) {
			r->j->dump = true;
			r->j->at = head[2] < size ? head[2] : size;
			return head[2] >= sizeof(head) ? 0 : -ENOEXEC;
		}
	}
	text = str_first(text, str_find(text, '\n'));
	return parse_line(text, &address, &length, &name) ? 0 : -ENOEXEC;
}

int jit_load(struct jit *j, int fd, size_t max_bytes)
{
	struct reader r = {.j = j, .fd = fd, .max_bytes = max_bytes};
	struct stat st;
	int e = 0;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	if ((uint64_t)st.st_size < j->at)
		jit_free(j);
	if ((uint64_t)st.st_size <= j->at)
		return 0;
	if (j->at == 0)
		e = begin(&r, (uint64_t)st.st_size);
	if (e == 0)
		e = j->dump ? read_dump(&r, (uint64_t)st.st_size)
			    : read_map(&r, (uint64_t)st.st_size);
	if (r.added)
		qsort(j->list.p, j->list.n, sizeof(*j->list.p), by_address);
	return e < 0 ? e : r.added;
}

bool jit_find(const struct jit *j, uint64_t address, struct str *ret)
{
	const struct jit_function *best = NULL;
	size_t low = search_partition(j->list.n, i, j->list.p[i].address <= address);

	for (size_t back = 0; low && back < MAX_BACK; back++, low--) {
		const struct jit_function *f = &j->list.p[low - 1];

		if (address - f->address < f->size && (!best || f->order > best->order))
			best = f;
	}
	check(!best || best->length <= j->names.n - best->name);
	if (best)
		*ret = (struct str){j->names.p + best->name, best->length};
	return best;
}
