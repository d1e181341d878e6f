/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile text: whatever it is, the answer is a plan or at least one error, in bounded time.
 * Seeded, so that a failure comes again; ANDIRON_FUZZ_RUNS sets the number of rounds. */
#include "host/lang/supplied.h"
#include "host/lang/tests/test-lang.h"

#include "base/buf.h"

#include <errno.h>

#define RUNS 4000

static const char *const seeds[] = {
	"pyroscope.ebpf \"instance\" {\n"
	"  forward_to     = [pyroscope.write.endpoint.receiver]\n"
	"  targets_only   = false\n"
	"  default_target = {\"service_name\" = \"unspecified\"}\n"
	"  demangle       = \"none\"\n"
	"  sample_rate    = 97   // Hz - samples per second\n"
	"}\n\n"
	"pyroscope.write \"endpoint\" {\n"
	"  endpoint {\n    url = \"http://pyroscope:4040\"\n  }\n"
	"}\n",
	"discovery.kubernetes \"pods\" {\n  role = \"pod\"\n}\n"
	"discovery.relabel \"pods\" {\n"
	"  targets = discovery.kubernetes.pods.targets\n"
	"  rule {\n    source_labels = [\"__meta_kubernetes_namespace\"]\n"
	"    target_label  = \"namespace\"\n  }\n"
	"}\n"
	"pyroscope.ebpf \"instance\" {\n"
	"  forward_to       = [pyroscope.write.endpoint.receiver, raw.write.r.receiver]\n"
	"  targets          = discovery.relabel.pods.output\n"
	"  default_target   = \"false\"\n"
	"  collect_interval = \"15s\"\n"
	"}\n"
	"pyroscope.write \"endpoint\" {\n"
	"  external_labels = {\n    \"cluster\" = \"prod\",\n  }\n"
	"}\nraw.write \"r\" {}\nprofile.symbolize \"s\" {}\n",
	"test.any \"a\" {\n  value = (1 + 2 * 3 ^ -2.5e1 % 4 == 010) && !(\"a\\u00e4\" < "
	"`b\n`)\n}\n"
	"test.any \"b\" {\n  value = [{a = [1, 2][0], \"b\" = {}.c}, sys.env(\"HOME\"), null]\n}\n"
	"discovery.process \"p\" {\n"
	"  join = array.concat(test.any.a.targets, [{a = \"1\"}], concat())\n"
	"  discover_config { exe = false } /* c */\n"
	"}\n"
	"logging { level = \"info\" }\n",
	"declare \"m\" {\n"
	"  argument \"x\" {\n    optional = true\n    default = [1]\n  }\n"
	"  declare \"n\" {\n    argument \"y\" {}\n"
	"    export \"z\" { value = argument.y.value }\n  }\n"
	"  n \"i\" { y = argument.x.value }\n"
	"  test.any \"t\" { value = n.i.z }\n"
	"  export \"e\" { value = [n.i.z, string.format(\"%5.2f%%%s\", 1, \"a\")] }\n"
	"}\n"
	"test.any \"j\" { value = encoding.from_json(`[1, {\"a\": \"\\u00e4\"}, -2e3]`) }\n"
	"m \"a\" { x = m.b.e }\nm \"b\" {}\n"
	"test.any \"g\" { value = array.group_by([{a = \"b\"}, {}], \"a\", false)[0].items }\n"
	"local.file \"l\" {\n  filename = string.trim(\"/dev/null \", \" \")\n"
	"  is_secret = !false\n}\n"
	"test.any \"z\" { value = convert.nonsensitive(local.file.l.content) }\n"
	"test.any \"y\" { value = encoding.from_yaml(`a: &x {k: 0x1f, l: [~, 1_0.5, 2001-1-1]}\n"
	"b:\n  - *x\n  - <<: *x\n    m: !!int '2'\n\"q\\u00e4\": |\n  text\n`) }\n"
	"test.any \"p\" { value = json_path(`{\"a\": [{\"b\": 1}, [2]]}`, "
	"`$..a[?(@.b == 1 && !@['c'])][-1:0:2,'x'].*`) }\n"
	"test.any \"q\" { value = json_path(`[[1, 2], {\"a\": \"x\"}]`, `[0,1]['a',0]`) }\n"
	"import.string \"s\" { content = `declare \"d\" { m \"q\" {} }` }\ns.d \"f\" {}\n"
	"import.http \"h\" { url = module_path + \"x\" }\nh.d \"f\" { x = 1 }\n"
	"test.any \"o\" { value = h.d.f.e }\n"
	"import.string \"t\" { content = string.format(\"%s\", u.e.g.f) }\nt.d \"h\" {}\n"
	"import.string \"u\" { content = i.b.e }\nu.e \"g\" {}\ni \"b\" {}\n"
	"declare \"i\" { export \"e\" { value = `declare \"e\" { export \"f\" { value = \"declare "
	"\\\"d\\\" {}\" } }` } }\n"
	"foreach \"l\" {\n  collection = [m.b.e, 2]\n  var = \"v\"\n"
	"  template {\n    m \"c\" { x = v }\n    test.any \"w\" { value = v.k }\n  }\n}\n",
};

