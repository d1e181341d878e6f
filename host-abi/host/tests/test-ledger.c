/* SPDX-License-Identifier: Apache-2.0 */
/* The books by themselves, the log, and text from strangers. */
#include "testing/test.h"
#include "base/json.h"
#include "host/report/ledger.h"
#include "host/report/log.h"
#include "host/report/escape.h"

#include <andiron/host.h>

#include <errno.h>
#include <unistd.h>

struct books {
	struct ledger ledger;
	struct ledger_node taker, middle, writer;
};

static int open_books(struct books *b)
{
	if (ledger_init(&b->ledger) < 0)
		return -ENOMEM;
	if (ledger_enter(&b->ledger, &b->taker, "taker") < 0)
		return -ENOMEM;
	ledger_enter(&b->ledger, &b->middle, "middle");
	ledger_enter(&b->ledger, &b->writer, "writer");
	return 0;
}

static void one_path(void *context)
{
	struct books *b = context;

	b->taker.paths.p[0] = b->middle.paths.p[0] = b->writer.paths.p[0] = 1;
}

static void no_path(void *context)
{
	struct books *b = context;

	b->taker.paths.p[0] = 0;
}

static void wire(struct books *b)
{
	expect_eq(ledger_writer_row(&b->ledger, "writer"), 0);
	expect_eq(ledger_reserve(&b->ledger, &b->taker), 0);
	expect_eq(ledger_reserve(&b->ledger, &b->middle), 0);
	expect_eq(ledger_reserve(&b->ledger, &b->writer), 0);
	ledger_rewire(&b->ledger, one_path, b);
}

static void close_books(struct books *b)
{
	ledger_leave(&b->ledger, &b->taker);
	ledger_leave(&b->ledger, &b->middle);
	ledger_leave(&b->ledger, &b->writer);
	ledger_fini(&b->ledger);
}

/* Each kind of entry is where the equation wants it, and the JSON has exactly the agreed shape. */
TEST(every_entry_has_its_place)
{
	struct books b;
	struct ledger *l = &b.ledger;
	struct buf out = BUF_NULL;
	uint64_t dropped;

	expect_eq(open_books(&b), 0);
	wire(&b);
	ledger_count(l, &b.taker, ANDIRON_LEDGER_TAKEN, STR_NULL, 1234567);
	expect(!ledger_balanced(l, NULL, NULL));
	ledger_count(l, &b.taker, ANDIRON_LEDGER_SKIPPED, STR("idle"), 9);
	ledger_count(l, &b.taker, ANDIRON_LEDGER_DROPPED, STR("ring_full"), 567);
	ledger_queued(l, &b.middle, 4000);
	ledger_processing(l, &b.middle, 1000);
	ledger_unqueued(l, &b.middle, STR("deadline"), 1000);
	ledger_count(l, &b.writer, ANDIRON_LEDGER_CARRIED, STR_NULL, 50);
	ledger_level(l, &b.writer, ANDIRON_LEDGER_SPOOLED, 20);
	ledger_level(l, &b.writer, ANDIRON_LEDGER_UNCERTAIN, 30);
	ledger_count(l, &b.writer, ANDIRON_LEDGER_DELIVERED, STR_NULL, 1230000);
	expect(ledger_balanced(l, NULL, NULL));
	expect_eq(ledger_upstream(l, &b.writer, &dropped), 3000);
	expect_eq(dropped, 1567);
	ledger_level(l, &b.taker, ANDIRON_LEDGER_UNREAD, 7); /* stands outside */
	expect_eq(ledger_upstream(l, &b.writer, &dropped), 3007);
	expect_eq(ledger_upstream(l, &b.taker, &dropped), 0);
	expect_eq(dropped, 0);
	expect(ledger_balanced(l, NULL, NULL));
	expect_eq(ledger_json(ledger_view(l), &out), 0);
	expect_str(buf_str(&out),
		   "{\"taken\": 1234567, \"skipped\": {\"idle\": 9}, \"writers\": {\"writer\": "
		   "{\"carried\": 50, \"delivered\": 1230000, \"spooled\": 20, \"uncertain\": 30, "
		   "\"in_flight\": 3000, \"dropped\": {\"taker:ring_full\": 567, "
		   "\"middle:deadline\": 1000}}}}\n");
	buf_clear(&out);
	expect_eq(ledger_line(ledger_view(l), &out), 0);
	expect_str(buf_str(&out),
		   "samples: 1,234,567 taken (skipped: 9 idle); writer: 1,230,000 delivered, "
		   "50 carried over from before, 20 spooled, 30 uncertain, 3,000 in flight, "
		   "1,567 dropped (taker:ring_full 567, middle:deadline 1,000)");
	ledger_processed(l, &b.middle, 1000);
	expect(!ledger_balanced(l, NULL, NULL));
	buf_free(&out);
	close_books(&b);
}

