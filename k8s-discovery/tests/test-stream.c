/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and watches as they arrive: whole, in pieces, and damaged. */
#include "base/hash.h"
#include "testing/test.h"
#include "k8s-discovery/objects/proto.h"
#include "k8s-discovery/api/stream.h"
#include "k8s-discovery/tests/test-wire.h"

#include <errno.h>
#include <stdlib.h>

#define JSON_POD(name)                                                                             \
	"{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"shop\",\"resourceVersion\":\"7\","   \
	"\"labels\":{\"x\":\"}]\\\"{[\"}},\"spec\":{\"containers\":[{\"name\":\"c\"}]}}"
#define JSON_LIST(items)                                                                           \
	" \n{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"9\",\"continue\":\"t\","     \
	"\"managedFields\":[{\"a\":[{}]}]},\"items\":[" items "],\"x\":{}}\n"

/* What a stream told, as text: "set NS/NAME@VERSION;". */
struct told {
	struct buf text;
	size_t n;
};

static int tell(void *context, const struct stream_event *e)
{
	static const char *const words[] = {"", "set", "deleted", "bookmark"};
	struct told *t = context;

	t->n++;
	if (e->what == STREAM_SKIPPED)
		return buf_printf(&t->text, "skipped;");
	if (e->what == STREAM_FAILED)
		return buf_printf(&t->text, "failed %d %s;", e->code, e->text);
	buf_printf(&t->text, "%s %.*s/", words[e->what], STR_FMT(e->object->namespace_));
	buf_str_append(&t->text, e->object->name);
	return buf_printf(&t->text, "@%.*s%s;", STR_FMT(e->object->version),
			  e->object->initial_end ? " end" : "");
}

/* Feeds the input in two pieces; 0 or the first failure. */
static int feed(struct str input, size_t cut, bool watch, struct told *told, struct error *err)
{
	struct stream *s = stream_new(KIND_POD, watch, tell, told);
	struct str rest = str_skip(input, cut);
	int r = -ENOMEM;

	buf_clear(&told->text);
	told->n = 0;
	if (!s)
		return r;
	r = stream_feed(s, str_first(input, cut), err);
	if (r == 0 && rest.n)
		r = stream_feed(s, rest, err);
	if (r == 0)
		r = stream_end(s, err);
	stream_free(s);
	return r;
}

/* Wherever the network cuts an answer, the same comes out of it. */
static void expect_uncut(struct str input, bool watch, struct str expected)
{
	struct told told = {0};
	struct error err = ERROR_NULL;

	for (size_t cut = 0; cut <= input.n; cut++) {
		int r = feed(input, cut, watch, &told, &err);

		if (r != 0)
			test_fail(__FILE__, __LINE__, "cut at %zu of %zu: %s", cut, input.n,
				  err.text);
		expect(str_eq(buf_str(&told.text), expected));
	}
	buf_free(&told.text);
}

TEST(protobuf_lists_may_be_cut_anywhere)
{
	struct buf list = wire_pods(2, "9", "token");

	expect_uncut(buf_str(&list), false, STR("set shop/p0@9;set shop/p1@9;"));
	buf_free(&list);
}

TEST(json_lists_may_be_cut_anywhere)
{
	expect_uncut(STR(JSON_LIST(JSON_POD("a") " , " JSON_POD("b"))), false,
		     STR("set shop/a@7;set shop/b@7;"));
	expect_uncut(STR("{\"metadata\":{},\"items\":null}"), false, STR_NULL);
}

/* One that a stranger has written does not hide the others. A text keeps its NUL. */
TEST(an_object_that_is_not_to_be_read_is_skipped)
{
	expect_uncut(STR(JSON_LIST(JSON_POD("a") "," JSON_POD("b\\u0000c") "," JSON_POD("c"))),
		     false, STR("set shop/a@7;set shop/b\0c@7;set shop/c@7;"));
	expect_uncut(STR(JSON_LIST(JSON_POD("a") ",{\"\\u0000\":1}," JSON_POD("c"))), false,
		     STR("set shop/a@7;skipped;set shop/c@7;"));
	expect_uncut(STR("{\"type\":\"ADDED\",\"object\":{\"\\u0000\":1}}\n"
			 "{\"type\":\"ADDED\",\"object\":" JSON_POD("b\\u0000c") "}\n"),
		     true, STR("skipped;set shop/b\0c@7;"));
}

