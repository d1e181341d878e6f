/* SPDX-License-Identifier: Apache-2.0 */
/* Functions, scripts and code of one process, each read once and kept as long as the process is. */
#include "names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRIPTS 4096u
#define CODES   65536u

#define SCRIPT_SOURCE      8
#define SCRIPT_NAME        16
#define SCRIPT_LINE_OFFSET 24

void names_init(struct names *n, const struct v8_memory *memory, const struct v8_binary *binary)
{
	*n = (struct names){.memory = *memory, .binary = binary};
}

void names_fini(struct names *n)
{
	for (uint32_t i = 0; i < n->max_functions; i++)
		if (n->functions[i]) {
			free(n->functions[i]->name);
			free(n->functions[i]->positions);
			free(n->functions[i]);
		}
	free(n->functions);
	for (uint32_t i = 0; i < n->n_scripts; i++) {
		free(n->scripts[i].name);
		free(n->scripts[i].ends);
	}
	free(n->scripts);
	for (uint32_t i = 0; i < n->n_codes; i++)
		code_fini(&n->codes[i]);
	free(n->codes);
	*n = (struct names){0};
}

static struct heap names_heap(const struct names *n)
{
	return (struct heap){&n->memory, n->binary};
}

static char *copy(const char *text, size_t n)
{
	char *s = malloc(n + 1);

	if (s) {
		memcpy(s, text, n);
		s[n] = '\0';
	}
	return s;
}

static bool names_has_room(struct names *n)
{
	if (n->bytes < NAMES_BYTES)
		return true;
	n->n_refused++;
	return false;
}

static bool names_read_script(struct names *n, const struct heap *h, uint64_t address,
			      struct names_script *s)
{
	char name[1024];
	uint64_t word;

	if (heap_word(h, address, SCRIPT_NAME, &word))
		s->name = copy(name, heap_string(h, word, name, sizeof(name)));
	if (!s->name)
		return false;
	if (heap_word(h, address, SCRIPT_LINE_OFFSET, &word) && heap_is_small(word))
		s->line_offset = (int32_t)(word >> 32);
	if (heap_word(h, address, SCRIPT_SOURCE, &word))
		s->ends = heap_line_ends(h, word, &s->n_ends, &s->characters);
	n->bytes += strlen(s->name) + 4ull * s->n_ends + sizeof(*s);
	return true;
}

/* The script at an address, which is the one with this number; -1: none. */
static int32_t names_script(struct names *n, const struct heap *h, uint64_t address, uint64_t id)
{
	struct names_script *grown, s = {.address = address, .id = id};
	uint64_t word;

	if (!heap_is_small(id))
		return -1;
	for (uint32_t i = 0; i < n->n_scripts; i++)
		if (n->scripts[i].address == address && n->scripts[i].id == id)
			return (int32_t)i;
	if (n->n_scripts == SCRIPTS || !names_has_room(n) ||
	    !heap_is(h, address, n->binary->types.script) ||
	    !heap_word(h, address, n->binary->layout.script_id, &word) || word != id)
		return -1;
	if ((n->n_scripts & (n->n_scripts - 1)) == 0) {
		grown = realloc(n->scripts, (n->n_scripts ? 2 * n->n_scripts : 1) * sizeof(s));
		if (!grown)
			return -1;
		n->scripts = grown;
	}
	if (!names_read_script(n, h, address, &s))
		return -1;
	n->scripts[n->n_scripts] = s;
	return (int32_t)n->n_scripts++;
}

/* Whether the function at the key's address is still the key's. */
static bool names_same(const struct names *n, const struct heap *h, const struct v8_key *key)
{
	const struct v8_layout *l = &n->binary->layout;
	uint64_t counts, flags;

	return heap_is(h, key->shared, n->binary->types.shared) &&
	       heap_word(h, key->shared, l->shared_counts, &counts) && counts == key->counts &&
	       heap_word(h, key->shared, l->shared_flags, &flags) &&
	       flags >> 32 == key->flags >> 32;
}

