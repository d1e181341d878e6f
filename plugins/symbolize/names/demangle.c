/* SPDX-License-Identifier: Apache-2.0 */
/* Names in their degrees. libiberty demangles (docs/decisions/0005), and has
 * no limit on what it prints. Rust's names it parses while it prints, so the
 * callback that takes the output ends it by spoiling the input: the next look
 * at it is an error. (longjmp would leak the buffer of a punycode identifier;
 * for C++, where it is right, see cplus.c.) */
#include "symbolize/names/demangle.h"

#include "symbolize/names/cplus.h"
#include "symbolize/names/simplify.h"

#include "base/check.h"
#include "base/cleanup.h"

#include <andiron/batch.h>
#include <errno.h>
#include <libiberty/demangle.h>
#include <stdlib.h>

#define MAX_INPUT  ((size_t)4096)
#define MAX_OUTPUT CPLUS_MAX_OUTPUT

struct sink {
	struct buf *out;
	char *input;
	size_t n_input;
	bool over;
};

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

static int run_rust(char *input, size_t n, bool verbose, struct buf *out)
{
	struct sink sink = {.out = out, .input = input, .n_input = n};
	int r = rust_demangle_callback(input, verbose ? DMGL_VERBOSE : 0, take_rust, &sink);

	if (out->failed)
		return -ENOMEM;
	return r && !sink.over;
}

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
		r = cplus_demangle_bounded(input, full, out);
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
