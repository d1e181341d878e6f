/* SPDX-License-Identifier: Apache-2.0 */
/* Each table is an array that ends with a null name, of entries whose size and members have
 * exported offsets. The names lie close together in the file's read-only data, and are read at
 * once. Which entry has which name is remembered only where the file said it: a process that wrote
 * over its own copy would otherwise mislead the next one. */
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
#define PRIME          ((1ull << 61) - 1)

#define ONE(...) +1
enum { VM_N_MEMBERS = 0 VM_MEMBERS(ONE), VM_N_TYPES = 0 VM_TYPES(ONE) };
#undef ONE

/* Indexes in vm_symbols: where a table is, its members' offsets, its entries' size. */
static const struct kind {
	int first, n_members, stride;
	int other;            /* member with the second name, or the first name's again */
	int value;            /* member with the value */
	uint32_t from, limit; /* ids */
} kinds[VM_TABLES] = {
	{0, 5, 6, 1, 3, 0, VM_N_MEMBERS},
	{7, 2, 10, 0, 1, VM_N_MEMBERS, VM_N_MEMBERS + VM_N_TYPES},
	{11, 2, 14, 0, 1, VM_N_MEMBERS + VM_N_TYPES, VM_IDS},
};
enum { STRUCTS, TYPES, INTS };
enum { STRUCT_STATIC = 2, STRUCT_ADDRESS = 4 };

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
	uint32_t which;
	const struct kind *kind;
	uint64_t member[5]; /* offsets in an entry */
	char *entries;
	uint64_t n, stride;
	char *names;
	uint64_t names_at, names_bytes;
	bool of_file; /* its names are */
};

