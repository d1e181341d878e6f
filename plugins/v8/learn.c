/* SPDX-License-Identifier: Apache-2.0 */
/* An object is read, and then looked at once more: it may have moved in the meantime. What could
 * not be read is not in the cache, or is marked there, and is read at a later sighting. */
#include "v8/learn.h"

#include <stdlib.h>
#include <string.h>

#include "v8/code/wasm.h"

#define SCRIPT_SOURCE      8
#define SCRIPT_NAME        16
#define SCRIPT_LINE_OFFSET 24
/* Of a key's counts: all but the byte of flags behind them since 9, which say how far compilers
 * have come with the function. */
#define COUNTS 0x00ffffffffffffffull

static char *copy(const char *text, size_t n)
{
	char *s = malloc(n + 1);

	if (s) {
		memcpy(s, text, n);
		s[n] = '\0';
	}
	return s;
}

/* What could not be read of a script or of code is tried again some times, longer than the
 * collector takes to move what there is: it may also be more than can be read. */
#define TRIES           8u
#define SCRIPT_AGAIN_NS 100000000ull

/* The script at an address, which is the one with this number. */
static struct names_script *script_read(const struct heap *h, uint64_t address, uint64_t number)
{
	struct names_script *s;
	char name[1024];
	uint64_t word, source;
	size_t n;

	if (!heap_is(h, address, h->binary->types.script) ||
	    !heap_word(h, address, h->binary->layout.script_id, &word) || word != number ||
	    !heap_word(h, address, SCRIPT_NAME, &word))
		return NULL;
	if (!heap_word(h, address, SCRIPT_SOURCE, &source))
		source = 0;
	memory_announce(h->memory, (uint64_t[]){word, source}, 2);
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->n_torn = !heap_name(h, word, name, sizeof(name), &n);
	s->name = copy(name, n);
	if (heap_word(h, address, SCRIPT_LINE_OFFSET, &word) && heap_is_small(word))
		s->line_offset = (int32_t)(word >> 32);
	s->n_torn |= !heap_lines(h, source, &s->lines);
	h->memory->refresh(h->memory->context);
	if (!heap_word(h, address, SCRIPT_SOURCE, &word) || word != source)
		s->n_torn = 1;
	if (s->name && heap_word(h, address, h->binary->layout.script_id, &word) && word == number)
		return s;
	names_script_free(s);
	return NULL;
}

static bool is_final(uint32_t n_torn)
{
	return n_torn == 0 || n_torn >= TRIES;
}

/* Whether all is known of a script that could be read. */
static bool script_is_known(const struct learning *l, uint64_t id)
{
	const struct names_script *s = names_script(l->names, id);

	return s && is_final(s->n_torn);
}

static void learn_script(const struct learning *l, const struct v8_key *key, uint64_t id)
{
	struct names_script *s;
	const struct names_script *before;
	bool known;

	pthread_mutex_lock(l->lock);
	before = names_script(l->names, id);
	known = before && (script_is_known(l, id) || l->now_ns - before->torn_ns < SCRIPT_AGAIN_NS);
	pthread_mutex_unlock(l->lock);
	s = known ? NULL : script_read(&l->heap, key->script, key->script_id);
	if (!s)
		return;
	s->entry.id = id;
	pthread_mutex_lock(l->lock);
	before = names_script(l->names, id);
	if (before && s->n_torn > 0)
		s->n_torn += before->n_torn;
	s->torn_ns = l->now_ns;
	s->entry.process_id = l->process_id;
	names_put_script(l->names, s);
	pthread_mutex_unlock(l->lock);
}

/* Whether the function at the key's address is still the key's. */
static bool function_is(const struct heap *h, const struct v8_key *key)
{
	const struct v8_layout *l = &h->binary->layout;
	uint64_t script, counts, flags;

	return heap_is(h, key->shared, h->binary->types.shared) &&
	       heap_word(h, key->shared, l->shared_script, &script) && script == key->script &&
	       heap_word(h, key->shared, l->shared_counts, &counts) &&
	       (counts & COUNTS) == (key->counts & COUNTS) &&
	       heap_word(h, key->shared, l->shared_flags, &flags) &&
	       flags >> 32 == key->flags >> 32;
}

