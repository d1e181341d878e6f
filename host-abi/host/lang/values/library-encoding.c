/* SPDX-License-Identifier: Apache-2.0 */
/* encoding.*, file.path_join and convert.nonsensitive. */
#include "host/lang/values/library-text.h"

#include "base/buf.h"

static const char alphabets[2][65] = {BUF_BASE64, BUF_BASE64_URL};

static bool to_base64(struct lang *l, const struct expr *e, const struct andiron_value *args,
		      const char *alphabet, struct andiron_value *ret)
{
	struct buf out = library_text();
	struct str s = STR_NULL;

	if (!library_strings(l, e, args, 1, &s))
		return false;
	buf_base64_append(&out, s, alphabet);
	return library_give(l, e, &out, args[0].flags, ret);
}

static bool from_base64(struct lang *l, const struct expr *e, const struct andiron_value *args,
			const char *alphabet, struct andiron_value *ret)
{
	struct buf out = library_text();
	ssize_t n = 0;
	bool good;
	struct str s = STR_NULL;
	char *room;

	if (!library_strings(l, e, args, 1, &s))
		return false;
	room = buf_reserve(&out, s.n / 4 * 3 + 2);
	if (room)
		n = base64_decode(room, s, alphabet, true);
	good = n >= 0;
	if (n > 0)
		out.n += (size_t)n;
	if (!good || !str_utf8(buf_str(&out))) {
		lang_error(l, library_argument(e, 0)->place, NULL, good ? "it encodes no UTF-8 text"
								: "this is not base64");
		buf_free(&out);
		return false;
	}
	return library_give(l, e, &out, args[0].flags, ret);
}

LIBRARY_FUNCTION(to_base64)
{
	return to_base64(l, e, args, alphabets[0], ret);
}

LIBRARY_FUNCTION(from_base64)
{
	return from_base64(l, e, args, alphabets[0], ret);
}

LIBRARY_FUNCTION(to_url64)
{
	return to_base64(l, e, args, alphabets[1], ret);
}

LIBRARY_FUNCTION(from_url64)
{
	return from_base64(l, e, args, alphabets[1], ret);
}

LIBRARY_FUNCTION(url_encode)
{
	struct buf out = library_text();
	struct str s = STR_NULL;

	if (!library_strings(l, e, args, 1, &s))
		return false;
	buf_percent_append(&out, s, " ");
	for (size_t i = 0; i < out.n; i++)
		if (out.p[i] == ' ')
			out.p[i] = '+';
	return library_give(l, e, &out, args[0].flags, ret);
}

LIBRARY_FUNCTION(url_decode)
{
	struct buf out = library_text();
	bool good = true;
	uint64_t code;
	struct str s = STR_NULL;

	if (!library_strings(l, e, args, 1, &s))
		return false;
	for (size_t i = 0; good && i < s.n && !out.failed; i++) {
		if (s.p[i] != '%') {
			buf_putc(&out, s.p[i] == '+' ? ' ' : s.p[i]);
			continue;
		}
		good = i + 2 < s.n && str_hex(str_first(str_skip(s, i + 1), 2), &code);
		buf_putc(&out, good ? (char)code : '%');
		i += 2;
	}
	if (!good || !str_utf8(buf_str(&out))) {
		lang_error(l, library_argument(e, 0)->place, NULL, "this is not encoded for a URL");
		buf_free(&out);
		return false;
	}
	return library_give(l, e, &out, args[0].flags, ret);
}



/* Adds one piece of a path to the shortest form of those before it. */
static void add_piece(struct buf *out, struct str piece, bool absolute)
{
	size_t slash = str_rfind(buf_str(out), '/');
	struct str last = slash < out->n ? str_skip(buf_str(out), slash + 1) : buf_str(out);
	bool up = str_is(piece, "..");

	if (!piece.n || str_is(piece, "."))
		return;
	if (up && out->n && !str_is(last, "..")) {
		out->n = slash < out->n ? slash : 0;
	} else if (!up || !absolute) {
		if (absolute || out->n)
			buf_putc(out, '/');
		buf_str_append(out, piece);
	}
}

/* The result is the shortest that names the same file, as Go's filepath.Join has it. */
LIBRARY_FUNCTION(path_join)
{
	struct buf joined = library_text(), out = library_text();
	struct str rest;
	uint32_t flags = 0;
	bool absolute;

	for (uint32_t i = 0; i < e->n_items; i++) {
		if (!library_string(l, e, i, "a string", &args[i], &rest)) {
			buf_free(&joined);
			return false;
		}
		if (rest.n && joined.n)
			buf_putc(&joined, '/');
		buf_str_append(&joined, rest);
		flags |= args[i].flags;
	}
	rest = buf_str(&joined);
	absolute = str_starts(rest, STR("/"));
	while (rest.n)
		add_piece(&out, str_cut(&rest, '/'), absolute);
	if (joined.n && !out.n)
		buf_putc(&out, absolute ? '/' : '.');
	out.failed |= joined.failed;
	buf_free(&joined);
	return library_give(l, e, &out, flags, ret);
}

LIBRARY_FUNCTION(nonsensitive)
{
	struct str s = STR_NULL;

	return library_strings(l, e, args, 1, &s) && library_give_str(l, e, s, 0, ret);
}
