/* SPDX-License-Identifier: Apache-2.0 */
/* Target groups, DNS answers and files, and the targets that they become. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "discovery/dns-answer.h"
#include "discovery/files.h"
#include "discovery/groups.h"
#include "discovery/options.h"
#include "discovery/read-files.h"
#include "discovery/url.h"
#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct target_label where = {STR("__meta_filepath"), STR("f")};

static struct str rows_text(const struct target_rows *rows, struct buf *out)
{
	buf_clear(out);
	vec_each (&rows->rows, row) {
		for (size_t i = 0; i < row->n; i++)
			buf_printf(out, "%s%.*s=%.*s", i ? "," : "",
				   STR_FMT(rows->labels.p[row->first + i].name),
				   STR_FMT(rows->labels.p[row->first + i].value));
		buf_putc(out, '\n');
	}
	return buf_str(out);
}

#define WANTED                                                                                     \
	"job=x,n=7,__meta_filepath=f,__address__=a:1\n"                                            \
	"job=x,n=7,__meta_filepath=f,__address__=b:2\n"                                            \
	"__meta_filepath=f,__address__=c\n"

/* The same groups in either notation are the same targets. */
TEST(groups_are_read)
{
	struct target_rows rows = {0};
	struct error err = ERROR_NULL;
	struct buf out = BUF_NULL;

	expect_eq(groups_from_json(STR("[{\"targets\":[\"a:1\",\"b:2\"],\"labels\":{\"job\":\"x\","
				       "\"n\":\"7\"}},{\"targets\":[\"c\"]},{\"labels\":null}]"),
				   where, &rows, &err),
		  0);
	expect_str(rows_text(&rows, &out), WANTED);
	target_rows_free(&rows);
	expect_eq(groups_from_yaml(STR("- targets: ['a:1', \"b:2\"]\n  labels:\n    job: x\n"
				       "    n: 7\n- targets:\n  - c\n- labels:\n"),
				   where, &rows, &err),
		  0);
	expect_str(rows_text(&rows, &out), WANTED);
	target_rows_free(&rows);
	expect_eq(groups_from_yaml(STR(""), where, &rows, &err), 0);
	expect_eq(rows.rows.n, 0);
	target_rows_free(&rows);
	buf_free(&out);
}

/* What is no list of groups is refused, with the group and the reason. */
TEST(damaged_groups_are_refused)
{
	static const struct {
		const char *json, *yaml, *says;
	} rows[] = {
		{"{}", "a: b", "no list"},
		{"[1]", "- 1", "target group 1 is no"},
		{"[{},{\"targets\":[1]}]", "- {}\n- targets: [[]]", "target group 2 has a target"},
		{"[{\"target\":[]}]", "- target: []", "has \"target\""},
		{"[{\"targets\":\"a\"}]", "- targets: a", "no list"},
		{"[{\"labels\":[]}]", "- labels: []", "labels"},
		{"[{\"labels\":{\"a\":1}}]", "- labels: {a: []}", "label a is no"},
		{"[{\"labels\":{\"\":\"b\"}}]", "- labels: {'': b}", "empty"},
		{"[", "- [", "line"},
		{"", "\t", "it is not"},
	};
	struct target_rows got = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct error json = ERROR_NULL, yaml = ERROR_NULL;

		if (groups_from_json(str_of(rows[i].json), where, &got, &json) != -EINVAL ||
		    groups_from_yaml(str_of(rows[i].yaml), where, &got, &yaml) != -EINVAL ||
		    !strstr(json.text, rows[i].says) || !strstr(yaml.text, rows[i].says))
			test_fail(__FILE__, __LINE__, "row %zu: \"%s\", \"%s\"", i, json.text,
				  yaml.text);
	}
}