static void function_read_positions(const struct heap *h, uint64_t bytecodes,
				    struct names_function *f)
{
	uint64_t table, length;

	if (!heap_is(h, bytecodes, h->binary->types.bytecodes) ||
	    !heap_word(h, bytecodes, h->binary->bytecode_positions, &table))
		return;
	f->positions = heap_bytes(h, table, &f->n_positions);
	if (f->positions &&
	    (!heap_word(h, bytecodes, 8, &length) ||
	     !positions_fit(f->positions, f->n_positions, h->binary, length >> 32))) {
		free(f->positions);
		f->positions = NULL;
		f->n_positions = 0;
	}
	f->bytecodes = f->positions || heap_has_no_bytes(h, table) ? bytecodes : 0;
}

/* Code most of the time begins in the same page, or the one before. */
static void announce_code(const struct heap *h, const struct v8_key *key, uint64_t code)
{
	const uint64_t at[] = {key->shared, key->script, code, code - MEMORY_PAGE};

	memory_announce_code(h->memory, at, 4);
}

/* `code`: what is read behind it; 0: nothing. */
static struct names_function *function_read(const struct heap *h, const struct v8_key *key,
					    uint64_t bytecodes, uint64_t code)
{
	/* The function before its parts: it is looked at again behind them. */
	const uint64_t looked_at[] = {key->shared, key->name, bytecodes};
	struct names_function *f;
	struct heap_scope scope;
	uint64_t name, still;

	memory_announce(h->memory, looked_at, 3);
	if (!function_is(h, key) ||
	    !heap_word(h, key->shared, h->binary->layout.shared_name, &name))
		return NULL;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	if (!heap_scope(h, name, &scope)) {
		free(f);
		return NULL;
	}
	f->key = *key;
	f->name = copy(scope.name, scope.n_name);
	f->start = scope.start;
	f->end = scope.end;
	if (bytecodes != 0)
		function_read_positions(h, bytecodes, f);
	/* Nothing has moved in the meantime. */
	h->memory->refresh(h->memory->context);
	if (code != 0)
		announce_code(h, key, code);
	else
		memory_announce(h->memory, (uint64_t[]){key->shared, key->script}, 2);
	if (f->name && function_is(h, key) &&
	    heap_word(h, key->shared, h->binary->layout.shared_name, &still) && still == name)
		return f;
	names_function_free(f);
	return NULL;
}

/* Whether all is known that could be read of a function. */
static bool function_is_known(const struct learning *l, uint64_t id, uint64_t bytecodes)
{
	struct names_function *f;
	bool known;

	pthread_mutex_lock(l->lock);
	f = names_function(l->names, id);
	known = f && (f->script == 0 || script_is_known(l, f->script)) &&
		(bytecodes == 0 || f->bytecodes == bytecodes);
	pthread_mutex_unlock(l->lock);
	return known;
}

/* False: it is no function. */
static bool learn_function(const struct learning *l, const struct v8_key *key, uint64_t bytecodes,
			   uint64_t code)
{
	uint64_t id = v8_function_id(l->seed, key);
	struct names_function *f, *before;

	if (function_is_known(l, id, bytecodes))
		return true;
	f = function_read(&l->heap, key, bytecodes, code);
	if (!f)
		return false;
	f->entry.id = id;
	if (heap_is_small(key->script_id) && heap_is_pointer(key->script)) {
		f->script = names_script_id(l->seed, key->script, key->script_id);
		learn_script(l, key, f->script);
	}
	pthread_mutex_lock(l->lock);
	before = names_function(l->names, id);
	/* Two functions of one id would have each other's name. */
	if (before && memcmp(&before->key, key, sizeof(*key)) != 0)
		f->name[0] = '\0';
	if (before && before->positions && !f->positions) {
		f->positions = before->positions;
		f->n_positions = before->n_positions;
		f->bytecodes = before->bytecodes;
		before->positions = NULL;
	}
	f->entry.process_id = l->process_id;
	names_put_function(l->names, f);
	pthread_mutex_unlock(l->lock);
	return true;
}

