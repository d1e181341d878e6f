/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugins of runtimes read of a process. The first byte says what the others are:
 *
 *   m  memory at IMAGE, which begins with the addresses of a JVM's exported symbols
 *   j  a report of the JVM's program; p: of CPython's
 *   l  a number of eight bytes, and a table of lines or of source positions
 *
 * Walks of frames are tried over recorded states by tests/runtime. */
#include "fuzz.h"

#include "base/check.h"
#include "jvm/jvm-layout.h"
#include "jvm/line-table.h"
#include "jvm/reports.h"
#include "jvm/vm-structs.h"
#include "python/names.h"
#include "v8/code/positions.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define IMAGE       0x10000
#define CACHE_BYTES (1u << 20)

static struct target_memory *memory_of(const uint8_t *bytes, size_t n)
{
	static struct target_reader *reader;
	struct target_memory *m;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (!reader)
		reader = target_reader_new(false);
	check(reader && fd >= 0 && pwrite(fd, bytes, n, IMAGE) == (ssize_t)n);
	check(target_memory_of(reader, fd, &m) == 0);
	return m;
}

static void use_memory(const uint8_t *bytes, size_t n)
{
	static struct jvm_process p;
	uint64_t addresses[VM_SYMBOLS];
	struct target_memory *m;
	struct vm_structs vm;

	if (n < sizeof(addresses))
		return;
	memcpy(addresses, bytes, sizeof(addresses));
	m = memory_of(bytes, n);
	memset(&p, 0, sizeof(p));
	if (vm_structs_read(m, addresses, NULL, &vm) == 0 &&
	    !layout_offsets(&vm, target_memory_word32(m, vm.values[VM_MAJOR]), &p.at) &&
	    layout_code(m, &vm, &p) == 0) {
		check(p.n_heaps > 0 && p.n_heaps <= JVM_HEAPS);
		check(p.n_entries <= JVM_ENTRIES && p.n_exits <= JVM_EXITS);
	}
	target_memory_close(m);
}

/* From memory of just its size, aligned as the ring's records are. */
static void use_report(const uint8_t *bytes, size_t n, bool python)
{
	struct name_cache *cache = name_cache_new(CACHE_BYTES);
	struct report_site site;
	struct line_table lines;
	struct name name = {0};
	void *report = malloc(n ? n : 1);
	uint32_t first;
	uint64_t id = 0;

	check(cache && report);
	memcpy(report, bytes, n);
	name_cache_begin(cache);
	if (python && n >= sizeof(struct python_record)) {
		id = ((const struct python_record *)report)->id;
		names_add(cache, report, n, NULL);
	} else if (!python) {
		report_keep(cache, report, n, &id);
	}
	if (name_cache_find(cache, id, &name)) {
		lines = names_lines(&name);
		if (python)
			line_at(&lines, 7);
		else if (name.kind == REPORT_SITE)
			check(report_site(&name, &site) == 0 && site.n <= JVM_INLINED);
		else
			line_find(name.table, name.n_table, name.kind == REPORT_METHOD_19, 7,
				  &first);
	}
	free(report);
	name_cache_free(cache);
}

static void use_table(const uint8_t *bytes, size_t n)
{
	struct v8_binary b = {.positions_shift = 1 + (n & 1)};
	struct position position;
	uint64_t at;
	uint32_t first;

	if (n < sizeof(at))
		return;
	memcpy(&at, bytes, sizeof(at));
	bytes += sizeof(at);
	n -= sizeof(at);
	for (uint32_t kind = PYTHON_LINES_LNOTAB; kind <= PYTHON_LINES_LOCATIONS; kind++)
		line_at(&(struct line_table){bytes, n, kind, 1}, at);
	line_find(bytes, n, 0, (uint32_t)at, &first);
	line_find(bytes, n, 1, (uint32_t)at, &first);
	positions_find(bytes, (uint32_t)n, &b, (uint32_t)at, &position);
	positions_fit(bytes, (uint32_t)n, &b, at);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	if (n == 0)
		return 0;
	switch (bytes[0]) {
	case 'm':
		use_memory(bytes + 1, n - 1);
		break;
	case 'j':
	case 'p':
		use_report(bytes + 1, n - 1, bytes[0] == 'p');
		break;
	default:
		use_table(bytes + 1, n - 1);
	}
	return 0;
}
