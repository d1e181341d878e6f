/* SPDX-License-Identifier: Apache-2.0 */
/* A run from batches to files: what goes in comes out of each of them. */
#include "abi/batch-build.h"
#include "base/buf.h"
#include "base/file.h"
#include "testing/test.h"
#include "export/flame.h"
#include "file/folded.h"
#include "export/top.h"
#include "file/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PERIOD 10309278

struct frame_spec {
	const char *name; /* NULL: an address */
	const char *file; /* NULL: no mapping */
	uint16_t kind;
};

static uint32_t add_location(struct batch_builder *b, const struct frame_spec *f, uint64_t address)
{
	struct andiron_location l = {.address = address, .kind = f->kind};
	struct andiron_mapping m = {0};
	struct andiron_function fn = {0};
	struct andiron_line line = {0};
	uint32_t id;

	if (f->file) {
		m.file = batch_add_string(b, str_of(f->file));
		m.gnu_build_id = batch_add_string(b, STR("cafe0123"));
		l.mapping = batch_add_mapping(b, &m);
	}
	id = batch_add_location(b, &l);
	if (f->name) {
		fn.name = batch_add_string(b, str_of(f->name));
		line.function = batch_add_function(b, &fn);
		batch_set_lines(b, id, &line, 1);
	}
	return id;
}

static uint32_t add_type(struct batch_builder *b)
{
	struct andiron_profile_type t = {.period = PERIOD};

	t.name = batch_add_string(b, STR("process_cpu"));
	t.type = t.period_type = batch_add_string(b, STR("cpu"));
	t.unit = t.period_unit = batch_add_string(b, STR("nanoseconds"));
	return batch_add_type(b, &t);
}

static void add_row(struct batch_builder *b, uint32_t stack, const char *process, int64_t pid,
		    uint64_t samples)
{
	uint32_t attributes[2] = {batch_add_str_attribute(b, STR("process"), str_of(process)),
				  batch_add_int_attribute(b, STR("pid"), pid)};
	struct andiron_row row = {.stack = stack, .samples = samples, .n_attrs = 2};

	row.value = (int64_t)samples * PERIOD;
	row.attr_start = batch_add_attributes(b, attributes, 2);
	batch_add_row(b, &row);
}

/* 7 samples of a named stack in two processes, 3 of one that ends in an address. NULL when memory
 * is short. */
static const struct andiron_batch *demo_batch(void)
{
	static const struct batch_head head = {.start_ns = 1000, .end_ns = 2000000000};
	static const struct frame_spec specs[] = {
		{"do_syscall_64", NULL, ANDIRON_FRAME_KERNEL},
		{"write;it", "/lib/libc.so.6", ANDIRON_FRAME_NATIVE},
		{"main", "/usr/bin/shop", ANDIRON_FRAME_NATIVE},
		{NULL, "/lib/libc.so.6", ANDIRON_FRAME_NATIVE},
		{NULL, NULL, ANDIRON_FRAME_NATIVE},
	};
	struct batch_builder *b = batch_builder_new();
	const struct andiron_batch *batch;
	uint32_t l[5], labels[2], stack;

	if (!b)
		return NULL;
	add_type(b);
	labels[0] = batch_add_str_attribute(b, STR("__meta"), STR("x"));
	labels[1] = batch_add_str_attribute(b, STR("namespace"), STR("web"));
	batch_group_begin(b, labels, 2);
	for (uint32_t i = 0; i < 5; i++)
		l[i] = add_location(b, &specs[i], 0x1000 + i);
	stack = batch_add_stack(b, (uint32_t[]){l[0], l[1], l[2]}, 3);
	add_row(b, stack, "shop", 42, 5);
	add_row(b, batch_add_stack(b, (uint32_t[]){l[3], l[4], l[2]}, 3), "shop", 42, 3);
	batch_group_begin(b, NULL, 0);
	add_row(b, stack, "shop", 43, 2);
	batch_add_loss(b, STR("ring_full"), 12);
	return batch_finish(b, &head, &batch) == 0 ? batch : NULL;
}

static char directory[64];

static struct str path_of(char text[96], const char *name)
{
	if (!directory[0]) {
		snprintf(directory, sizeof(directory), "/tmp/andiron-test-XXXXXX");
		expect(mkdtemp(directory) != NULL);
	}
	snprintf(text, 96, "%s/%s", directory, name);
	return str_of(text);
}