static struct buf some_events(void)
{
	struct buf b = BUF_NULL, o = wire_pod("a", "1");

	wire_event(&b, "ADDED", "Pod", &o);
	o = wire_bookmark("2", true);
	wire_event(&b, "BOOKMARK", "Pod", &o);
	o = wire_pod("a", "3");
	wire_event(&b, "DELETED", "Pod", &o);
	o = wire_status(410, "too old");
	wire_event(&b, "ERROR", "Status", &o);
	return b;
}

TEST(protobuf_watches_may_be_cut_anywhere)
{
	struct buf b = some_events();

	expect_uncut(buf_str(&b), true,
		     STR("set shop/a@1;bookmark /@2 end;deleted shop/a@3;failed 410 too old;"));
	buf_free(&b);
}

TEST(json_watches_may_be_cut_anywhere)
{
	expect_uncut(STR("{\"type\":\"ADDED\",\"object\":" JSON_POD(
			     "a") "}\n\n"
				  "{\"type\":\"BOOKMARK\","
				  "\"object\":{\"metadata\":{\"resourceVersion\":\"8\","
				  "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n"
				  "{\"type\":\"DELETED\",\"object\":" JSON_POD(
					  "a") "}\n"
					       "{\"type\":\"ERROR\",\"object\":{\"code\":410,"
					       "\"message\":\"too old\"}}\n"),
		     true,
		     STR("set shop/a@7;bookmark /@8 end;deleted shop/a@7;failed 410 too old;"));
}

TEST(a_list_has_a_version_and_a_next_page)
{
	struct buf list = wire_pods(1, "9", "token");
	const struct str inputs[] = {buf_str(&list), STR(JSON_LIST(""))};
	const char *const tokens[] = {"token", "t"};
	struct told told = {0};

	for (size_t i = 0; i < 2; i++) {
		struct stream *s = stream_new(KIND_POD, false, tell, &told);
		struct error err = ERROR_NULL;

		expect_eq(stream_feed(s, inputs[i], &err), 0);
		expect_eq(stream_end(s, &err), 0);
		expect_str(stream_version(s), "9");
		expect_str(stream_next(s), tokens[i]);
		stream_free(s);
	}
	buf_free(&told.text);
	buf_free(&list);
}

/* An answer that is cut off is not taken for a whole one: objects that are not in it would be
 * thought gone. */
TEST(half_an_answer_is_none)
{
	struct buf list = wire_pods(2, "9", "");
	const struct str inputs[] = {buf_str(&list), STR(JSON_LIST(JSON_POD("a")))};
	struct told told = {0};

	for (size_t i = 0; i < 2; i++) {
		/* The last two fields of the envelope are empty; so is the space behind JSON. */
		size_t last = inputs[i].n - (i ? 1 : 4);

		for (size_t n = 0; n < last; n++) {
			struct error err = ERROR_NULL;

			expect_eq(feed(str_first(inputs[i], n), n, false, &told, &err), -EPROTO);
			expect(err.text[0]);
		}
	}
	buf_free(&told.text);
	buf_free(&list);
}

TEST(what_is_no_answer_is_quoted)
{
	static const struct {
		struct str body;
		bool watch;
	} rows[] = {
		{STR("<html>It works!</html>"), false},
		{STR("<html>It works!</html>"), true},
		{STR("{\"It\":\"works!\"}"), false},
		{STR("{\"It\":\"works!\"}\n"), true},
		{STR("kubernetes? It works!"), false},
		{STR("{\"type\":\"ADDED\",\"object\":{\"It\":\"works!\"}}\n"), true},
	};
	struct told told = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct error err = ERROR_NULL;

		expect_eq(feed(rows[i].body, rows[i].body.n, rows[i].watch, &told, &err), -EPROTO);
		expect(strstr(err.text, "begins with \"") && told.n == 0);
	}
	buf_free(&told.text);
}