static const char *const pieces[] = {
	"{",
	"}",
	"[",
	"]",
	"(",
	")",
	",",
	".",
	"=",
	"==",
	"\n",
	"\"",
	"`",
	"'",
	"#",
	"//",
	"/*",
	"*/",
	"\\",
	"1",
	"08",
	"1e9",
	"-",
	"!",
	"^",
	"+",
	"/",
	"%",
	"&&",
	"||",
	"declare \"m\" {",
	"m \"a\" {}\n",
	"import.http \"h\" { url = \"http://c/\" }\n",
	"import.string \"s\" { content = u.e.g.f }\n",
	"argument.x.value",
	"null",
	"true",
	"x",
	"forward_to",
	"test.any.a.targets",
	"array.concat(",
	"test.any \"z\" {",
	"\t",
	" ",
	"ä",
	"🔥",
	"\x01",
	"\xc2\xa0",
	"9223372036854775807",
	"\"15s\"",
	"{a = 1}",
	"[[[[[[[[",
	"..",
	"*",
	"[?(@",
	"@.a",
	"&&",
	"[0:1]",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void try_source(struct str text, const struct supplied *supplied)
{
	struct source source = {"f", text};
	struct registry registry = {false};
	struct diags diags = {0};
	struct plan *plan = NULL;
	char *printed;
	int r = plan_build_with(&source, 1, &registry, supplied, &diags, &plan);

	expect(r == 0 || r == -EINVAL);
	expect_eq(r == 0, diags.n_errors == 0);
	expect_eq(r == 0, plan != NULL);
	printed = diags_text(&diags, true);
	expect(str_utf8(str_of(printed)));
	free(printed);
	plan_free(plan);
	diags_free(&diags);
}

/* As what a server gives for a module, and for the one that this imports. */
static void try_module(struct str text)
{
	static const char importer[] = "import.http \"h\" { url = \"http://a/b\" }\n"
				       "h.d \"f\" { x = 1 }\nh.m \"g\" {}\n"
				       "test.any \"a\" { value = [h.d.f.z, h.m.g.e] }\n";
	struct andiron_value value = {.kind = ANDIRON_VALUE_STRING, .string = {text.p, text.n}};
	struct supplied *s = supplied_new();

	expect(s);
	if (supplied_set(s, "import.http.h", "content", &value) == 1) {
		expect_eq(supplied_set(s, "import.http.h/import.http.h", "content", &value), 1);
		expect_eq(supplied_try_all(s), 2);
		supplied_end(s, 0);
		try_source(str_of(importer), s);
	}
	supplied_free(s);
}

static void try_text(struct str text)
{
	try_source(text, NULL);
	if (text.n % 4 == 0)
		try_module(text);
}

/* One change: a piece put in, a stretch taken out, copied elsewhere, or a byte replaced. */
static void mutate(struct buf *b, uint64_t *state)
{
	size_t at = next(state) % (b->n + 1), n = next(state) % 20;
	struct str piece = str_of(pieces[next(state) % COUNT(pieces)]);
	struct buf out = BUF_NULL;

	if (n > b->n - at)
		n = b->n - at;
	buf_append(&out, b->p, at);
	switch (next(state) % 4) {
	case 0:
		buf_str_append(&out, piece);
		n = 0;
		break;
	case 1:
		break;
	case 2:
		buf_append(&out, b->p + next(state) % (b->n - n + 1), n);
		n = 0;
		break;
	default:
		n = n > 0;
		buf_putc(&out, (char)next(state));
	}
	buf_append(&out, b->p + at + n, b->n - at - n);
	expect(!out.failed);
	buf_free(b);
	*b = out;
}

static unsigned long runs(void)
{
	const char *wish = getenv("ANDIRON_FUZZ_RUNS");

	return wish ? strtoul(wish, NULL, 10) : RUNS;
}

TEST(mutated_configurations)
{
	uint64_t state = 0x616e6469726f6eull;

	for (unsigned long i = 0; i < runs(); i++) {
		struct buf b = BUF_NULL;

		buf_str_append(&b, str_of(seeds[next(&state) % COUNT(seeds)]));
		for (uint64_t n = next(&state) % 8 + 1; n > 0; n--) {
			/* A copy without slack, so that reading past its end is seen. */
			char *text;

			mutate(&b, &state);
			text = malloc(b.n ? b.n : 1);
			expect(text);
			memcpy(text, b.p, b.n);
			try_text((struct str){text, b.n});
			free(text);
		}
		buf_free(&b);
	}
}

TEST(random_pieces)
{
	uint64_t state = 0x70696563657331ull;

	for (unsigned long i = 0; i < runs(); i++) {
		struct buf b = BUF_NULL;

		buf_str_append(&b, STR("test.any \"a\" { value = "));
		for (uint64_t n = next(&state) % 40; n > 0; n--)
			buf_str_append(&b, str_of(pieces[next(&state) % COUNT(pieces)]));
		try_text(buf_str(&b));
		buf_free(&b);
	}
}

TEST(random_bytes)
{
	uint64_t state = 0x6279746573ull;

	for (unsigned long i = 0; i < runs(); i++) {
		char text[256];
		size_t n = next(&state) % sizeof(text);

		for (size_t k = 0; k < n; k++)
			text[k] = (char)(next(&state) % (i % 2 ? 256 : 128));
		try_text((struct str){text, n});
	}
}
