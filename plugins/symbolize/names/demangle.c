/* SPDX-License-Identifier: Apache-2.0 */
/* libiberty demangles (docs/decisions/0005). It has no limit on what it prints, so each language
 * has its own way to end it.
 *
 * Rust's names are parsed while they are printed. The callback that takes the output spoils the
 * input: the next look at it is an error. A longjmp would leak the buffer of a punycode identifier.
 *
 * C++'s names are parsed into a graph of components, in time linear in the length, and the graph is
 * printed as if it were a tree. A back-reference makes two branches of one, so a name of 200 bytes
 * can be a tree of 2^50 nodes. Two things then have no bound of their own:
 *
 * - What is printed. The callback ends it by longjmp; printing holds nothing that would leak.
 * - What is searched without printing: for a parameter pack, each expansion's whole pattern. So the
 *   size of the tree is computed first, over the graph, each component once, and a name that is too
 *   large is not printed at all. The same walk bounds the array on the stack that printing needs:
 *   templates times references to their parameters. */
#include "symbolize/names/demangle.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "symbolize/names/simplify.h"

#include <andiron/batch.h>
#include <errno.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>

#define MAX_INPUT  ((size_t)4096)
#define MAX_OUTPUT ((size_t)65536)

/* --- Rust --- */

struct rust_sink {
	struct buf *out;
	char *input;
	size_t n_input;
	bool over;
};

static void take_rust(const char *p, size_t n, void *context)
{
	struct rust_sink *sink = context;

	if (sink->over)
		return;
	if (sink->out->n + n > MAX_OUTPUT || buf_append(sink->out, p, n) < 0) {
		sink->over = true;
		memset(sink->input, '.', sink->n_input);
	}
}