/* What is in flight when edges change moves with them. */
TEST(rewiring_moves_what_is_in_flight)
{
	struct books b;
	struct ledger *l = &b.ledger;

	expect_eq(open_books(&b), 0);
	wire(&b);
	ledger_count(l, &b.taker, ANDIRON_LEDGER_TAKEN, STR_NULL, 100);
	ledger_level(l, &b.taker, ANDIRON_LEDGER_IN_FLIGHT, 40);
	ledger_count(l, &b.writer, ANDIRON_LEDGER_DELIVERED, STR_NULL, 60);
	expect(ledger_balanced(l, NULL, NULL));
	ledger_rewire(l, no_path, &b);
	expect(ledger_balanced(l, NULL, NULL));
	expect_eq(ledger_view(l)->writers[0].in_flight, 0);
	ledger_level(l, &b.taker, ANDIRON_LEDGER_IN_FLIGHT, 70);
	ledger_rewire(l, one_path, &b);
	expect(ledger_balanced(l, NULL, NULL));
	expect_eq(ledger_view(l)->writers[0].in_flight, 70);
	close_books(&b);
}

/* Reasons are bounded, however many a stranger makes up; none is lost. */
TEST(reasons_are_bounded)
{
	struct books b;
	char reason[200];
	uint64_t sum = 0;

	expect_eq(open_books(&b), 0);
	wire(&b);
	for (int i = 0; i < 5000; i++) {
		int n = snprintf(reason, sizeof(reason), "%d-%0150d", i, i);

		ledger_count(&b.ledger, &b.taker, ANDIRON_LEDGER_DROPPED,
			     (struct str){reason, (size_t)n}, 1);
	}
	ledger_count(&b.ledger, &b.taker, ANDIRON_LEDGER_DROPPED, STR_NULL, 1);
	ledger_count(&b.ledger, &b.taker, 77, STR_NULL, 1);
	expect(ledger_view(&b.ledger)->writers[0].n_reasons <= LEDGER_REASONS);
	for (size_t i = 0; i < ledger_view(&b.ledger)->writers[0].n_reasons; i++)
		sum += ledger_view(&b.ledger)->writers[0].reasons[i].samples;
	expect_eq(sum, 5001);
	close_books(&b);
}

static int books_body(void *context)
{
	struct ledger l;
	struct ledger_node node;
	int r = ledger_init(&l);

	if (r < 0)
		return r;
	r = ledger_enter(&l, &node, "n");
	if (r == 0) {
		r = ledger_writer_row(&l, "n");
		if (r >= 0)
			r = ledger_reserve(&l, &node);
		if (r == 0)
			ledger_count(&l, &node, ANDIRON_LEDGER_SKIPPED, STR("why"), 1);
		if (r == 0)
			r = ledger_view(&l) ? 0 : -ENOMEM;
		/* Without memory for the word it is counted all the same. */
		if (r == 0)
			expect_eq(ledger_view(&l)->skipped[0].samples, 1);
		ledger_leave(&l, &node);
	}
	ledger_fini(&l);
	return r;
}

TEST(books_survive_out_of_memory)
{
	/* Counting never fails, so a run may succeed without its memory; only what it returns and
	 * loses is looked at. */
	expect_eq(books_body(NULL), 0);
}

/* What a log writes, read back from a pipe. */
struct heard {
	struct log log;
	int fds[2];
	char text[65536];
};

static void listen_to(struct heard *h, enum log_format format)
{
	expect_eq(pipe(h->fds), 0);
	log_init(&h->log, h->fds[1], ANDIRON_LOG_INFO, format);
}

static struct str hear(struct heard *h)
{
	ssize_t n;

	log_fini(&h->log);
	close(h->fds[1]);
	n = read(h->fds[0], h->text, sizeof(h->text));
	close(h->fds[0]);
	return (struct str){h->text, n > 0 ? (size_t)n : 0};
}

