/* SPDX-License-Identifier: Apache-2.0 */
/* The code is a queue of codelets, each with a description. Those with "method entry point" in it
 * begin frames, by instructions that have been the same from JDK 8 to 26:
 *
 *   pop %rax; lea -8(%rsp,%rcx,8), %r14 … push %rax; push %rbp; mov %rsp, %rbp; push %r13
 *
 * Frames end by: leave; pop REG; mov REG, %rsp … jmp *REG. */
#include "jvm/interpreter-code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CODE_BYTES (4u << 20)
#define CODELETS   2000
#define TEXT_PAGES 4
#define PAGE       4096u
#define EXIT_BYTES 64   /* from the pop to the jump */
#define MOST_LEFT  4096 /* behind the last of it, once the rest is given back */

struct code {
	uint8_t *bytes; /* with EXIT_BYTES of zeros behind */
	uint32_t n;
};

static uint32_t find(const struct code *c, uint32_t from, uint32_t limit, const char *what,
		     uint32_t n)
{
	uint32_t end = limit < c->n ? limit : c->n;
	const uint8_t *at = from < end ? memmem(c->bytes + from, end - from, what, n) : NULL;

	return at ? (uint32_t)(at - c->bytes) : UINT32_MAX;
}

static void entry_add(const struct code *c, uint32_t start, uint32_t limit, struct jvm_process *ret)
{
	uint32_t pop = find(c, start, limit, "\x58\x4c\x8d\x74\xcc\xf8", 6), push = UINT32_MAX;
	struct jvm_entry *e = &ret->entries[ret->n_entries];

	if (pop != UINT32_MAX)
		push = find(c, pop, limit, "\x50\x55\x48\x8b\xec\x41\x55", 7);
	*e = (struct jvm_entry){.start = start, .limit = limit};
	if (push != UINT32_MAX) {
		e->popped = pop + 1;
		e->pushed = push;
	}
	ret->n_entries++;
}

/* The instruction that leaves the frame before `pop`: leave, or a store behind it. */
static uint32_t left_at(const struct code *c, uint32_t pop)
{
	if (pop > 0 && c->bytes[pop - 1] == 0xc9)
		return pop;
	if (pop > 8 && c->bytes[pop - 9] == 0xc9 && c->bytes[pop - 8] == 0x41 &&
	    c->bytes[pop - 7] == 0xc6 && c->bytes[pop - 6] == 0x87)
		return pop - 8;
	return UINT32_MAX;
}

static void exits_add(const struct code *c, const char *moves, const char *jump,
		      struct jvm_exit kind, struct jvm_process *ret)
{
	uint32_t n_moves = (uint32_t)strlen(moves), n_jump = (uint32_t)strlen(jump), at = 0;

	while (ret->n_exits < JVM_EXITS) {
		uint32_t left, end;

		at = find(c, at, c->n, moves, n_moves);
		if (at == UINT32_MAX)
			return;
		left = left_at(c, at);
		end = find(c, at, at + EXIT_BYTES, jump, n_jump);
		if (left != UINT32_MAX && end != UINT32_MAX)
			ret->exits[ret->n_exits++] =
				(struct jvm_exit){left,         at + n_moves - 3, at + n_moves,
						  end + n_jump, kind.ret,         kind.sp};
		at += n_moves;
	}
}

static void frames_find(const struct code *c, struct jvm_process *ret)
{
	/* pop %r13; mov %rbx, %rsp; jmp *%r13. pop %rdi; mov %r11, %rsp; jmp *%rdi. */
	exits_add(c, "\x41\x5d\x48\x8b\xe3", "\x41\xff\xe5", (struct jvm_exit){.ret = 13, .sp = 3},
		  ret);
	exits_add(c, "\x5f\x49\x8b\xe3", "\xff\xe7", (struct jvm_exit){.ret = 5, .sp = 11}, ret);
}

/* The interpreter's code is one codelet behind the other. */
struct codelet {
	uint32_t size;
	uint64_t text; /* the address of what it is called */
};

