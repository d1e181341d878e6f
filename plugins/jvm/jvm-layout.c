/* SPDX-License-Identifier: Apache-2.0 */
/* Members have moved between classes and changed their kind over the versions; each has one name
 * that is there, and what it is follows from the name. Three things the tables do not tell: where
 * the interpreter keeps the method and the bytecode pointer (one word further from JDK 9 on), how
 * numbers are compressed (19), and the size of a ContinuationEntry (before 26). */
#include "jvm/jvm-layout.h"

#include <errno.h>
#include <string.h>

#include "jvm/call-stub.h"
#include "jvm/interpreter-code.h"

struct filler {
	const struct vm_structs *vm;
	const char *missing;
};

static uint64_t value(const struct filler *f, enum vm_id id)
{
	return f->vm->values[id];
}

static int has(const struct filler *f, enum vm_id id)
{
	return value(f, id) != VM_ABSENT;
}

/* A small number that must be there. */
static uint16_t need(struct filler *f, enum vm_id id)
{
	if (value(f, id) >= JVM_NONE) {
		f->missing = f->missing ? f->missing : vm_name(id);
		return 0;
	}
	return (uint16_t)value(f, id);
}

static uint16_t may(const struct filler *f, enum vm_id id)
{
	return value(f, id) < JVM_NONE ? (uint16_t)value(f, id) : JVM_NONE;
}

/* The first of two that is there; `flag` is set if it is the first. */
static uint16_t either(struct filler *f, enum vm_id a, enum vm_id b, uint16_t flag,
		       struct jvm_offsets *ret)
{
	if (!has(f, a))
		return need(f, b);
	ret->flags |= flag;
	return need(f, a);
}

static void blob_fill(struct filler *f, struct jvm_offsets *ret)
{
	ret->heap_header = need(f, VM_SIZEOF_HEAP_BLOCK);
	ret->heap_used = ret->heap_header / 2;
	ret->blob_bytes = need(f, VM_SIZEOF_BLOB);
	ret->blob_name = need(f, VM_BLOB_NAME);
	ret->blob_size = need(f, VM_BLOB_SIZE);
	ret->blob_kind = may(f, VM_BLOB_KIND);
	ret->blob_code = either(f, VM_BLOB_CODE_BEGIN, VM_BLOB_CODE_OFFSET, JVM_CODE_POINTER, ret);
	ret->blob_data = need(f, VM_BLOB_DATA);
	ret->blob_frame_complete = need(f, VM_BLOB_COMPLETE);
	ret->blob_frame_size = need(f, VM_BLOB_FRAME_SIZE);
	ret->blob_mutable = may(f, VM_BLOB_MUTABLE);
	ret->blob_relocation_size = may(f, VM_BLOB_RELOCATION);
	ret->kind_nmethod = may(f, VM_KIND_NMETHOD);
	ret->kind_upcall = may(f, VM_KIND_UPCALL);
	if (has(f, VM_BLOB_MUTABLE))
		ret->flags |= JVM_MUTABLE;
	if (has(f, VM_BLOB_KIND))
		need(f, VM_KIND_NMETHOD);
	/* It became short in the version that gave blobs a kind. */
	if (has(f, VM_BLOB_KIND))
		ret->flags |= JVM_SHORT_COMPLETE;
}

static void deopt_fill(struct filler *f, struct jvm_offsets *ret)
{
	if (has(f, VM_COMPILED_DEOPT)) {
		ret->flags |= JVM_DEOPT_POINTER;
		ret->nmethod_deopt = need(f, VM_COMPILED_DEOPT);
		ret->nmethod_deopt_mh = need(f, VM_COMPILED_DEOPT_MH);
	} else if (has(f, VM_NMETHOD_DEOPT_8)) {
		ret->nmethod_deopt = need(f, VM_NMETHOD_DEOPT_8);
		ret->nmethod_deopt_mh = need(f, VM_NMETHOD_DEOPT_MH_8);
	} else if (has(f, VM_NMETHOD_DEOPT_ENTRY)) {
		ret->nmethod_deopt = need(f, VM_NMETHOD_DEOPT_ENTRY);
		ret->nmethod_deopt_mh = JVM_NONE;
	} else {
		ret->nmethod_deopt = need(f, VM_NMETHOD_DEOPT);
		ret->nmethod_deopt_mh = may(f, VM_NMETHOD_DEOPT_MH);
	}
}