/* A short file whose aliases would be millions of targets is refused before they are made. */
TEST(aliases_do_not_multiply)
{
	struct target_rows rows = {0};
	struct error err = ERROR_NULL;
	struct buf text = BUF_NULL;

	buf_printf(&text, "- &g\n  targets: [");
	for (int i = 0; i < 1000; i++)
		buf_printf(&text, "t%d,", i);
	buf_printf(&text, "]\n");
	for (int i = 0; i < 1000; i++)
		buf_printf(&text, "- *g\n");
	expect_eq(groups_from_yaml(buf_str(&text), where, &rows, &err), -E2BIG);
	expect(strstr(err.text, "more than 100000 targets"));
	buf_free(&text);
}

static void put_many(struct buf *text, size_t n, char c)
{
	for (size_t i = 0; i < n; i++)
		buf_putc(text, c);
}

/* Nor do those of groups without targets, of whose labels and keys as much is looked at each
 * time. */
TEST(aliases_of_large_groups_are_refused)
{
	static const char *const heads[] = {"- &g {labels: {a: \"", "- &g {labels: \"\\0",
					    "- &g {labels: {a: \"\\0"};
	static const char *const tails[] = {"\"}}\n", "\"}\n", "\"}}\n"};
	struct target_rows rows = {0};
	struct buf text = BUF_NULL;

	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
		struct error err = ERROR_NULL;

		buf_clear(&text);
		buf_str_append(&text, str_of(heads[i]));
		put_many(&text, 1 << 20, 'x');
		buf_str_append(&text, str_of(tails[i]));
		for (int k = 0; k < 200; k++)
			buf_printf(&text, "- *g\n");
		expect_eq(groups_from_yaml(buf_str(&text), where, &rows, &err), -E2BIG);
		expect(strstr(err.text, "aliases"));
	}
	buf_free(&text);
}

/* A group whose every key is another look at it. */
TEST(aliases_of_many_keys_are_refused)
{
	struct target_rows rows = {0};
	struct error err = ERROR_NULL;
	struct buf text = BUF_NULL;

	buf_printf(&text, "- &g {");
	for (int i = 0; i < 10000; i++)
		buf_printf(&text, "labels: ,");
	buf_printf(&text, "}\n");
	for (int i = 0; i < 1000; i++)
		buf_printf(&text, "- *g\n");
	expect_eq(groups_from_yaml(buf_str(&text), where, &rows, &err), -E2BIG);
	buf_free(&text);
}

/* The parser compares each anchor with all before it, so they are few; an & in a text is none. */
TEST(anchors_are_few)
{
	struct target_rows rows = {0};
	struct error err = ERROR_NULL;
	struct buf text = BUF_NULL;

	for (int i = 0; i < 2000; i++)
		buf_printf(&text, "- targets: [\"a & b\"]\n");
	expect_eq(groups_from_yaml(buf_str(&text), where, &rows, &err), 0);
	expect_eq(rows.rows.n, 2000);
	target_rows_free(&rows);
	buf_clear(&text);
	for (int i = 0; i < 2000; i++)
		buf_printf(&text, "- targets: [&a%d b]\n", i);
	expect_eq(groups_from_yaml(buf_str(&text), where, &rows, &err), -E2BIG);
	expect(strstr(err.text, "anchors"));
	buf_free(&text);
}

/* Each target has a copy of its group's labels in the end: together they are bounded. */
TEST(labels_of_all_targets_are_bounded)
{
	struct target_rows rows = {0};
	struct error err = ERROR_NULL;
	struct buf text = BUF_NULL;

	buf_printf(&text, "[{\"labels\":{\"a\":\"");
	put_many(&text, 1 << 20, 'x');
	buf_printf(&text, "\"},\"targets\":[\"t\"");
	for (int i = 0; i < 1000; i++)
		buf_printf(&text, ",\"t\"");
	buf_printf(&text, "]}]");
	expect_eq(groups_from_json(buf_str(&text), where, &rows, &err), -E2BIG);
	expect(strstr(err.text, "MiB"));
	buf_free(&text);
}

static int read_starved(void *context)
{
	struct target_rows rows = {0};
	int r = groups_from_json(STR("[{\"targets\":[\"a\"],\"labels\":{\"b\":\"c\"}}]"), where,
				 &rows, NULL);

	target_rows_free(&rows);
	return r == -EINVAL ? -ENOMEM : r;
}

