/* SPDX-License-Identifier: Apache-2.0 */
/* See types-excerpt.h. One pass notes where each type begins and adds those that are named; what
 * these consist of is added behind it, by number. Names are compared by their first two bytes
 * first, which few of the kernel's share with those of an object. */
#include "ebpf/kernel/types-excerpt.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/vec.h"
#include "proc/kernel-types.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEPTH_MAX 32 /* of types within types */

struct reader {
	struct str types, strings;
	uint32_t *offsets; /* of each type in `types`, by its number - 1 */
	uint32_t n;
	int32_t *made; /* its number in the excerpt; 0: not made yet */
	struct btf *excerpt;
	VEC(char *) names; /* that are needed, sorted */
	VEC(uint32_t) roots; /* the types of these names */
	uint8_t starts[1 << 13]; /* bits: what two bytes a needed name begins with */
};

/* --- Names that are needed --- */

static uint32_t start_of(const char *name)
{
	return (uint32_t)(uint8_t)name[0] | (uint32_t)(uint8_t)name[name[0] != '\0'] << 8;
}

/* One that the object calls NAME___FLAVOUR stands for the kernel's NAME. */
static bool need_name(struct reader *r, const char *name)
{
	const char *flavour = name ? strstr(name, "___") : NULL;
	char *copy;
	uint32_t start;

	if (!name || !*name)
		return true;
	copy = strndup(name, flavour ? (size_t)(flavour - name) : strlen(name));
	if (!copy || !vec_push(&r->names, copy)) {
		free(copy);
		return false;
	}
	start = start_of(copy);
	r->starts[start / 8] |= (uint8_t)(1 << start % 8);
	return true;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool read_needs(struct reader *r, const struct btf *needs)
{
	for (uint32_t id = 1; id < btf__type_cnt(needs); id++) {
		const struct btf_type *t = btf__type_by_id(needs, id);

		if (!need_name(r, btf__name_by_offset(needs, t->name_off)))
			return false;
		for (uint32_t i = 0; btf_is_composite(t) && i < btf_vlen(t); i++)
			if (!need_name(r, btf__name_by_offset(needs, btf_members(t)[i].name_off)))
				return false;
	}
	if (r->names.n > 0)
		qsort(r->names.p, r->names.n, sizeof(*r->names.p), compare);
	return true;
}

/* NULL: there is no such string. */
static const char *string_at(const struct reader *r, uint32_t offset)
{
	return offset < r->strings.n ? r->strings.p + offset : NULL;
}

static bool is_needed(const struct reader *r, const char *name)
{
	uint32_t start = start_of(name);

	return r->starts[start / 8] & 1 << start % 8 &&
	       bsearch(&name, r->names.p, r->names.n, sizeof(*r->names.p), compare);
}

/* --- The kernel's types --- */

/* What follows the head of a type; SIZE_MAX: it is of a kind that we do not know. */
static size_t bytes_behind(const struct btf_type *t)
{
	static const uint8_t fixed[] = {[BTF_KIND_INT] = 4,
					[BTF_KIND_ARRAY] = sizeof(struct btf_array),
					[BTF_KIND_VAR] = 4,
					[BTF_KIND_DECL_TAG] = 4,
					[BTF_KIND_ENUM64] = 0};
	static const uint8_t each[] = {
		[BTF_KIND_STRUCT] = sizeof(struct btf_member),
		[BTF_KIND_UNION] = sizeof(struct btf_member),
		[BTF_KIND_ENUM] = sizeof(struct btf_enum),
		[BTF_KIND_FUNC_PROTO] = sizeof(struct btf_param),
		[BTF_KIND_DATASEC] = sizeof(struct btf_var_secinfo),
		[BTF_KIND_ENUM64] = sizeof(struct btf_enum64),
	};
	uint32_t kind = btf_kind(t);

	if (kind == BTF_KIND_UNKN || kind > BTF_KIND_ENUM64)
		return SIZE_MAX;
	return fixed[kind] + (size_t)each[kind] * btf_vlen(t);
}

/* The whole of it lies in the section. NULL: there is no such type. */
static const struct btf_type *type_at(const struct reader *r, uint32_t id)
{
	if (id == 0 || id > r->n)
		return NULL;
	return (const void *)(r->types.p + r->offsets[id - 1]);
}

static bool is_modifier(const struct btf_type *t)
{
	return btf_is_mod(t) || btf_is_type_tag(t) || btf_is_typedef(t);
}

/* Without const, typedef and the like. */
static uint32_t plain(const struct reader *r, uint32_t id)
{
	const struct btf_type *t = type_at(r, id);

	for (int i = 0; t && is_modifier(t) && i < DEPTH_MAX; i++) {
		id = t->type;
		t = type_at(r, id);
	}
	return id;
}

/* --- The excerpt --- */

static int add(struct reader *r, uint32_t id, int depth);

static bool is_kept(const struct reader *r, const struct btf_member *m)
{
	const char *name = string_at(r, m->name_off);
	const struct btf_type *t;

	if (!name)
		return false;
	if (*name)
		return is_needed(r, name);
	t = type_at(r, plain(r, m->type));
	return t && btf_is_composite(t);
}

static int add_field(struct reader *r, const struct btf_type *t, uint32_t i)
{
	const struct btf_member *m = &btf_members(t)[i];
	uint32_t of = plain(r, m->type);
	int type = of == 0 || of > r->n ? 0 : r->made[of - 1];

	return btf__add_field(r->excerpt, string_at(r, m->name_off), type,
			      btf_member_bit_offset(t, i), btf_member_bitfield_size(t, i));
}

/* libbpf adds members to the last type, so theirs come first. */
static int add_composite(struct reader *r, const struct btf_type *t, const char *name, int depth)
{
	uint32_t n = btf_vlen(t);
	int id, code = 0;

	for (uint32_t i = 0; i < n && code >= 0; i++)
		if (is_kept(r, &btf_members(t)[i]))
			code = add(r, plain(r, btf_members(t)[i].type), depth);
	if (code < 0)
		return code;
	id = btf_is_struct(t) ? btf__add_struct(r->excerpt, name, t->size)
			      : btf__add_union(r->excerpt, name, t->size);
	for (uint32_t i = 0; i < n && code >= 0 && id > 0; i++)
		if (is_kept(r, &btf_members(t)[i]))
			code = add_field(r, t, i);
	return code < 0 ? code : id;
}

static int add_enum(struct reader *r, const struct btf_type *t, const char *name)
{
	int id = btf_is_enum(t) ? btf__add_enum(r->excerpt, name, t->size)
				: btf__add_enum64(r->excerpt, name, t->size, btf_kflag(t));
	int code = id;

	for (uint32_t i = 0; i < btf_vlen(t) && code >= 0; i++) {
		const struct btf_enum *e = &btf_enum(t)[i];
		const struct btf_enum64 *e64 = &btf_enum64(t)[i];

		code = btf_is_enum(t)
			       ? btf__add_enum_value(r->excerpt, string_at(r, e->name_off), e->val)
			       : btf__add_enum64_value(r->excerpt, string_at(r, e64->name_off),
						       btf_enum64_value(e64));
	}
	return code < 0 ? code : id;
}

static int add_array(struct reader *r, const struct btf_type *t, int depth)
{
	const struct btf_array *array = btf_array(t);
	int index = add(r, plain(r, array->index_type), depth);
	int element = index < 0 ? index : add(r, plain(r, array->type), depth);

	return element < 0 ? element
			   : btf__add_array(r->excerpt, index, element, array->nelems);
}

static int add_typedef(struct reader *r, const struct btf_type *t, const char *name, int depth)
{
	int type = add(r, plain(r, t->type), depth);

	return type < 0 ? type : btf__add_typedef(r->excerpt, name, type);
}

static int add_new(struct reader *r, const struct btf_type *t, int depth)
{
	const char *name = string_at(r, t->name_off);

	if (!name || depth > DEPTH_MAX)
		return -EINVAL;
	switch (btf_kind(t)) {
	case BTF_KIND_INT:
		return btf__add_int(r->excerpt, name, t->size, btf_int_encoding(t));
	case BTF_KIND_FLOAT:
		return btf__add_float(r->excerpt, name, t->size);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return add_composite(r, t, name, depth);
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		return add_enum(r, t, name);
	case BTF_KIND_ARRAY:
		return add_array(r, t, depth);
	case BTF_KIND_TYPEDEF:
		return add_typedef(r, t, name, depth);
	default:
		return btf__add_ptr(r->excerpt, 0);
	}
}

/* Its number in the excerpt, 0 for void, or a negative errno. */
static int add(struct reader *r, uint32_t id, int depth)
{
	const struct btf_type *t = type_at(r, id);
	int made;

	if (id == 0)
		return 0;
	if (!t)
		return -EINVAL;
	if (r->made[id - 1] != 0)
		return r->made[id - 1];
	made = add_new(r, t, depth + 1);
	if (made > 0)
		r->made[id - 1] = made;
	return made;
}

/* Whether a program can name it where it relocates. */
static bool is_root(const struct btf_type *t)
{
	switch (btf_kind(t)) {
	case BTF_KIND_INT:
	case BTF_KIND_FLOAT:
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
	case BTF_KIND_TYPEDEF:
		return true;
	default:
		return false;
	}
}

/* Finds where each type is, and which are needed by name. */
static int scan(struct reader *r)
{
	size_t at = 0;

	while (at + sizeof(struct btf_type) <= r->types.n) {
		const struct btf_type *t = (const void *)(r->types.p + at);
		size_t more = bytes_behind(t), rest = r->types.n - at - sizeof(*t);
		const char *name = string_at(r, t->name_off);

		if (more > rest || !name)
			return -EINVAL;
		r->offsets[r->n++] = (uint32_t)at;
		if (is_root(t) && *name && is_needed(r, name) && !vec_push(&r->roots, r->n))
			return -ENOMEM;
		at += sizeof(*t) + more;
	}
	return at == r->types.n ? 0 : -EINVAL;
}

/* The two sections, aligned as types are. */
static bool find_sections(struct reader *r, struct str kernel)
{
	struct btf_header head;
	uint64_t types, strings;

	if (kernel.n < sizeof(head) || (uintptr_t)kernel.p % sizeof(uint32_t) != 0)
		return false;
	memcpy(&head, kernel.p, sizeof(head));
	types = (uint64_t)head.hdr_len + head.type_off;
	strings = (uint64_t)head.hdr_len + head.str_off;
	if (head.magic != BTF_MAGIC || types % sizeof(uint32_t) != 0 || head.type_len > INT32_MAX ||
	    types + head.type_len > kernel.n || strings + head.str_len > kernel.n)
		return false;
	r->types = str_first(str_skip(kernel, types), head.type_len);
	r->strings = str_first(str_skip(kernel, strings), head.str_len);
	return r->strings.n > 0 && r->strings.p[r->strings.n - 1] == '\0';
}

static int make(struct reader *r)
{
	size_t n_max = r->types.n / sizeof(struct btf_type) + 1;
	int code;

	r->offsets = calloc(n_max, sizeof(*r->offsets)); /* little of both is touched */
	r->made = calloc(n_max, sizeof(*r->made));
	r->excerpt = btf__new_empty();
	if (!r->offsets || !r->made || !r->excerpt)
		return -ENOMEM;
	code = scan(r);
	for (size_t i = 0; i < r->roots.n && code >= 0; i++)
		code = add(r, r->roots.p[i], 0);
	return code < 0 ? code : 0;
}

/* On the heap: a component has 8 KiB of stack (andiron/abi.h), which the bits alone would fill. */
int types_excerpt_make(struct str kernel, const struct btf *needs, struct btf **ret)
{
	_cleanup_(freep) struct reader *r = calloc(1, sizeof(*r));
	int code;

	if (!r)
		return -ENOMEM;
	code = find_sections(r, kernel) ? 0 : -EINVAL;
	if (code == 0)
		code = read_needs(r, needs) ? make(r) : -ENOMEM;
	if (code == 0)
		*ret = r->excerpt;
	else
		btf__free(r->excerpt);
	vec_each (&r->names, name)
		free(*name);
	vec_free(&r->names);
	vec_free(&r->roots);
	free(r->offsets);
	free(r->made);
	return code;
}

/* --- The file --- */

const char *types_excerpt_open(struct types_excerpt *e)
{
	e->fd = memfd_create("andiron-types", MFD_CLOEXEC);
	if (e->fd < 0)
		return NULL;
	snprintf(e->path, sizeof(e->path), "/proc/self/fd/%d", e->fd);
	return e->path;
}

int types_excerpt_fill(const struct types_excerpt *e, const struct bpf_object *object)
{
	struct kernel_types kernel;
	struct btf *excerpt = NULL;
	const void *bytes = NULL;
	uint32_t n = 0;
	int r;

	if (e->fd < 0)
		return 0;
	r = kernel_types_read(&kernel);
	if (r != 0)
		return r;
	if (types_excerpt_make(kernel.text, bpf_object__btf(object), &excerpt) == 0)
		bytes = btf__raw_data(excerpt, &n);
	r = bytes ? file_write_fd(e->fd, bytes, n)
		  : file_write_fd(e->fd, kernel.text.p, kernel.text.n);
	btf__free(excerpt);
	kernel_types_fini(&kernel);
	return r;
}

void types_excerpt_close(struct types_excerpt *e)
{
	closep(&e->fd);
}