static void nmethod_fill(struct filler *f, struct jvm_offsets *ret)
{
	ret->nmethod_bytes = need(f, VM_SIZEOF_NMETHOD);
	ret->nmethod_method = either(f, VM_COMPILED_METHOD, VM_NMETHOD_METHOD, 0, ret);
	ret->nmethod_entry_bci = need(f, VM_NMETHOD_BCI);
	ret->nmethod_compile_id = need(f, VM_NMETHOD_ID);
	ret->nmethod_entry =
		either(f, VM_NMETHOD_ENTRY_OFFSET, VM_NMETHOD_ENTRY, JVM_ENTRY_OFFSET, ret);
	ret->nmethod_osr_entry = need(f, VM_NMETHOD_OSR);
	ret->nmethod_orig_pc = need(f, VM_NMETHOD_ORIG_PC);
	ret->nmethod_scopes_pcs = need(f, VM_NMETHOD_PCS);
	ret->nmethod_scopes_data =
		either(f, VM_COMPILED_SCOPES, VM_NMETHOD_SCOPES, JVM_SCOPES_POINTER, ret);
	ret->nmethod_immutable = may(f, VM_NMETHOD_IMMUTABLE);
	if (has(f, VM_NMETHOD_IMMUTABLE))
		ret->flags |= JVM_IMMUTABLE;
	ret->nmethod_metadata = has(f, VM_BLOB_MUTABLE) ? JVM_NONE : need(f, VM_NMETHOD_METADATA);
	ret->nmethod_pcs_limit = has(f, VM_NMETHOD_IMMUTABLE) ? need(f, VM_NMETHOD_SCOPES)
							      : need(f, VM_NMETHOD_DEPENDENCIES);
	deopt_fill(f, ret);
}

static void method_fill(struct filler *f, struct jvm_offsets *ret)
{
	ret->method_const = need(f, VM_METHOD_CONST);
	ret->const_bytes = need(f, VM_SIZEOF_CONST);
	ret->const_pool = need(f, VM_CONST_POOL);
	ret->const_size = need(f, VM_CONST_SIZE);
	ret->const_flags = either(f, VM_CONST_FLAGS_21, VM_CONST_FLAGS, 0, ret);
	ret->const_code_size = need(f, VM_CONST_CODE_SIZE);
	ret->const_name = need(f, VM_CONST_NAME);
	ret->pool_bytes = need(f, VM_SIZEOF_POOL);
	ret->pool_holder = need(f, VM_POOL_HOLDER);
	ret->pool_source = may(f, VM_POOL_SOURCE);
	ret->klass_source = ret->pool_source == JVM_NONE ? need(f, VM_CLASS_SOURCE) : JVM_NONE;
	ret->klass_name = need(f, VM_CLASS_NAME);
	ret->symbol_length = need(f, VM_SYMBOL_LENGTH);
	ret->symbol_body = need(f, VM_SYMBOL_BODY);
	/* The flag has had one value, by whatever name, and none in some versions. */
	ret->flag_lines = 1;
	if (has(f, VM_LINES))
		ret->flag_lines = need(f, VM_LINES);
	else if (has(f, VM_LINES_21))
		ret->flag_lines = need(f, VM_LINES_21);
}

/* What leads to the code and to its interpreter: addresses and offsets. */
static void code_need(struct filler *f)
{
	static const enum vm_id ids[] = {
		VM_HEAP_MEMORY,  VM_HEAP_SEGMAP,  VM_HEAP_SHIFT,    VM_SPACE_LOW,   VM_SPACE_HIGH,
		VM_CALL_STUB,    VM_INTERPRETER,  VM_QUEUE_BUFFER,  VM_QUEUE_LIMIT, VM_QUEUE_STUBS,
		VM_CODELET_SIZE, VM_CODELET_TEXT, VM_SIZEOF_CODELET};

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		if (!has(f, ids[i]) && !f->missing)
			f->missing = vm_name(ids[i]);
	if (!has(f, VM_CACHE_HEAPS) && !has(f, VM_CACHE_HEAP))
		f->missing = f->missing ? f->missing : vm_name(VM_CACHE_HEAPS);
}