TEST(survives_out_of_memory)
{
	test_each_failing_allocation(read_starved, NULL);
}

/* A header of a response with one question, for "x." */
#define HEAD(answers) "\0\1\x81\x80\0\1\0" answers "\0\0\0\0\1x\0\0\1\0\1"
#define RECORD(type, length) "\xc0\x0c\0" type "\0\1\0\0\0\x3c\0" length

static int answer(const char *message, size_t n, enum dns_type type, struct target_rows *rows)
{
	return dns_answer_read((const uint8_t *)message, n, type, STR("name"), 80, rows);
}

#define ANSWER(text, type, rows) answer(text, sizeof(text) - 1, type, rows)

/* Records of the type that was asked for are targets; names keep their last dot as labels. */
TEST(records_are_targets)
{
	struct target_rows rows = {0};
	struct buf out = BUF_NULL;

	expect_eq(ANSWER(HEAD("\2") RECORD("\5", "\2") "\xc0\x0c" RECORD("\1", "\4") "\n\0\0\1",
			 DNS_A, &rows),
		  0);
	expect_str(rows_text(&rows, &out), "__address__=10.0.0.1:80,__meta_dns_name=name\n");
	target_rows_free(&rows);
	expect_eq(ANSWER(HEAD("\1") RECORD("\x1c", "\x10") "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1",
			 DNS_AAAA, &rows),
		  0);
	expect_str(rows_text(&rows, &out), "__address__=[fd00::1]:80,__meta_dns_name=name\n");
	target_rows_free(&rows);
	expect_eq(ANSWER(HEAD("\1") RECORD("\x21", "\x0b") "\0\1\0\2\x1f\x90\2hi\xc0\x0c", DNS_SRV,
			 &rows),
		  0);
	expect_str(rows_text(&rows, &out),
		   "__meta_dns_srv_record_port=8080,__meta_dns_srv_record_target=hi.x.,"
		   "__address__=hi.x:8080,__meta_dns_name=name\n");
	target_rows_free(&rows);
	expect_eq(ANSWER(HEAD("\1") RECORD("\x0f", "\4") "\0\1\xc0\x0c", DNS_MX, &rows), 0);
	expect_str(rows_text(&rows, &out), "__meta_dns_mx_record_target=x.,__address__=x:80,"
					   "__meta_dns_name=name\n");
	target_rows_free(&rows);
	buf_free(&out);
}

/* Whatever bytes a server sends, they are read within their bounds: every beginning of a message,
 * and every message with one byte changed. */
TEST(damaged_answers_are_refused)
{
	static const char whole[] = HEAD("\1")
		RECORD("\x21", "\x0b") "\0\1\0\2\x1f\x90\2hi\xc0\x0c";
	struct target_rows rows = {0};
	size_t n = sizeof(whole) - 1;

	for (size_t cut = 0; cut < n; cut++) {
		char *message = malloc(cut + 1);

		expect(message);
		memcpy(message, whole, cut);
		expect(answer(message, cut, DNS_SRV, &rows) < 0);
		free(message);
	}
	for (size_t at = 0; at < n; at++) {
		for (int byte = 0; byte < 256; byte++) {
			char *message = malloc(n);

			expect(message);
			memcpy(message, whole, n);
			message[at] = (char)byte;
			if (answer(message, n, DNS_SRV, &rows) == 0)
				target_rows_free(&rows);
			free(message);
		}
	}
}

static void write_file(const char *folder, const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	expect_eq(file_replace(path, text, strlen(text), NULL), 0);
}