/* The codelet at `at`; false: there is none. */
static bool codelet_at(const struct vm_structs *vm, const struct code *c, uint32_t at,
		       struct codelet *ret)
{
	uint64_t header = vm->values[VM_SIZEOF_CODELET];

	if (at + header > c->n)
		return false;
	memcpy(&ret->size, c->bytes + at + vm->values[VM_CODELET_SIZE], sizeof(ret->size));
	memcpy(&ret->text, c->bytes + at + vm->values[VM_CODELET_TEXT], sizeof(ret->text));
	return ret->size >= header && ret->size <= c->n - at;
}

/* The texts of the codelets are in few pages of the library. */
static void texts_announce(struct target_memory *memory, const struct vm_structs *vm,
			   const struct code *c)
{
	uint64_t pages[TEXT_PAGES];
	uint32_t at = 0, n = 0, k;
	struct codelet it;

	for (int i = 0; i < CODELETS && n < TEXT_PAGES && codelet_at(vm, c, at, &it); i++) {
		for (k = 0; k < n && pages[k] != it.text - it.text % PAGE; k++)
			;
		if (k == n)
			pages[n++] = it.text - it.text % PAGE;
		at += it.size;
	}
	target_memory_announce(memory, pages, n);
}

/* 0 if all entries are there: others stand behind them. */
static int codelets_read(struct target_memory *memory, const struct vm_structs *vm,
			 const struct code *c, struct jvm_process *ret)
{
	uint32_t at = 0;
	struct codelet it;

	for (int i = 0; i < CODELETS && codelet_at(vm, c, at, &it); i++) {
		char text[64];

		target_memory_text(memory, it.text, text, sizeof(text));
		if (strstr(text, "method entry point") && ret->n_entries < JVM_ENTRIES) {
			if (ret->n_entries == 0)
				ret->entries_start = at;
			ret->entries_limit = at + it.size;
			entry_add(c, at, at + it.size, ret);
		} else if (ret->n_entries > 0 && !strstr(text, "method entry point")) {
			return 0;
		}
		at += it.size;
	}
	return -EAGAIN;
}

bool interpreter_code_grows(struct target_memory *memory, const struct vm_structs *vm)
{
	uint64_t queue = target_memory_word(memory, vm->values[VM_INTERPRETER]);
	uint32_t limit, end;

	if (vm->values[VM_QUEUE_END] == VM_ABSENT)
		return false;
	limit = target_memory_word32(memory, queue + vm->values[VM_QUEUE_LIMIT]);
	end = target_memory_word32(memory, queue + vm->values[VM_QUEUE_END]);
	return limit - end >= MOST_LEFT;
}

int interpreter_code_read(struct target_memory *memory, const struct vm_structs *vm,
			  struct jvm_process *ret)
{
	uint64_t queue = target_memory_word(memory, vm->values[VM_INTERPRETER]);
	uint64_t buffer = target_memory_word(memory, queue + vm->values[VM_QUEUE_BUFFER]);
	uint32_t limit = target_memory_word32(memory, queue + vm->values[VM_QUEUE_LIMIT]);
	struct code c = {.n = limit};
	int error = 0;

	if (queue == 0 || buffer == 0 || limit == 0 || limit > CODE_BYTES ||
	    target_memory_word32(memory, queue + vm->values[VM_QUEUE_STUBS]) == 0)
		return -EAGAIN;
	if (vm->values[VM_SIZEOF_CODELET] > 64 || vm->values[VM_CODELET_SIZE] > 56 ||
	    vm->values[VM_CODELET_TEXT] > 56)
		return -EPROTO;
	c.bytes = calloc(1, c.n + EXIT_BYTES);
	if (!c.bytes)
		return -ENOMEM;
	ret->interpreter = buffer;
	ret->interpreter_limit = buffer + limit;
	if (target_memory_read(memory, buffer, c.bytes, c.n) != 0)
		error = -EAGAIN;
	if (error == 0)
		texts_announce(memory, vm, &c);
	if (error == 0)
		error = codelets_read(memory, vm, &c, ret);
	if (error == 0)
		frames_find(&c, ret);
	free(c.bytes);
	return error;
}