static void names_read_positions(struct names *n, const struct heap *h, struct names_function *f,
				 uint64_t bytecodes)
{
	uint64_t table, length;

	if (f->positions || !heap_is(h, bytecodes, n->binary->types.bytecodes) ||
	    !heap_word(h, bytecodes, n->binary->bytecode_positions, &table))
		return;
	f->bytecodes = bytecodes;
	f->positions = heap_bytes(h, table, &f->n_positions);
	if (f->positions && (!heap_word(h, bytecodes, 8, &length) ||
			     !positions_fit(f->positions, f->n_positions,
					    n->binary->positions_shift, length >> 32))) {
		free(f->positions);
		f->positions = NULL;
		f->n_positions = 0;
	}
	n->bytes += f->n_positions;
}

static void names_read(struct names *n, struct names_function *f)
{
	struct heap h = names_heap(n);
	struct heap_scope scope;
	uint64_t name;

	f->script = f->start = f->end = -1;
	if (!names_same(n, &h, &f->key))
		return;
	if (!heap_word(&h, f->key.shared, n->binary->layout.shared_name, &name))
		return;
	heap_scope(&h, name, &scope);
	f->script = names_script(n, &h, f->key.script, f->key.script_id);
	free(f->name);
	f->name = copy(scope.name, scope.n_name);
	f->start = scope.start;
	f->end = scope.end;
	/* Nothing has moved in the meantime. */
	f->valid = f->name && names_same(n, &h, &f->key);
	n->bytes += sizeof(*f) + scope.n_name;
}

static uint64_t key_hash(const struct v8_key *key)
{
	uint64_t words[sizeof(*key) / 8], h = 0;

	memcpy(words, key, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / 8; i++)
		h = (h ^ words[i]) * 0x9e3779b97f4a7c15ull, h ^= h >> 29;
	return h;
}

static bool names_grow(struct names *n)
{
	uint32_t max = n->max_functions ? 2 * n->max_functions : 64;
	struct names_function **grown = calloc(max, sizeof(*grown));

	if (!grown)
		return false;
	for (uint32_t i = 0; i < n->max_functions; i++)
		if (n->functions[i]) {
			uint64_t at = key_hash(&n->functions[i]->key);

			while (grown[at & (max - 1)])
				at++;
			grown[at & (max - 1)] = n->functions[i];
		}
	free(n->functions);
	n->functions = grown;
	n->max_functions = max;
	return true;
}

int names_learn(struct names *n, const struct v8_key *key, uint64_t bytecodes,
		struct names_function **ret)
{
	struct heap h = names_heap(n);
	struct names_function *f;
	uint64_t at;

	if (2 * n->n_functions >= n->max_functions && !names_grow(n))
		return -ENOMEM;
	at = key_hash(key) & (n->max_functions - 1);
	while ((f = n->functions[at]) != NULL && memcmp(&f->key, key, sizeof(*key)) != 0)
		at = (at + 1) & (n->max_functions - 1);
	if (!f) {
		if (!names_has_room(n))
			return -ENOSPC;
		f = calloc(1, sizeof(*f));
		if (!f)
			return -ENOMEM;
		f->key = *key;
		names_read(n, f);
		n->functions[at] = f;
		n->n_functions++;
	}
	/* What could not be read may have been in the middle of a change. */
	if (!f->valid)
		names_read(n, f);
	else if (f->script < 0)
		f->script = names_script(n, &h, f->key.script, f->key.script_id);
	if (bytecodes != 0 && f->valid)
		names_read_positions(n, &h, f, bytecodes);
	*ret = f;
	return 0;
}

/* A function by its SharedFunctionInfo, as code that has inlined it says. */
static struct names_function *names_shared(struct names *n, uint64_t shared)
{
	const struct v8_layout *l = &n->binary->layout;
	struct heap h = names_heap(n);
	struct names_function *f;
	struct v8_key key;
	uint64_t name, script, counts, flags, id;