/* Patterns name files; one that is damaged says why and hides no other. */
TEST(files_are_found_and_read)
{
	char folder[] = "/tmp/test-groups-XXXXXX", one[64], all[64], path[128];
	struct read_files found;
	struct str patterns[2];

	expect(mkdtemp(folder));
	write_file(folder, "a.json", "[{\"targets\":[\"a:1\"]}]");
	write_file(folder, "b.YML", "- targets: [b]");
	write_file(folder, "bad.json", "[{\"x\":1}]");
	snprintf(one, sizeof(one), "%s/b.YML", folder);
	snprintf(all, sizeof(all), "%s/*.json", folder);
	patterns[0] = str_of(all);
	patterns[1] = str_of(one);
	expect_eq(read_files(patterns, 2, &found), 0);
	expect_eq(found.all.n, 3);
	expect_eq(found.unwatched, 0);
	expect(!found.all.p[0].fault && found.all.p[0].rows.rows.n == 1);
	expect(found.all.p[1].fault && strstr(found.all.p[1].fault, "has \"x\""));
	expect(!found.all.p[2].fault && found.all.p[2].rows.rows.n == 1);
	read_files_free(&found);
	/* A folder that is not there is watched for. */
	snprintf(path, sizeof(path), "%s/none/deep/*.json", folder);
	patterns[0] = str_of(path);
	expect_eq(read_files(patterns, 1, &found), 0);
	expect_eq(found.all.n, 0);
	expect_eq(found.unwatched, 0);
	read_files_free(&found);
	for (size_t i = 0; i < 3; i++) {
		static const char *const names[] = {"a.json", "b.YML", "bad.json"};

		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	rmdir(folder);
}

/* What is no file is said to be none; a pipe that nobody writes to holds up nothing. */
TEST(pipes_are_refused)
{
	char folder[] = "/tmp/test-groups-XXXXXX", path[64];
	struct str pattern;
	struct read_files found;

	expect(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/x.json", folder);
	expect_eq(mkfifo(path, 0600), 0);
	pattern = str_of(path);
	expect_eq(read_files(&pattern, 1, &found), 0);
	expect_eq(found.all.n, 1);
	expect(found.all.p[0].fault && strstr(found.all.p[0].fault, "no regular file"));
	read_files_free(&found);
	unlink(path);
	rmdir(folder);
}

/* Files beyond what is read are counted. */
TEST(files_beyond_the_limit_are_counted)
{
	char folder[] = "/tmp/test-groups-XXXXXX", first[64], path[64], all[64];
	struct str patterns[2];
	struct read_files found;

	expect(mkdtemp(folder));
	write_file(folder, "00000.yml", "");
	snprintf(first, sizeof(first), "%s/00000.yml", folder);
	for (int i = 1; i < FILES_MAX + 3; i++) {
		snprintf(path, sizeof(path), "%s/%05d.yml", folder, i);
		expect_eq(link(first, path), 0);
	}
	snprintf(all, sizeof(all), "%s/*.yml", folder);
	patterns[0] = str_of(first);
	patterns[1] = str_of(all);
	expect_eq(read_files(patterns, 2, &found), 0);
	expect_eq(found.all.n, FILES_MAX);
	expect_eq(found.left_out, 3);
	read_files_free(&found);
	for (int i = 0; i < FILES_MAX + 3; i++) {
		snprintf(path, sizeof(path), "%s/%05d.yml", folder, i);
		unlink(path);
	}
	rmdir(folder);
}

/* A component does not run its loop hot. */
TEST(intervals_have_a_least)
{
	static const struct andiron_options *const tables[] = {&file_options, &http_options,
							       &dns_options};

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		for (uint32_t k = 0; k < tables[i]->count; k++)
			if (!strcmp(tables[i]->items[k].name, "refresh_interval"))
				expect_eq(tables[i]->items[k].min, NS_PER_SEC);
}

/* What can be a pattern, and what an answer's content type. */
TEST(arguments_are_checked)
{
	expect(!files_pattern_fault(STR("/etc/targets/*.json")));
	expect(!files_pattern_fault(STR("a.yaml")));
	expect(files_pattern_fault(STR("/etc/*/a.json")));
	expect(files_pattern_fault(STR("/etc/targets.txt")));
	expect(url_type_is_json(STR("application/json")));
	expect(url_type_is_json(STR("Application/JSON; charset=UTF-8")));
	expect(!url_type_is_json(STR("text/html")));
	expect(!url_type_is_json(STR("application/jsonp")));
	expect(!url_type_is_json(STR_NULL));
}