static void clear_directory(void)
{
	static const char *const names[] = {"p.pb.gz", "p.folded", "p.html"};
	char text[96];

	for (int i = 0; i < 3; i++)
		unlink(path_of(text, names[i]).p);
	rmdir(directory);
}

static int record_by(const struct str *groups, size_t n_groups)
{
	char texts[3][96];
	struct str paths[3] = {path_of(texts[0], "p.pb.gz"), path_of(texts[1], "p.folded"),
			       path_of(texts[2], "p.html")};
	struct recording *r = recording_new(paths, 3,
					    &(struct recording_options){
						    .title = STR("a <title> & more"),
						    .groups = groups,
						    .n_groups = n_groups,
						    .max_bytes = 1 << 20,
					    });
	int e = r ? 0 : -ENOMEM;

	for (int i = 0; i < 2 && e == 0; i++) {
		const struct andiron_batch *batch = demo_batch();
		uint64_t full, lost;

		if (!batch) {
			e = -ENOMEM;
			break;
		}
		recording_add(r, batch, &full, &lost);
		expect_eq(full, 0);
		/* Each sample is taken in or lost, never both. */
		e = lost ? -ENOMEM : 0;
		batch_release(batch);
	}
	if (e == 0) {
		expect_eq(recording_samples(r), 20);
		e = recording_write(r, NULL);
	}
	recording_free(r);
	return e;
}

static int record(void *context)
{
	struct str group = STR("process");

	(void)context;
	return record_by(&group, 1);
}

static void read_text(const char *name, struct buf *out)
{
	char text[96];

	buf_clear(out);
	expect_eq(file_read(AT_FDCWD, path_of(text, name).p, out, 1 << 20), 0);
}

TEST(a_run_survives_failing_allocations)
{
	test_each_failing_allocation(record, NULL);
	clear_directory();
}

TEST(folded_lines_are_exact)
{
	struct buf out = BUF_NULL;

	expect_eq(record(NULL), 0);
	read_text("p.folded", &out);
	expect_str(buf_str(&out), "shop;main;[unknown];[libc.so.6]+0x1003 6\n"
				  "shop;main;write:it;do_syscall_64_[k] 14\n");
	buf_free(&out);
	clear_directory();
}

/* A level for each label that some sample has; a sample without it says so. */
TEST(folded_lines_are_grouped_by_labels)
{
	struct str groups[] = {STR("namespace"), STR("process"), STR("pid"), STR("absent")};
	struct buf out = BUF_NULL;

	expect_eq(record_by(groups, 4), 0);
	read_text("p.folded", &out);
	expect_str(buf_str(&out), "[no namespace];shop;pid 43;main;write:it;do_syscall_64_[k] 4\n"
				  "web;shop;pid 42;main;[unknown];[libc.so.6]+0x1003 6\n"
				  "web;shop;pid 42;main;write:it;do_syscall_64_[k] 10\n");
	buf_free(&out);
	expect_eq(record_by(NULL, 0), 0);
	read_text("p.folded", &out);
	expect_str(buf_str(&out), "main;[unknown];[libc.so.6]+0x1003 6\n"
				  "main;write:it;do_syscall_64_[k] 14\n");
	buf_free(&out);
	clear_directory();
}

TEST(pprof_carries_labels_mappings_and_losses)
{
	struct call_tree *t;
	struct profile *p;
	struct top top;
	char text[96];
	bool bare = false;

	expect_eq(record(NULL), 0);
	expect_eq(profile_read(path_of(text, "p.pb.gz").p, &p, NULL), 0);
	expect_eq(p->n_types, 2);
	expect_str(p->types[0].type, "samples");
	expect_str(p->types[p->default_type].unit, "nanoseconds");
	expect_eq(p->period, PERIOD);
	expect_eq(p->time_ns, 1000);
	expect_eq(p->duration_ns, 1999999000);
	expect_eq(p->n_samples, 3);
	expect_str(profile_label(p, &p->samples[0], STR("process"))->text, "shop");
	expect_eq(profile_label(p, &p->samples[0], STR("pid"))->number, 42);
	expect_str(profile_label(p, &p->samples[0], STR("namespace"))->text, "web");
	expect(!profile_label(p, &p->samples[0], STR("__meta")));
	expect_str(p->comments[0], "andiron: lost 24 samples: ring_full");
	for (size_t i = 1; i < p->n_locations; i++) {
		const struct profile_location *l = &p->locations[i];

		expect(l->mapping != 0);
		expect_eq(p->mappings[l->mapping].has_functions, l->n_lines > 0);
		if (l->n_lines == 0) {
			expect_str(p->mappings[l->mapping].build_id, "cafe0123");
			expect_eq(l->address, 0x1003);
			bare = true;
		}
	}
	expect(bare);
	expect_eq(call_tree_build(p, CALL_TREE_BY_FILE, &t), 0);
	expect_eq(top_build_by(t, STR("pid"), &top), 0);
	top_sort_by_total(&top);
	expect_eq(top.n, 2);
	expect_str(top.entries[0].name, "42");
	expect_eq(top.entries[0].total, (int64_t)16 * PERIOD);
	top_fini(&top);
	expect_eq(top_build(t, &top), 0);
	expect_eq(top.samples, 20);
	expect_eq(top.sum, (int64_t)20 * PERIOD);
	top_sort_by_total(&top);
	expect_str(top.entries[0].name, "main");
	expect_eq(top.entries[0].total, (int64_t)20 * PERIOD);
	top_sort_by_self(&top);
	expect_str(top.entries[0].name, "do_syscall_64");
	expect_eq(top.entries[0].self, (int64_t)14 * PERIOD);
	top_fini(&top);
	call_tree_free(t);
	profile_free(p);
	clear_directory();
}