	if (!heap_word(&h, shared, l->shared_name, &name) ||
	    !heap_word(&h, shared, l->shared_script, &script) ||
	    !heap_word(&h, shared, l->shared_counts, &counts) ||
	    !heap_word(&h, shared, l->shared_flags, &flags) ||
	    !heap_word(&h, script, l->script_id, &id))
		return NULL;
	key = (struct v8_key){0, 0, shared, name, script, id, counts, flags};
	return names_learn(n, &key, 0, &f) == 0 && f->valid ? f : NULL;
}

static uint32_t names_code_after(const struct names *n, uint64_t pc)
{
	uint32_t low = 0, high = n->n_codes;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (n->codes[middle].start <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct code *names_code(const struct names *n, uint64_t pc)
{
	uint32_t i = names_code_after(n, pc);

	return i > 0 && pc <= n->codes[i - 1].end ? &n->codes[i - 1] : NULL;
}

static void names_drop_codes(struct names *n, uint64_t start, uint64_t end)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n->n_codes; i++) {
		if (n->codes[i].start < end && n->codes[i].end > start)
			code_fini(&n->codes[i]);
		else
			n->codes[kept++] = n->codes[i];
	}
	n->n_codes = kept;
}

void names_learn_code(struct names *n, uint64_t pc)
{
	struct heap h = names_heap(n);
	struct code *known = names_code(n, pc), code, *grown;
	uint32_t at;

	if ((known && code_is_there(&h, known)) || n->n_codes == CODES || !names_has_room(n) ||
	    !code_read(&h, pc, &code))
		return;
	names_drop_codes(n, code.start, code.end);
	grown = realloc(n->codes, (n->n_codes + 1ull) * sizeof(*grown));
	if (!grown) {
		code_fini(&code);
		return;
	}
	n->codes = grown;
	at = names_code_after(n, code.start);
	memmove(grown + at + 1, grown + at, (n->n_codes - at) * sizeof(*grown));
	grown[at] = code;
	n->n_codes++;
	n->bytes += sizeof(code) + code.n_positions + 24ull * code.n_inlined + 8ull * code.n_steps;
	/* Now, while they are there. */
	for (uint32_t i = 0; i < code.n_inlined; i++)
		if (code.inlined[i].shared)
			code.inlined[i].function = names_shared(n, code.inlined[i].shared);
}

static uint32_t script_line(const struct names_script *s, int32_t position)
{
	uint32_t low = 0, high = s->n_ends;

	if (position < 0 || s->n_ends == 0 || (uint32_t)position > s->characters)
		return 0;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (s->ends[middle] < (uint32_t)position)
			low = middle + 1;
		else
			high = middle;
	}
	return (uint32_t)((int64_t)low + 1 + s->line_offset);
}

static void names_frame(const struct names *n, const struct names_function *f, int32_t position,
			struct names_frame *ret)
{
	const struct names_script *s = f->script >= 0 ? &n->scripts[f->script] : NULL;

	*ret = (struct names_frame){f->name[0] ? f->name : "(anonymous)", s ? s->name : "", 0, 0};
	if (!s)
		return;
	ret->first_line = script_line(s, f->start);
	if (f->start >= 0 && f->end >= 0 && (position < f->start || position > f->end))
		return;
	ret->line = script_line(s, position);
}

static uint32_t names_optimized(const struct names *n, const struct names_function *f,
				const struct code *code, uint32_t offset, struct names_frame *ret,
				uint32_t max)
{
	struct position p = {-1, -1};
	uint32_t depth = 0;

	positions_find(code->positions, code->n_positions, n->binary->positions_shift, offset, &p);
	while (p.inlined >= 0 && (uint32_t)p.inlined < code->n_inlined && depth + 1 < max &&
	       depth <= code->n_inlined) {
		const struct code_inlined *i = &code->inlined[p.inlined];

		if (i->function)
			names_frame(n, i->function, p.at, &ret[depth++]);
		else
			ret[depth++] = (struct names_frame){"[inlined]", "", 0, 0};
		p = i->position;
	}
	if (p.inlined >= 0)
		p.at = -1;
	names_frame(n, f, p.at, &ret[depth]);
	return depth + 1;
}