/* A function by its SharedFunctionInfo, as code that has inlined it says: its id, or 0. */
static uint64_t learn_inlined(const struct learning *l, uint64_t shared)
{
	const struct v8_layout *layout = &l->heap.binary->layout;
	struct v8_key key = {.process_id = l->process_id, .shared = shared};
	const struct heap *h = &l->heap;
	uint64_t name, script, number, counts, flags;

	if (!heap_word(h, shared, layout->shared_name, &name) ||
	    !heap_word(h, shared, layout->shared_script, &script) ||
	    !heap_word(h, shared, layout->shared_counts, &counts) ||
	    !heap_word(h, shared, layout->shared_flags, &flags) ||
	    !heap_word(h, script, layout->script_id, &number))
		return 0;
	key.name = name;
	key.script = script;
	key.script_id = number;
	key.counts = counts;
	key.flags = flags;
	return learn_function(l, &key, 0, 0) ? v8_function_id(l->seed, &key) : 0;
}

/* The functions that code has inlined, now, while they are there. */
static void learn_all_inlined(const struct learning *l, struct names_code *c)
{
	for (uint32_t i = 0; i < c->code.n_inlined; i++) {
		struct code_inlined *to = &c->code.inlined[i];

		to->function = to->shared != 0 ? learn_inlined(l, to->shared) : 0;
		c->n_torn |= to->shared != 0 && to->function == 0;
	}
	for (uint32_t i = 0; i < c->code.n_callees; i++) {
		struct code_callee *to = &c->code.callees[i];

		to->function = learn_inlined(l, to->shared);
		c->n_torn |= to->function == 0;
	}
}

static struct v8_place_state state_of(const struct code *c)
{
	return (struct v8_place_state){0, c->header, c->compilation, c->start, c->end};
}

/* Whether the code around an address is known and still there. */
static bool code_is_known(const struct learning *l, uint64_t pc, struct v8_place_state *ret)
{
	struct names_code *c;
	__u64 words[V8_HEADER];

	ret->header = 0;
	pthread_mutex_lock(l->lock);
	c = names_code(l->names, l->process_id, pc);
	if (c && is_final(c->n_torn))
		*ret = state_of(&c->code);
	pthread_mutex_unlock(l->lock);
	return ret->header != 0 && memory_read(l->heap.memory, ret->header, words, sizeof(words)) &&
	       v8_compilation(l->seed, words) == ret->compilation;
}

/* False: not all of it could be read. */
static bool learn_code(const struct learning *l, const struct v8_sighting *s,
		       struct v8_place_state *ret)
{
	struct names_code *c, *before;
	bool all;

	if (code_is_known(l, s->code, ret))
		return true;
	if (s->instance == 0)
		announce_code(&l->heap, &s->key, s->code);
	*ret = (struct v8_place_state){0};
	c = calloc(1, sizeof(*c));
	if (!c || !(s->instance != 0 ? wasm_read(&l->heap, l->seed, s, &c->code)
				     : code_read(&l->heap, l->seed, s, &c->code))) {
		free(c);
		return false;
	}
	*ret = state_of(&c->code);
	c->process_id = l->process_id;
	c->entry.id = v8_mix(l->seed, c->code.header);
	c->n_torn = s->instance == 0 && c->code.n_positions == 0;
	learn_all_inlined(l, c);
	pthread_mutex_lock(l->lock);
	before = names_code(l->names, l->process_id, s->code);
	if (c->n_torn > 0 && before && before->entry.id == c->entry.id &&
	    before->code.compilation == c->code.compilation)
		c->n_torn += before->n_torn;
	all = is_final(c->n_torn);
	names_put_code(l->names, c);
	pthread_mutex_unlock(l->lock);
	return all;
}

bool learn(const struct learning *l, const struct v8_sighting *sighting, struct v8_place_state *ret)
{
	bool has_code = sighting->code != 0 && sighting->code != V8_NOWHERE &&
			sighting->bytecode == 0;
	bool all;

	*ret = (struct v8_place_state){0};
	if (sighting->instance != 0)
		return learn_code(l, sighting, ret);
	if (!learn_function(l, &sighting->key, sighting->bytecode, has_code ? sighting->code : 0))
		return false;
	all = function_is_known(l, sighting->function, sighting->bytecode);
	if (has_code)
		all &= learn_code(l, sighting, ret);
	return all;
}
