/* SPDX-License-Identifier: Apache-2.0 */
/* See tasks.h. _Py_DebugOffsets: internal/pycore_debug_offsets.h. Py_AsyncioModuleDebugOffsets:
 * Modules/_asynciomodule.c; section .AsyncioDebug. States of a coroutine: internal/pycore_frame.h.
 * All as of 3.14.10. */
#include "python/tasks.h"

#include "runtime-kit/elf-file.h"

#include <stdlib.h>
#include <string.h>

#define SECTION ".AsyncioDebug"
#define ENTRY   "PyInit__asyncio" /* what the dynamic linker finds the module by */
#define SPAN    256u              /* bytes of an object, at most */

/* Words of _Py_DebugOffsets. */
enum {
	INTERP_BYTES = 6,
	FRAME_STACK = 37,
	SET_USED = 63,
	SET_TABLE,
	SET_MASK,
	GEN_FRAME = 85,
	GEN_STATE,
};

/* Words of Py_AsyncioModuleDebugOffsets. */
enum {
	TASK_BYTES,
	TASK_NAME,
	TASK_AWAITER,
	TASK_IS_TASK,
	TASK_IS_SET,
	TASK_CORO,
	ASYNCIO_INTERP_BYTES = 7,
	THREAD_BYTES = 9,
	THREAD_TASK = 11,
	N_WORDS = 13,
};

/* A word that is less than `limit` and a multiple of `step`. */
static bool take(uint64_t word, uint64_t limit, uint64_t step, uint16_t *ret)
{
	if (word >= limit || word % step != 0)
		return false;
	*ret = (uint16_t)word;
	return true;
}

void tasks_of_runtime(const unsigned char *bytes, size_t n, const struct python_layout *l,
		      struct tasks *ret)
{
	uint64_t words[GEN_STATE + 1];
	struct python_tasks k = {.suspended = 0xfe, .awaiting = 0xff, .executing = 0};

	*ret = (struct tasks){0};
	if (l->version >> 16 != 0x030e || n < sizeof(words))
		return;
	memcpy(words, bytes, sizeof(words));
	if (words[INTERP_BYTES] == 0 ||
	    !take(words[FRAME_STACK], l->frame_span, 8, &k.frame_stack) ||
	    !take(words[SET_USED], SPAN, 8, &k.set_used) ||
	    !take(words[SET_TABLE], SPAN, 8, &k.set_table) ||
	    !take(words[SET_MASK], SPAN, 8, &k.set_mask) ||
	    !take(words[GEN_FRAME], SPAN - PYTHON_FRAME_SPAN + 1, 8, &k.gen_frame) ||
	    !take(words[GEN_STATE], SPAN - PYTHON_FRAME_SPAN, 1, &k.gen_state))
		return;
	k.gen_span = (uint16_t)(k.gen_frame + l->frame_span);
	if (k.gen_state >= k.gen_span)
		return;
	*ret = (struct tasks){words[INTERP_BYTES], k};
}

static bool read_section(const struct elf_file *f, struct tasks *ret)
{
	const Elf64_Shdr *section = elf_section(f, SECTION);
	struct python_tasks *k = &ret->fields;
	uint64_t words[N_WORDS], span;

	if (!section || !elf_read_all(f, section->sh_addr, words, sizeof(words)))
		return false;
	span = words[TASK_BYTES];
	if (span < 16 || span > SPAN || span % 8 != 0)
		return false;
	k->task_span = (uint16_t)span;
	ret->interp_bytes = words[ASYNCIO_INTERP_BYTES];
	return ret->interp_bytes != 0 && take(words[TASK_NAME], span, 8, &k->task_name) &&
	       take(words[TASK_AWAITER], span, 8, &k->task_awaiter) &&
	       take(words[TASK_CORO], span, 8, &k->task_coro) &&
	       take(words[TASK_IS_TASK], span, 1, &k->task_is_task) &&
	       take(words[TASK_IS_SET], span, 1, &k->task_is_set) &&
	       words[THREAD_BYTES] <= 0x8000 &&
	       take(words[THREAD_TASK], words[THREAD_BYTES], 8, &k->thread_task);
}

struct tasks *tasks_read(int fd)
{
	struct elf_file *f = malloc(sizeof(*f));
	struct tasks *ret = NULL;
	struct elf_symbol entry;

	if (f && elf_open(f, fd) && elf_dynamic_symbol(f, ENTRY, &entry))
		ret = calloc(1, sizeof(*ret));
	if (ret && !read_section(f, ret)) {
		free(ret);
		ret = NULL;
	}
	free(f);
	return ret;
}

bool tasks_joined(const struct tasks *interpreter, const struct tasks *asyncio,
		  struct python_tasks *ret)
{
	const struct python_tasks *k = &asyncio->fields;

	if (interpreter->interp_bytes == 0 || interpreter->interp_bytes != asyncio->interp_bytes)
		return false;
	*ret = interpreter->fields;
	ret->thread_task = k->thread_task;
	ret->task_span = k->task_span;
	ret->task_name = k->task_name;
	ret->task_coro = k->task_coro;
	ret->task_awaiter = k->task_awaiter;
	ret->task_is_task = k->task_is_task;
	ret->task_is_set = k->task_is_set;
	return true;
}