/* No name, title or label can leave the string that it stands in, and the page can run nothing but
 * its own script. */
TEST(the_page_is_closed)
{
	struct buf out = BUF_NULL;
	struct str page, json;
	size_t at;

	expect_eq(record(NULL), 0);
	read_text("p.html", &out);
	page = buf_str(&out);
	expect(str_search(page, STR("<title>andiron")) < page.n);
	expect(str_search(page, STR("a <title>")) == page.n);
	expect(str_search(page, STR("a \\u003ctitle\\u003e \\u0026 more")) < page.n);
	expect(str_search(page, STR("default-src 'none'; script-src 'sha256-")) < page.n);
	expect(str_search(page, STR("http-equiv")) < page.n);
	expect(str_search(page, STR("://")) == page.n);
	expect(str_search(page, STR("{{")) == page.n);
	at = str_search(page, STR("id=\"data\">"));
	json = str_skip(page, at + 10);
	json = str_first(json, str_find(json, '<'));
	expect(str_starts(str_skip(page, at + 10 + json.n), STR("</script>")));
	expect(str_search(json, STR("lost 24 samples: ring_full")) < json.n);
	expect(str_search(json, STR("\"values\":null")) < json.n);
	buf_free(&out);
	clear_directory();
}

TEST(a_full_recording_drops_and_counts)
{
	const struct andiron_batch *batch = demo_batch();
	struct recording *r =
		recording_new(NULL, 0,
			      &(struct recording_options){.title = STR(""), .max_bytes = 1});
	uint64_t full, lost;

	recording_add(r, batch, &full, &lost);
	expect_eq(full, 10);
	expect_eq(lost, 0);
	expect_eq(recording_samples(r), 0);
	recording_free(r);
	batch_release(batch);
}

TEST(a_path_that_fails_is_named_and_the_others_are_written)
{
	char text[96];
	struct str paths[2] = {STR("/nonexistent/dir/p.html"), path_of(text, "p.folded")};
	struct recording *r =
		recording_new(paths, 2,
			      &(struct recording_options){.title = STR(""), .max_bytes = 1 << 20});
	struct error err = ERROR_NULL;
	struct stat st;

	expect_eq(recording_write(r, &err), -ENOENT);
	expect(str_search(str_of(err.text), STR("/nonexistent/dir/p.html")) < strlen(err.text));
	expect_eq(stat(text, &st), 0);
	recording_free(r);
	clear_directory();
}

/* An empty run is a valid profile too. */
TEST(nothing_taken_is_still_a_profile)
{
	char text[96];
	struct str path = path_of(text, "p.pb.gz");
	struct recording *r =
		recording_new(&path, 1,
			      &(struct recording_options){.title = STR(""), .max_bytes = 1 << 20});
	struct profile *p;

	expect_eq(recording_write(r, NULL), 0);
	expect_eq(profile_read(text, &p, NULL), 0);
	expect_eq(p->n_samples, 0);
	expect(p->time_ns > 0);
	profile_free(p);
	recording_free(r);
	clear_directory();
}

TEST(suffixes)
{
	expect(recording_knows(STR("a.pb.gz")));
	expect(recording_knows(STR("a.folded")));
	expect(recording_knows(STR("a.html")));
	expect(!recording_knows(STR("a.svg")));
	expect(!recording_knows(STR("html")));
	expect(!recording_knows(STR("")));
}