const char *layout_offsets(const struct vm_structs *vm, uint32_t major, struct jvm_offsets *ret)
{
	struct filler f = {.vm = vm};
	int64_t last_sp = vm->values[VM_LAST_SP] == VM_ABSENT ? -2
							      : (int64_t)vm->values[VM_LAST_SP];

	memset(ret, 0, sizeof(*ret));
	blob_fill(&f, ret);
	nmethod_fill(&f, ret);
	method_fill(&f, ret);
	code_need(&f);
	if (major >= 19)
		ret->flags |= JVM_NO_ZERO_BYTES;
	/* The method stands behind the saved stack pointer, and five or four words on the bytecode
	 * pointer: mirror (from 9 on), method data, cache, locals, bytecode. */
	ret->frame_method = (int16_t)((last_sp >= -8 && last_sp < 0 ? last_sp : -2) - 1);
	ret->frame_bcp = (int16_t)(ret->frame_method - (major >= 9 ? 5 : 4));
	if (major >= 21)
		ret->entry_words = 8;
	if (major >= 21 && has(&f, VM_SIZEOF_ENTRY))
		ret->entry_words = (uint16_t)((need(&f, VM_SIZEOF_ENTRY) + 15) / 16 * 2);
	return f.missing;
}

void layout_announce(struct target_memory *memory, const struct vm_structs *vm)
{
	static const enum vm_id ids[] = {VM_RELEASE,    VM_MAJOR,     VM_CACHE_HEAPS,
					 VM_CACHE_HEAP, VM_CALL_STUB, VM_INTERPRETER};
	uint64_t at[sizeof(ids) / sizeof(ids[0])];

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		at[i] = vm->values[ids[i]] == VM_ABSENT ? 0 : vm->values[ids[i]];
	target_memory_announce(memory, at, sizeof(ids) / sizeof(ids[0]));
	/* And what they point to: but for the version, all are pointers. */
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		at[i] = at[i] && ids[i] != VM_MAJOR ? target_memory_word(memory, at[i]) : 0;
	target_memory_announce(memory, at, sizeof(ids) / sizeof(ids[0]));
}

/* The code heap whose structure is at `at`. */
static int heap_read(struct target_memory *memory, const struct vm_structs *vm, uint64_t at,
		     struct jvm_heap *ret)
{
	uint64_t space = at + vm->values[VM_HEAP_MEMORY], map = at + vm->values[VM_HEAP_SEGMAP];

	if (at == 0)
		return -EAGAIN;
	ret->low = target_memory_word(memory, space + vm->values[VM_SPACE_LOW]);
	ret->high = target_memory_word(memory, space + vm->values[VM_SPACE_HIGH]);
	ret->segments = target_memory_word(memory, map + vm->values[VM_SPACE_LOW]);
	ret->shift = target_memory_word32(memory, at + vm->values[VM_HEAP_SHIFT]);
	if (ret->low == 0 || ret->high <= ret->low || ret->high - ret->low > 1ull << 32 ||
	    ret->segments == 0 || ret->shift < 4 || ret->shift > 16)
		return -EAGAIN;
	return 0;
}

static int heaps_read(struct target_memory *memory, const struct vm_structs *vm,
		      struct jvm_process *ret)
{
	uint64_t heaps, len_at, data, n, at[JVM_HEAPS];

	if (vm->values[VM_CACHE_HEAPS] == VM_ABSENT) {
		ret->n_heaps = 1;
		return heap_read(memory, vm, target_memory_word(memory, vm->values[VM_CACHE_HEAP]),
				 &ret->heaps[0]);
	}
	len_at = vm->values[VM_ARRAY_LEN] != VM_ABSENT ? vm->values[VM_ARRAY_LEN]
						       : vm->values[VM_ARRAY_LEN_8];
	heaps = target_memory_word(memory, vm->values[VM_CACHE_HEAPS]);
	if (heaps == 0)
		return -EAGAIN;
	n = target_memory_word32(memory, heaps + len_at);
	data = target_memory_word(memory, heaps + vm->values[VM_ARRAY_DATA]);
	if (n == 0 || n > JVM_HEAPS)
		return -EAGAIN;
	for (uint32_t i = 0; i < n; i++)
		at[i] = target_memory_word(memory, data + 8ull * i);
	target_memory_announce(memory, at, (uint32_t)n);
	for (uint32_t i = 0; i < n; i++)
		if (heap_read(memory, vm, at[i], &ret->heaps[i]) != 0)
			return -EAGAIN;
	ret->n_heaps = (uint32_t)n;
	return 0;
}

int layout_code(struct target_memory *memory, const struct vm_structs *vm, struct jvm_process *ret)
{
	int error = heaps_read(memory, vm, ret);

	if (error != 0)
		return error;
	ret->call_stub = target_memory_word(memory, vm->values[VM_CALL_STUB]);
	if (ret->call_stub == 0)
		return -EAGAIN;
	call_stub_read(memory, ret);
	return interpreter_code_read(memory, vm, ret);
}