static int32_t names_baseline(const struct names *n, const struct names_function *f,
			      const struct code *code, uint32_t offset)
{
	struct position p = {-1, -1};

	for (uint32_t i = 0; i < code->n_steps; i++)
		if (offset < code->steps[i].end) {
			positions_find(f->positions, f->n_positions, n->binary->positions_shift,
				       code->steps[i].offset, &p);
			break;
		}
	return p.at;
}

static uint32_t names_compiled(struct names *n, struct names_function *f, uint64_t where,
			       struct names_frame *ret, uint32_t max)
{
	uint64_t pc = where & ~V8_EXACT;
	struct code *code;
	uint32_t offset;

	ret[0] = (struct names_frame){0};
	names_frame(n, f, -1, ret);
	if (where == V8_NOWHERE)
		return 1;
	code = names_code(n, pc);
	if (!code || (code->kind == CODE_OPTIMIZED && code->shared != f->key.shared)) {
		names_learn_code(n, pc);
		code = names_code(n, pc);
	}
	if (!code)
		return 1;
	/* A return address belongs to the call before it. */
	offset = (uint32_t)(pc - code->start) - (where & V8_EXACT ? 0 : 1);
	if (code->kind == CODE_OPTIMIZED && code->shared == f->key.shared)
		return names_optimized(n, f, code, offset, ret, max);
	if (code->kind == CODE_BASELINE) {
		if (!f->positions) {
			struct heap h = names_heap(n);

			names_read_positions(n, &h, f, code->bytecodes);
		}
		if (f->bytecodes == code->bytecodes)
			names_frame(n, f, names_baseline(n, f, code, offset), ret);
	}
	return 1;
}

static uint32_t names_interpreted(struct names *n, struct names_function *f, uint64_t where,
				  struct names_frame *ret)
{
	struct position p = {-1, -1};
	int64_t offset = (int64_t)(where >> 32) - (n->binary->bytecode_data - 1);

	if (where != V8_NOWHERE && offset >= 0)
		positions_find(f->positions, f->n_positions, n->binary->positions_shift,
			       (uint32_t)offset, &p);
	names_frame(n, f, p.at, ret);
	return 1;
}

static uint32_t names_stub(struct names *n, uint64_t mark, uint64_t where, struct names_frame *ret)
{
	const struct v8_binary *b = n->binary;
	uint64_t pc = where & ~V8_EXACT;
	const char *name = NULL;

	for (int i = 0; i < (int)V8_BLOBS && !name; i++)
		if (pc >= n->blobs[i].from && pc < n->blobs[i].to) {
			name = binary_builtin(b, pc - n->blobs[i].from - !(where & V8_EXACT));
			if (!name)
				name = "[builtin]";
		}
	if (!name && mark < V8_MARKS) {
		if (strcmp(b->marks[mark], "Irregexp") == 0)
			name = "[regular expression]";
		else if (strncmp(b->marks[mark], "Wasm", 4) == 0)
			name = "[wasm]";
	}
	*ret = (struct names_frame){name ? name : "[code]", "", 0, 0};
	return 1;
}

uint32_t names_resolve(struct names *n, struct names_function *f, uint64_t what, uint64_t where,
		       struct names_frame *ret, uint32_t max)
{
	uint32_t kind = (uint32_t)V8_KIND(what);

	if (kind == V8_STUB)
		return names_stub(n, V8_NUMBER(what), where, ret);
	if (!f || !f->valid)
		return 0;
	if (f->script < 0) {
		struct heap h = names_heap(n);

		f->script = names_script(n, &h, f->key.script, f->key.script_id);
	}
	if (kind == V8_COMPILED)
		return names_compiled(n, f, where, ret, max);
	if (kind == V8_INTERPRETED)
		return names_interpreted(n, f, where, ret);
	names_frame(n, f, -1, ret);
	if (f->name[0] == '\0')
		names_stub(n, V8_MARKS, where, ret);
	return 1;
}