static bool is_hash(struct str s)
{
	size_t digits = 0;

	if (!str_starts(s, STR("17h")) || s.n < 20 || s.p[19] != 'E')
		return false;
	for (size_t i = 3; i < 19; i++)
		digits += (s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f');
	return digits == 16;
}

/* The bytes of a legacy Rust name up to the end of its hash; 0 if it is none. */
static size_t legacy_rust_length(struct str s)
{
	if (!str_starts(s, STR("_ZN")))
		return 0;
	for (size_t i = 3; i + 20 <= s.n; i++)
		if (is_hash(str_skip(s, i)) && (i + 20 == s.n || s.p[i + 20] == '.'))
			return i + 20;
	return 0;
}

static int run_rust(char *input, size_t n, bool verbose, struct buf *out)
{
	struct rust_sink sink = {.out = out, .input = input, .n_input = n};
	int r = rust_demangle_callback(input, verbose ? DMGL_VERBOSE : 0, take_rust, &sink);

	if (out->failed)
		return -ENOMEM;
	return r && !sink.over;
}

/* --- C++ (Itanium ABI) --- */

#define MAX_TREE   16384u
#define MAX_SCOPES 32768u
#define BUSY       UINT32_MAX /* on the way from the root to here */

/* What hangs on a component, by its type; two subtrees where not listed. */
enum shape { BINARY, LEAF, FIRST, NAMED_CTOR, NAMED_DTOR, NAMED_OPERATOR, FIXED };

static const unsigned char shapes[] = {
	[DEMANGLE_COMPONENT_NAME] = LEAF,
	[DEMANGLE_COMPONENT_TEMPLATE_PARAM] = LEAF,
	[DEMANGLE_COMPONENT_FUNCTION_PARAM] = LEAF,
	[DEMANGLE_COMPONENT_SUB_STD] = LEAF,
	[DEMANGLE_COMPONENT_BUILTIN_TYPE] = LEAF,
	[DEMANGLE_COMPONENT_EXTENDED_BUILTIN_TYPE] = LEAF,
	[DEMANGLE_COMPONENT_OPERATOR] = LEAF,
	[DEMANGLE_COMPONENT_CHARACTER] = LEAF,
	[DEMANGLE_COMPONENT_NUMBER] = LEAF,
	[DEMANGLE_COMPONENT_UNNAMED_TYPE] = LEAF,
	[DEMANGLE_COMPONENT_LAMBDA] = FIRST,
	[DEMANGLE_COMPONENT_DEFAULT_ARG] = FIRST,
	[DEMANGLE_COMPONENT_CTOR] = NAMED_CTOR,
	[DEMANGLE_COMPONENT_DTOR] = NAMED_DTOR,
	[DEMANGLE_COMPONENT_EXTENDED_OPERATOR] = NAMED_OPERATOR,
	[DEMANGLE_COMPONENT_FIXED_TYPE] = FIXED,
};

struct graph {
	const struct demangle_component *first; /* the block they all lie in */
	size_t n;
	uint32_t *sizes; /* of the tree beneath each; 0: not known yet */
	uint64_t templates, references;
};

static const struct demangle_component *left_of(const struct demangle_component *c,
						enum shape shape)
{
	switch (shape) {
	case BINARY:
		return c->u.s_binary.left;
	case FIRST:
		return c->u.s_unary_num.sub;
	case NAMED_CTOR:
		return c->u.s_ctor.name;
	case NAMED_DTOR:
		return c->u.s_dtor.name;
	case NAMED_OPERATOR:
		return c->u.s_extended_operator.name;
	case FIXED:
		return c->u.s_fixed.length;
	case LEAF:
	default:
		return NULL;
	}
}

/* As libiberty counts what it will have to remember while it prints. */
static void count_scope(struct graph *g, const struct demangle_component *c)
{
	bool reference = c->type == DEMANGLE_COMPONENT_REFERENCE ||
			 c->type == DEMANGLE_COMPONENT_RVALUE_REFERENCE;

	g->templates += c->type == DEMANGLE_COMPONENT_TEMPLATE;
	g->references += reference && c->u.s_binary.left &&
			 c->u.s_binary.left->type == DEMANGLE_COMPONENT_TEMPLATE_PARAM;
}

/* The size of the tree beneath a component, up to MAX_TREE + 1. As deep as the graph, whose
 * components are at most twice the name's bytes. */
static uint32_t tree_size(struct graph *g, const struct demangle_component *c)
{
	size_t at = c ? (size_t)(c - g->first) : g->n;
	enum shape shape;
	uint32_t size = 1;

	if (at >= g->n)
		return 0;
	if (g->sizes[at])
		return g->sizes[at] == BUSY ? MAX_TREE + 1 : g->sizes[at];
	g->sizes[at] = BUSY;
	count_scope(g, c);
	shape = (size_t)c->type < sizeof(shapes) ? shapes[c->type] : BINARY;
	size += tree_size(g, left_of(c, shape));
	if (shape == BINARY)
		size += tree_size(g, c->u.s_binary.right);
	g->sizes[at] = size < MAX_TREE + 1 ? size : MAX_TREE + 1;
	return g->sizes[at];
}

/* Whether the tree can be printed within bounds: 1 or 0, or -ENOMEM. */
static int is_modest(const struct demangle_component *root, const void *block, size_t n)
{
	struct graph g = {.first = block, .n = n, .sizes = calloc(n, sizeof(*g.sizes))};
	uint32_t size;

	if (!g.sizes)
		return -ENOMEM;
	check((size_t)(root - g.first) < n);
	size = tree_size(&g, root);
	free(g.sizes);
	return size <= MAX_TREE && g.templates * g.references <= MAX_SCOPES;
}

struct cplus_sink {
	struct buf *out;
	size_t limit;
	jmp_buf enough;
};

static void take_cplus(const char *p, size_t n, void *context)
{
	struct cplus_sink *sink = context;

	if (sink->out->n + n > sink->limit || buf_append(sink->out, p, n) < 0)
		longjmp(sink->enough, 1);
}

static int print_cplus(struct demangle_component *root, int options, struct buf *out)
{
	struct cplus_sink sink = {.out = out, .limit = out->n + MAX_OUTPUT};

	if (setjmp(sink.enough))
		return out->failed ? -ENOMEM : 0;
	return cplus_demangle_print_callback(options, root, take_cplus, &sink) != 0;
}

static uint64_t occurrences(const char *text, const char *set)
{
	uint64_t n = 0;

	for (text = strpbrk(text, set); text; text = strpbrk(text + 1, set))
		n++;
	return n;
}

/* Some names (clang's older "sr" mangling) only parse at a second try, which libiberty makes on its
 * way to print but not where it hands out the graph. For these the text must bear the proof: no
 * pack expansion, and few characters that can stand for a template or a reference. */
static int parse_and_print(const char *mangled, int options, struct buf *out)
{
	struct cplus_sink sink = {.out = out, .limit = out->n + MAX_OUTPUT};

	if (!strstr(mangled, "sr") || strstr(mangled, "Dp") || strstr(mangled, "sp") ||
	    occurrences(mangled, "IJ") * occurrences(mangled, "RO") > MAX_SCOPES)
		return 0;
	if (setjmp(sink.enough))
		return out->failed ? -ENOMEM : 0;
	return cplus_demangle_v3_callback(mangled, options | DMGL_NO_RECURSE_LIMIT, take_cplus,
					  &sink) != 0;
}

/* Appends the readable form: 1; 0 if the name is not understood or asks for more than the bounds
 * allow; -ENOMEM. */
static int run_cplus(const char *mangled, bool params, struct buf *out)
{
	int options = params ? DMGL_PARAMS | DMGL_ANSI : 0, r;
	struct demangle_component *root;
	void *block;

	root = cplus_demangle_v3_components(mangled, options, &block);
	if (!root)
		return parse_and_print(mangled, options, out);
	r = is_modest(root, block, 2 * strlen(mangled));
	if (r > 0)
		r = print_cplus(root, options, out);
	free(block);
	return r;
}

/* --- Either --- */

static int run(struct str mangled, uint32_t wish, struct buf *out)
{
	size_t legacy = legacy_rust_length(mangled);
	struct str core = str_first(mangled, legacy ? legacy : str_find(mangled, '.'));
	_cleanup_(freep) char *input = str_dup(core);
	bool full = wish == ANDIRON_DEMANGLE_FULL;
	int r;

	if (!input)
		return -ENOMEM;
	if (legacy || str_starts(mangled, STR("_R")))
		r = run_rust(input, core.n, legacy && full, out);
	else
		r = run_cplus(input, full, out);
	check(out->n <= MAX_OUTPUT);
	return r > 0 ? out->n > 0 : r;
}

int demangle(struct str mangled, uint32_t wish, struct buf *out)
{
	_cleanup_(buf_free) struct buf raw = BUF_NULL;
	int r;

	buf_clear(out);
	if (wish == ANDIRON_DEMANGLE_NONE || mangled.n > MAX_INPUT ||
	    !(str_starts(mangled, STR("_Z")) || str_starts(mangled, STR("_R"))) ||
	    memchr(mangled.p, '\0', mangled.n))
		return 0;
	r = run(mangled, wish, &raw);
	if (r <= 0)
		return r;
	r = simplify(buf_str(&raw), wish, out);
	return r < 0 ? r : 1;
}
