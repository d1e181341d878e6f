/* SPDX-License-Identifier: Apache-2.0 */
/* Each table is an array that ends with a null name, of entries whose size and members have
 * exported offsets. The names lie close together in the file's read-only data, and are read at
 * once. */
#include "jvm/vm-structs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES        6000
#define CHUNK          1500 /* entries that are read at once */
#define ENTRY_BYTES    64
#define NAMES_BYTES    (16u << 20)
#define NAME_MAX_BYTES 96  /* of a name that is hashed: those that are wanted are shorter */
#define SLOTS          512 /* more than twice of what is wanted */

enum {
	STRUCTS,
	STRUCT_TYPE,
	STRUCT_FIELD,
	STRUCT_STATIC,
	STRUCT_OFFSET,
	STRUCT_ADDRESS,
	STRUCT_STRIDE
};
enum { TYPES = 7, TYPE_NAME, TYPE_SIZE, TYPE_STRIDE };
enum { INTS = 11, INT_NAME, INT_VALUE, INT_STRIDE };

const char *const vm_symbols[VM_SYMBOLS] = {
	"gHotSpotVMStructs",
	"gHotSpotVMStructEntryTypeNameOffset",
	"gHotSpotVMStructEntryFieldNameOffset",
	"gHotSpotVMStructEntryIsStaticOffset",
	"gHotSpotVMStructEntryOffsetOffset",
	"gHotSpotVMStructEntryAddressOffset",
	"gHotSpotVMStructEntryArrayStride",
	"gHotSpotVMTypes",
	"gHotSpotVMTypeEntryTypeNameOffset",
	"gHotSpotVMTypeEntrySizeOffset",
	"gHotSpotVMTypeEntryArrayStride",
	"gHotSpotVMIntConstants",
	"gHotSpotVMIntConstantEntryNameOffset",
	"gHotSpotVMIntConstantEntryValueOffset",
	"gHotSpotVMIntConstantEntryArrayStride",
};

#define MEMBER(id, type, field) {type, field},
#define SINGLE(id, name)        {name, NULL},
static const struct wanted {
	const char *type, *field;
} wanted[VM_IDS] = {VM_MEMBERS(MEMBER) VM_TYPES(SINGLE) VM_CONSTANTS(SINGLE)};
#undef MEMBER
#undef SINGLE

#define FULL(id, type, field) type "::" field,
#define SINGLE(id, name)      name,
const char *vm_name(enum vm_id id)
{
	static const char *const names[VM_IDS] = {VM_MEMBERS(FULL) VM_TYPES(SINGLE)
							  VM_CONSTANTS(SINGLE)};

	return names[id];
}
#undef FULL
#undef SINGLE

/* A table as it is read: its entries, and the names that they point to. */
struct table {
	char *entries;
	uint64_t n, stride;
	char *names;
	uint64_t names_at, names_bytes;
};

struct reader {
	struct target_memory *memory;
	const uint64_t *addresses;
	struct vm_structs *ret;
	uint16_t slots[SLOTS]; /* index in `wanted` and one, by hash */
};

static uint32_t hash(const char *type, const char *field)
{
	uint32_t h = 2166136261u;

	for (uint32_t n = 0; *type && n < NAME_MAX_BYTES; type++, n++)
		h = (h ^ (unsigned char)*type) * 16777619u;
	for (uint32_t n = 0; field && *field && n < NAME_MAX_BYTES; field++, n++)
		h = (h ^ (unsigned char)*field) * 16777619u;
	return h;
}

static int equal(const struct wanted *w, const char *type, const char *field)
{
	if (strcmp(w->type, type) != 0 || !w->field != !field)
		return 0;
	return !field || strcmp(w->field, field) == 0;
}

static void wanted_store(struct reader *r, const char *type, const char *field, uint64_t value)
{
	for (uint32_t h = hash(type, field);; h++) {
		uint16_t slot = r->slots[h % SLOTS];

		if (slot == 0)
			return;
		if (equal(&wanted[slot - 1], type, field)) {
			r->ret->values[slot - 1] = value;
			return;
		}
	}
}

static uint64_t entry_word(const struct table *t, uint64_t i, uint64_t member)
{
	uint64_t word;

	memcpy(&word, t->entries + i * t->stride + member, sizeof(word));
	return word;
}

static int entry_int(const struct table *t, uint64_t i, uint64_t member)
{
	int word;

	memcpy(&word, t->entries + i * t->stride + member, sizeof(word));
	return word;
}

/* A name among those that have been read; "" if it is not. */
static const char *entry_name(const struct table *t, uint64_t i, uint64_t member)
{
	uint64_t at = entry_word(t, i, member) - t->names_at;

	return at < t->names_bytes ? t->names + at : "";
}

static int entries_read(const struct reader *r, uint64_t at, uint64_t name, struct table *t)
{
	/* A member may stand outside of a forged entry. */
	t->entries = calloc(1, ENTRIES * t->stride + ENTRY_BYTES);
	if (!t->entries)
		return -ENOMEM;
	/* Behind its end there may be nothing. Few reads: each waits for a thread. */
	for (uint64_t i = 0, n; i < ENTRIES; i += n) {
		n = ENTRIES - i < CHUNK ? ENTRIES - i : CHUNK;
		while (n > 0 && target_memory_read(r->memory, at + i * t->stride,
						   t->entries + i * t->stride, n * t->stride) != 0)
			n /= 2;
		if (n == 0)
			break;
		for (uint64_t k = 0; k < n; k++, t->n++)
			if (entry_word(t, i + k, name) == 0)
				return t->n > 0 ? 0 : -EAGAIN;
	}
	return -EAGAIN;
}