TEST(log_lines_are_lines)
{
	struct heard h;
	struct andiron_kv kv = {{"path", 4}, {"a b\n\x1b[31m\"\xff", 11}};
	struct str out;

	listen_to(&h, LOG_TEXT);
	log_write(&h.log, ANDIRON_LOG_WARN, STR("x.y"), STR("two\nlines\r"), &kv, 1);
	log_write(&h.log, ANDIRON_LOG_DEBUG, STR("x.y"), STR("not shown"), NULL, 0);
	out = hear(&h);
	expect_str(str_skip(out, 12),
		   " warn  x.y: two\\x0alines\\x0d path=\"a b\\n\\u001b[31m\\\"\\ufffd\"\n");
}

TEST(log_writes_json)
{
	struct heard h;
	struct andiron_kv kv = {{"k", 1}, {"\"\\\n\x01\xff", 5}};
	struct str out;

	listen_to(&h, LOG_JSON);
	log_write(&h.log, ANDIRON_LOG_ERROR, STR("x"), STR("m"), &kv, 1);
	out = hear(&h);
	expect(str_starts(out, STR("{\"time\":\"20")));
	expect(str_ends(out, STR("Z\",\"level\":\"error\",\"component\":\"x\",\"message\":\"m\","
				 "\"k\":\"\\\"\\\\\\n\\u0001\\ufffd\"}\n")));
}

/* Alloy's keys in its order; a value is quoted where it must be, with no escapes but JSON's, which
 * is what readers of logfmt know. */
TEST(log_writes_logfmt)
{
	struct heard h;
	struct andiron_kv kv = {{"path", 4}, {"a b", 3}};
	struct str out;

	listen_to(&h, LOG_LOGFMT);
	log_write(&h.log, ANDIRON_LOG_WARN, STR("x.y"), STR("say \"a\"\n"), &kv, 1);
	out = hear(&h);
	expect(str_starts(out, STR("ts=20")));
	expect(str_ends(out, STR("Z level=warn msg=\"say \\\"a\\\"\\n\" component_id=x.y "
				 "path=\"a b\"\n")));

	listen_to(&h, LOG_LOGFMT);
	log_write(&h.log, ANDIRON_LOG_WARN, STR("x.y"), STR("a\x01\xff\xc2\x85\\"), NULL, 0);
	out = hear(&h);
	expect(str_ends(out, STR("Z level=warn msg=\"a\\u0001\\ufffd\\u0085\\\\\" "
				 "component_id=x.y\n")));
}

/* A log that runs changes its level and form from line to line. */
TEST(log_changes)
{
	struct heard h;
	struct str out;

	listen_to(&h, LOG_TEXT);
	log_write(&h.log, ANDIRON_LOG_DEBUG, STR("x"), STR("one"), NULL, 0);
	log_change(&h.log, ANDIRON_LOG_DEBUG, LOG_LOGFMT);
	log_write(&h.log, ANDIRON_LOG_DEBUG, STR("x"), STR("two"), NULL, 0);
	log_change(&h.log, ANDIRON_LOG_WARN, LOG_TEXT);
	log_write(&h.log, ANDIRON_LOG_INFO, STR("x"), STR("three"), NULL, 0);
	out = hear(&h);
	expect(str_ends(out, STR("level=debug msg=two component_id=x\n")));
	expect_eq(str_find(out, '\n'), out.n - 1);
}

/* Ten of the same are written, the rest is summed up. */
TEST(repeated_lines_are_summed_up)
{
	struct heard h;
	struct str out;
	int lines = 0;

	listen_to(&h, LOG_TEXT);
	for (int i = 0; i < 1000; i++)
		log_write(&h.log, ANDIRON_LOG_ERROR, STR("x"), STR("again"), NULL, 0);
	out = hear(&h);
	expect(str_search(out, STR("990 more like this: again")) < out.n);
	while (out.n) {
		str_cut(&out, '\n');
		lines++;
	}
	expect_eq(lines, 11);
}

/* A seeded stream of bytes comes out as text that can be read. */
TEST(strangers_bytes_become_text)
{
	uint64_t seed = 42;

	for (int round = 0; round < 5000; round++) {
		unsigned char bytes[64];
		struct buf out = BUF_NULL;
		struct str in;

		for (size_t i = 0; i < sizeof(bytes); i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			bytes[i] = (unsigned char)(seed >> 56);
		}
		in = (struct str){(const char *)bytes, seed >> 32 & 63};
		json_put_str(&out, in);
		text_label(&out, in);
		text_line(&out, in);
		text_value(&out, in);
		expect(!out.failed && str_utf8(buf_str(&out)));
		for (size_t i = 0; i < out.n; i++)
			expect((unsigned char)out.p[i] >= 0x20 || i < out.n);
		expect(str_find(buf_str(&out), '\n') == out.n);
		buf_free(&out);
	}
}