/* Lengths that lie: beyond what surrounds them, and beyond any reason. */
TEST(lengths_are_not_believed)
{
	static const struct {
		struct str body;
		bool watch;
		int r;
	} rows[] = {
		{STR("k8s\0\x12\x02\x12\x7f"), false, -EPROTO}, /* item > list */
		{STR("k8s\0\x12\xff\xff\xff\xff\x0f\x12\xff\xff\xff\x7f"), false, -E2BIG},
		{STR("k8s\0\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), false, -EPROTO},
		{STR("k8s\0\x0b"), false, -EPROTO},     /* a group */
		{STR("k8s\0\x02\x00"), false, -EPROTO}, /* field 0 */
		{STR("k8s\0\x12\x06\x12\x04\x0a\x7f\x00\x00"), false,
		 -EPROTO}, /* metadata > item */
		{STR("\0\0\0\0"), true, -EPROTO},
		{STR("\x00\xff\xff\xff"), true, -EPROTO}, /* ends early */
		{STR("\0\0\0\x04\x0a\x7f\x00\x00"), true, -EPROTO},
	};
	struct told told = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct error err = ERROR_NULL;

		expect_eq(feed(rows[i].body, rows[i].body.n, rows[i].watch, &told, &err),
			  rows[i].r);
		expect(err.text[0] && told.n == 0);
	}
	buf_free(&told.text);
}

TEST(a_huge_object_is_refused)
{
	char head[] = "{\"type\":\"ADDED\",\"object\":\"";
	size_t n = (16u << 20) + 64;
	char *text = malloc(n);
	struct told told = {0};
	struct error err = ERROR_NULL;

	memset(text, 'x', n);
	memcpy(text, head, sizeof(head) - 1);
	expect_eq(feed((struct str){text, n}, 1000, true, &told, &err), -E2BIG);
	expect(strstr(err.text, "16 MiB"));
	free(text);
	buf_free(&told.text);
}

/* An object keeps of its input what is wanted, in whatever order it came. */
TEST(what_nobody_wants_is_not_kept)
{
	struct buf pod = wire_pod("a", "1"), turned = BUF_NULL;
	struct object o = {0}, again = {0};

	expect_eq(object_read(KIND_POD, buf_str(&pod), &o), 0);
	expect_str(o.name, "a");
	expect_str(o.namespace_, "shop");
	expect(o.kept.n < 400 && pod.n > 2000);
	expect_eq(o.annotation_bytes, 10);
	expect_eq(str_search(buf_str(&o.kept), STR("managed")), o.kept.n);
	expect_eq(str_search(buf_str(&o.kept), STR("PodScheduled")), o.kept.n);
	expect_eq(str_search(buf_str(&o.kept), STR("unwanted")), o.kept.n);
	/* Status before spec before metadata. */
	for (uint32_t number = 3; number > 0; number--) {
		struct str part = proto_bytes(buf_str(&pod), number);
		struct buf copy = BUF_NULL;

		buf_str_append(&copy, part);
		wire_part(&turned, number, &copy);
	}
	expect_eq(object_read(KIND_POD, buf_str(&turned), &again), 0);
	for (uint32_t number = 1; number <= 3; number++)
		expect(str_eq(proto_bytes(buf_str(&o.kept), number),
			      proto_bytes(buf_str(&again.kept), number)));
	object_fini(&o);
	object_fini(&again);
	buf_free(&pod);
	buf_free(&turned);
}

/* Annotations that nobody reads are not kept, large as they may be. */
TEST(annotations_are_kept_by_name)
{
	const struct str names[] = {STR("a/wanted")};
	const struct annotations wanted = {names, 1};
	struct object o = {.wanted = &wanted}, all = {0};
	struct buf pod = BUF_NULL, meta = BUF_NULL;
	char *large = malloc(256 << 10);
	json_t *json;

	memset(large, 'x', 256 << 10);
	large[(256 << 10) - 1] = '\0';
	wire_text(&meta, 1, "p");
	wire_entry(&meta, 12, "a/wanted", "yes");
	wire_entry(&meta, 12, "last-applied-configuration", large);
	wire_entry(&meta, 12, "k8s.io/initial-events-end", "true");
	wire_part(&pod, 1, &meta);
	json = json_pack("{s{ss s{ss ss ss}}}", "metadata", "name", "p", "annotations", "a/wanted",
			 "yes", "last-applied-configuration", large, "k8s.io/initial-events-end",
			 "true");
	expect_eq(object_read(KIND_POD, buf_str(&pod), &o), 0);
	expect(o.initial_end && o.kept.n < 40 && o.annotation_bytes < 30);
	expect_eq(object_read_json(KIND_POD, json, &o), 0);
	expect(o.initial_end && o.kept.n < 40 && o.annotation_bytes < 30);
	expect_eq(object_read(KIND_POD, buf_str(&pod), &all), 0);
	expect(all.annotation_bytes > 256 << 10);
	object_fini(&o);
	object_fini(&all);
	buf_free(&pod);
	json_decref(json);
	free(large);
}

TEST(failures_are_told_in_words)
{
	struct buf status = wire_status(403, "pods is \x01 forbidden");
	struct buf whole = wire_envelope("Status", &status);
	char text[64];

	status_text(buf_str(&whole), text, sizeof(text));
	expect_str(str_of(text), "pods is   forbidden");
	status_text(STR("{\"message\":\"no\"}"), text, sizeof(text));
	expect_str(str_of(text), "no");
	status_text(STR(" Too many requests\n"), text, sizeof(text));
	expect_str(str_of(text), "Too many requests");
	status_text(STR(""), text, sizeof(text));
	expect_str(str_of(text), "");
	buf_free(&whole);
}

struct inputs {
	struct buf list, watch;
};

static int read_both(void *context)
{
	struct inputs *in = context;
	struct told told = {0};
	int r = feed(buf_str(&in->list), 700, false, &told, NULL);

	if (r == 0 && told.text.failed)
		r = -ENOMEM;
	if (r == 0)
		r = feed(buf_str(&in->watch), 700, true, &told, NULL);
	if (r == 0)
		r = feed(STR(JSON_LIST(JSON_POD("a"))), 150, false, &told, NULL);
	buf_free(&told.text);
	/* jansson's own allocations fail as "not JSON". */
	return r == -EPROTO ? -ENOMEM : r;
}

TEST(streams_survive_failing_allocations)
{
	struct inputs in = {wire_pods(2, "9", ""), some_events()};

	test_each_failing_allocation(read_both, &in);
	buf_free(&in.list);
	buf_free(&in.watch);
}

static size_t fuzz_runs(void)
{
	const char *runs = getenv("ANDIRON_FUZZ_RUNS");

	return runs ? (size_t)strtoul(runs, NULL, 10) : 20000;
}

/* Whatever a server sends, it is taken or refused, within bounds. */
TEST(damaged_answers_are_taken_or_refused)
{
	struct buf sources[] = {wire_pods(3, "9", ""), some_events(), BUF_NULL, BUF_NULL};
	uint64_t state = 1;
	struct told told = {0};
	size_t taken = 0;

	buf_printf(&sources[2], "%s", JSON_LIST(JSON_POD("a") "," JSON_POD("b")));
	buf_printf(&sources[3], "{\"type\":\"ADDED\",\"object\":" JSON_POD("a") "}\n");
	for (size_t round = 0; round < fuzz_runs(); round++) {
		struct buf *source = &sources[round % 4];
		char *text = malloc(source->n);
		size_t n = source->n;

		memcpy(text, source->p, n);
		for (uint64_t i = 0; i < 1 + round % 5; i++) {
			state = hash_u64(state);
			text[state % n] = (char)(state >> 32);
		}
		if (round % 7 == 0)
			n = state % n;
		taken += feed((struct str){text, n}, state % (n + 1), round % 2, &told, NULL) == 0;
		free(text);
	}
	expect(taken > 0 && taken < fuzz_runs());
	buf_free(&told.text);
	for (size_t i = 0; i < 4; i++)
		buf_free(&sources[i]);
}