/* All the names: from the first to the last that an entry points to. */
static int names_read(const struct reader *r, uint64_t name, uint64_t other, struct table *t)
{
	uint64_t low = UINT64_MAX, high = 0;

	for (uint64_t i = 0; i < t->n; i++) {
		uint64_t at[2] = {entry_word(t, i, name), entry_word(t, i, other)};

		for (int k = 0; k < 2; k++) {
			if (at[k] == 0)
				continue;
			low = at[k] < low ? at[k] : low;
			high = at[k] > high ? at[k] : high;
		}
	}
	/* Before relocation they are small numbers, or equal to none of the process's addresses. */
	if (low < 65536 || high - low > NAMES_BYTES)
		return -EAGAIN;
	t->names_at = low;
	t->names_bytes = high - low + 1;
	t->names = calloc(1, t->names_bytes + 256);
	if (!t->names)
		return -ENOMEM;
	if (target_memory_read(r->memory, low, t->names, t->names_bytes) != 0)
		return -EAGAIN;
	/* The last one, as much of it as there is. */
	for (uint64_t n = 255; n > 0; n /= 2)
		if (target_memory_read(r->memory, high + 1, t->names + t->names_bytes, n) == 0)
			break;
	return 0;
}

static void table_fini(struct table *t)
{
	free(t->entries);
	free(t->names);
}

/* The table of the symbol `first`, its entries' names being the member at offset names[0], and
 * names[1]. */
static int table_read(const struct reader *r, int first, int stride, const uint64_t *names,
		      struct table *t)
{
	uint64_t at = target_memory_word(r->memory, r->addresses[first]);
	int ret;

	t->stride = target_memory_word(r->memory, r->addresses[stride]);
	if (at == 0)
		return -EAGAIN;
	if (t->stride < 12 || t->stride > ENTRY_BYTES)
		return -EPROTO;
	ret = entries_read(r, at, names[0], t);
	return ret != 0 ? ret : names_read(r, names[0], names[1], t);
}

/* Offsets of members in an entry; not 0: one is out of it. */
static int members_read(const struct reader *r, int first, int n, uint64_t *ret)
{
	for (int i = 0; i < n; i++) {
		ret[i] = target_memory_word(r->memory, r->addresses[first + i]);
		if (ret[i] > ENTRY_BYTES - 8)
			return -EPROTO;
	}
	return 0;
}

static int structs_read(struct reader *r)
{
	struct table t = {0};
	uint64_t member[5];
	int ret = members_read(r, STRUCT_TYPE, 5, member);

	if (ret == 0)
		ret = table_read(r, STRUCTS, STRUCT_STRIDE, member, &t);
	for (uint64_t i = 0; ret == 0 && i < t.n; i++) {
		int is_static = entry_int(&t, i, member[2]);
		uint64_t value = entry_word(&t, i, member[is_static ? 4 : 3]);

		wanted_store(r, entry_name(&t, i, member[0]), entry_name(&t, i, member[1]), value);
	}
	table_fini(&t);
	return ret;
}

static int types_read(struct reader *r)
{
	struct table t = {0};
	uint64_t member[2];
	int ret = members_read(r, TYPE_NAME, 2, member);

	if (ret == 0)
		ret = table_read(r, TYPES, TYPE_STRIDE, (uint64_t[2]){member[0], member[0]}, &t);
	for (uint64_t i = 0; ret == 0 && i < t.n; i++)
		wanted_store(r, entry_name(&t, i, member[0]), NULL, entry_word(&t, i, member[1]));
	table_fini(&t);
	return ret;
}

static int ints_read(struct reader *r)
{
	struct table t = {0};
	uint64_t member[2];
	int ret = members_read(r, INT_NAME, 2, member);

	if (ret == 0)
		ret = table_read(r, INTS, INT_STRIDE, (uint64_t[2]){member[0], member[0]}, &t);
	for (uint64_t i = 0; ret == 0 && i < t.n; i++)
		wanted_store(r, entry_name(&t, i, member[0]), NULL,
			     (uint64_t)(int64_t)entry_int(&t, i, member[1]));
	table_fini(&t);
	return ret;
}

int vm_structs_read(struct target_memory *memory, const uint64_t *addresses, struct vm_structs *ret)
{
	struct reader r = {.memory = memory, .addresses = addresses, .ret = ret};
	int error;

	for (uint16_t i = 0; i < VM_IDS; i++) {
		uint32_t h = hash(wanted[i].type, wanted[i].field);

		while (r.slots[h % SLOTS] != 0)
			h++;
		r.slots[h % SLOTS] = (uint16_t)(i + 1);
		ret->values[i] = VM_ABSENT;
	}
	error = structs_read(&r);
	if (error == 0)
		error = types_read(&r);
	return error == 0 ? ints_read(&r) : error;
}
