/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demangling by libiberty (docs/decisions/0005). It has no limit on what it
 * prints, and a name of 200 bytes can ask for 2^50 bytes; its only way to the
 * outside is the callback that takes the output. So the callback ends it:
 *
 * C++: by longjmp. cplus_demangle_v3_callback parses into arrays on its stack
 * and prints from them; it holds nothing that would leak.
 *
 * Rust: by spoiling the input, which it parses while it prints; the next look
 * at it is an error. longjmp would leak the buffer of a punycode identifier.
 */
#include "demangle.h"

#include "simplify.h"

#include "base/check.h"
#include "base/cleanup.h"

#include <andiron/batch.h>
#include <errno.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>

#define MAX_INPUT ((size_t)4096)
#define MAX_OUTPUT ((size_t)65536)

struct sink {
	struct buf *out;
	char *input;
	size_t n_input;
	bool over;
	jmp_buf enough;
};

static void take_cplus(const char *p, size_t n, void *context)
{
	struct sink *sink = context;

	if (sink->out->n + n > MAX_OUTPUT || buf_append(sink->out, p, n) < 0) {
		sink->over = true;
		longjmp(sink->enough, 1);
	}
}

static void take_rust(const char *p, size_t n, void *context)
{
	struct sink *sink = context;

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

static int run_cplus(struct sink *sink, uint32_t wish)
{
	int options = DMGL_NO_RECURSE_LIMIT |
		      (wish == ANDIRON_DEMANGLE_FULL ? DMGL_PARAMS | DMGL_ANSI : 0);

	if (setjmp(sink->enough))
		return 0;
	return cplus_demangle_v3_callback(sink->input, options, take_cplus, sink);
}

static int run_rust(struct sink *sink, uint32_t wish, bool legacy)
{
	int options = legacy && wish == ANDIRON_DEMANGLE_FULL ? DMGL_VERBOSE : 0;

	return rust_demangle_callback(sink->input, options, take_rust, sink);
}

static int run(struct str mangled, uint32_t wish, struct buf *out)
{
	size_t legacy = legacy_rust_length(mangled);
	bool rust = legacy || str_starts(mangled, STR("_R"));
	struct str core = str_first(mangled, legacy ? legacy : str_find(mangled, '.'));
	_cleanup_(freep) char *input = str_dup(core);
	struct sink sink = {.out = out, .input = input, .n_input = core.n};
	int r;

	if (!input)
		return -ENOMEM;
	r = rust ? run_rust(&sink, wish, legacy) : run_cplus(&sink, wish);
	if (out->failed)
		return -ENOMEM;
	check(out->n <= MAX_OUTPUT);
	return r && !sink.over && out->n > 0;
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