struct reader {
	struct target_memory *memory;
	const uint64_t *addresses;
	const struct vm_library *library; /* NULL: none */
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

static uint64_t entry_value(const struct table *t, uint64_t i)
{
	if (t->which == INTS)
		return (uint64_t)(int64_t)entry_int(t, i, t->member[t->kind->value]);
	if (t->which == STRUCTS && entry_int(t, i, t->member[STRUCT_STATIC]))
		return entry_word(t, i, t->member[STRUCT_ADDRESS]);
	return entry_word(t, i, t->member[t->kind->value]);
}

/* Keeps the entry's value, if it is one of those that are wanted. */
static void entry_store(const struct reader *r, const struct table *t, uint64_t i)
{
	const char *type = entry_name(t, i, t->member[0]);
	const char *field = t->kind->other ? entry_name(t, i, t->member[t->kind->other]) : NULL;

	for (uint32_t h = hash(type, field), id; r->slots[h % SLOTS] != 0; h++) {
		id = r->slots[h % SLOTS] - 1u;
		if (!equal(&wanted[id], type, field) || id < t->kind->from || id >= t->kind->limit)
			continue;
		r->ret->values[id] = entry_value(t, i);
		if (t->of_file)
			r->library->places->at[id] = (uint16_t)(i + 1);
		return;
	}
}

/* Where the entries point to, in the file: a polynomial at a secret place, so that the chance of
 * two lists to have the same is their length over 2^61. 0: some point elsewhere. */
static uint64_t names_hash(const struct vm_library *library, const struct table *t)
{
	uint64_t key = library->places->key % PRIME, h = 1;

	for (uint64_t i = 0; i < t->n; i++)
		for (int k = 0; k <= t->kind->other; k++) {
			uint64_t at = entry_word(t, i, t->member[k]);
			__extension__ unsigned __int128 next;

			at = at ? at - library->bias : 0;
			if (at > UINT32_MAX)
				return 0;
			next = h;
			next = next * key + at;
			h = (uint64_t)(next & PRIME) + (uint64_t)(next >> 61);
			h -= h >= PRIME ? PRIME : 0;
		}
	return h;
}

/* Takes the values from where they are known to be; false: it is not known. */
static bool values_take(const struct reader *r, const struct table *t, uint64_t names)
{
	const struct vm_places *places = r->library->places;

	if (names == 0 || places->hashes[t->which] != names)
		return false;
	for (uint32_t id = t->kind->from; id < t->kind->limit; id++)
		if (places->at[id] != 0 && places->at[id] <= t->n)
			r->ret->values[id] = entry_value(t, places->at[id] - 1u);
	return true;
}

static int entries_read(const struct reader *r, uint64_t at, struct table *t)
{
	char *entries;

	/* Behind its end there may be nothing. Few reads: each waits for a thread. */
	for (uint64_t i = 0, n; i < ENTRIES; i += n) {
		n = ENTRIES - i < CHUNK ? ENTRIES - i : CHUNK;
		entries = realloc(t->entries, (i + n) * t->stride + ENTRY_BYTES);
		if (!entries)
			return -ENOMEM;
		t->entries = entries;
		while (n > 0 && target_memory_read(r->memory, at + i * t->stride,
						   t->entries + i * t->stride, n * t->stride) != 0)
			n /= 2;
		if (n == 0)
			break;
		/* A member may stand outside of a forged entry. */
		memset(entries + (i + n) * t->stride, 0, ENTRY_BYTES);
		for (uint64_t k = 0; k < n; k++, t->n++)
			if (entry_word(t, i + k, t->member[0]) == 0)
				return t->n > 0 ? 0 : -EAGAIN;
	}
	return -EAGAIN;
}

/* Of the file, or else of the process. */
static bool bytes_read(const struct reader *r, const struct table *t, uint64_t at, void *ret,
		       uint64_t n)
{
	const struct vm_library *l = r->library;

	if (t->of_file)
		return l->read(l->context, at - l->bias, ret, n);
	return target_memory_read(r->memory, at, ret, n) == 0;
}

/* All the names: from the first to the last that an entry points to. */
static int names_read(const struct reader *r, struct table *t)
{
	uint64_t low = UINT64_MAX, high = 0;

	for (uint64_t i = 0; i < t->n; i++)
		for (int k = 0; k <= t->kind->other; k++) {
			uint64_t at = entry_word(t, i, t->member[k]);

			low = at != 0 && at < low ? at : low;
			high = at > high ? at : high;
		}
	/* Before relocation they are small numbers, or equal to none of the process's addresses. */
	if (low < 65536 || high - low > NAMES_BYTES)
		return -EAGAIN;
	t->names_at = low;
	t->names_bytes = high - low + 1;
	t->names = calloc(1, t->names_bytes + 256);
	if (!t->names)
		return -ENOMEM;
	if (t->of_file && !bytes_read(r, t, low, t->names, t->names_bytes))
		t->of_file = false;
	if (!t->of_file && !bytes_read(r, t, low, t->names, t->names_bytes))
		return -EAGAIN;
	/* The last one, as much of it as there is. */
	for (uint64_t n = 255; n > 0; n /= 2)
		if (bytes_read(r, t, high + 1, t->names + t->names_bytes, n))
			break;
	return 0;
}

/* The entries, where they are and how large; not 0: one of their members is out of them. */
static int table_find(const struct reader *r, struct table *t)
{
	const uint64_t *addresses = r->addresses + t->kind->first;
	uint64_t at = target_memory_word(r->memory, addresses[0]);

	if (at == 0)
		return -EAGAIN;
	for (int i = 0; i < t->kind->n_members; i++) {
		t->member[i] = target_memory_word(r->memory, addresses[i + 1]);
		if (t->member[i] > ENTRY_BYTES - 8)
			return -EPROTO;
	}
	t->stride = target_memory_word(r->memory, r->addresses[t->kind->stride]);
	if (t->stride < 12 || t->stride > ENTRY_BYTES)
		return -EPROTO;
	return entries_read(r, at, t);
}

/* The values of the entries that are wanted; those of the file are found once. */
static int values_read(const struct reader *r, struct table *t)
{
	uint64_t names = r->library ? names_hash(r->library, t) : 0;
	struct vm_places *places = r->library ? r->library->places : NULL;
	int error;

	if (places && values_take(r, t, names))
		return 0;
	t->of_file = names != 0;
	error = names_read(r, t);
	if (error != 0)
		return error;
	for (uint32_t id = t->kind->from; t->of_file && id < t->kind->limit; id++)
		places->at[id] = 0;
	for (uint64_t i = 0; i < t->n; i++)
		entry_store(r, t, i);
	if (t->of_file)
		places->hashes[t->which] = names;
	return 0;
}

static int table_read(const struct reader *r, uint32_t which)
{
	struct table t = {.which = which, .kind = &kinds[which]};
	int error = table_find(r, &t);

	if (error == 0)
		error = values_read(r, &t);
	free(t.entries);
	free(t.names);
	return error;
}

int vm_structs_read(struct target_memory *memory, const uint64_t *addresses,
		    const struct vm_library *library, struct vm_structs *ret)
{
	struct reader r = {
		.memory = memory, .addresses = addresses, .library = library, .ret = ret};
	int error = 0;

	for (uint16_t i = 0; i < VM_IDS; i++) {
		uint32_t h = hash(wanted[i].type, wanted[i].field);

		while (r.slots[h % SLOTS] != 0)
			h++;
		r.slots[h % SLOTS] = (uint16_t)(i + 1);
		ret->values[i] = VM_ABSENT;
	}
	target_memory_announce(memory, addresses, VM_SYMBOLS);
	for (uint32_t i = 0; error == 0 && i < VM_TABLES; i++)
		error = table_read(&r, i);
	return error;
}
