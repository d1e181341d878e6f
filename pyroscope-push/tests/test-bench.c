/* SPDX-License-Identifier: Apache-2.0 */
/* The benches of test-bench.h. */
#include "pyroscope-push/tests/test-bench.h"

#include "abi/batch-build.h"
#include "base/clock.h"
#include "base/hash.h"
#include "testing/test.h"
#include "pprof/decode.h"
#include "protobuf/wire.h"
#include "pyroscope-push/tests/test-directory.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: 0\r\n\r\n"
#define BODY_MAX  (4u << 20)

static bool read_body(int fd, struct buf *b)
{
	size_t want = SIZE_MAX, head = 0;

	while (b->n - head < want) {
		char *p = buf_reserve(b, 65536);
		ssize_t r = p ? recv(fd, p, 65536, 0) : -1;
		size_t end;

		if (r <= 0)
			return false;
		b->n += (size_t)r;
		end = str_search(buf_str(b), STR("\r\n\r\n"));
		if (want == SIZE_MAX && end < b->n) {
			size_t at = str_search(buf_str(b), STR("Content-Length: "));

			expect(at < end && end + 4 < BODY_MAX);
			want = strtoul(b->p + at + 16, NULL, 10);
			head = end + 4;
		}
	}
	memmove(b->p, b->p + head, b->n - head);
	b->n -= head;
	return true;
}

/* Stores one series. Two profiles of one time would lose one: refused. */
static void store(struct receiver *r, struct str message)
{
	struct stored s = {.hash = hash_str(message)};
	struct error err = ERROR_NULL;
	struct profile *p;
	struct wire_field f = {0}, pprof;

	while (message.n)
		expect(wire_next(&message, &f));
	expect(f.number == 2 && wire_next(&f.bytes, &pprof));
	expect_eq(profile_decode(pprof.bytes, &p, &err), 0);
	s.time_ns = p->time_ns;
	for (uint32_t i = 0; i < p->n_samples; i++)
		s.samples += p->values[i] / p->period;
	profile_free(p);
	vec_each (&r->profiles, known) {
		if (known->hash == s.hash)
			return;
		expect(known->time_ns != s.time_ns);
	}
	expect(vec_push(&r->profiles, s));
}

static void store_all(struct receiver *r, struct str body)
{
	struct wire_field f;

	while (body.n) {
		expect(wire_next(&body, &f) && f.number == 1);
		if (!r->poison || str_search(f.bytes, str_of(r->poison)) == f.bytes.n)
			store(r, f.bytes);
	}
}

static const char *const failures[] = {
	"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 503 Later\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 429 Fast\r\nContent-Length: 23\r\n\r\npush rate limit exceeded",
	"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n",
	"\x01\x02 garbage",
	"",
};

/* Whether the answer to this may be lost: twice, since a payload after which the connection is lost
 * three times is taken for one that kills the server. */
static bool may_lose(struct receiver *r, struct str body)
{
	uint64_t hash = hash_str(body);

	vec_each (&r->lost, l)
		if (l->hash == hash)
			return l->times++ < 2;
	expect(vec_push(&r->lost, ((struct lost_request){hash, 1})));
	return true;
}

/* What a faulty server does with a request; NULL: it takes it. "" is no answer. */
static const char *fault(struct receiver *r, struct str body, unsigned int dice)
{
	const char *failure = dice % 16 < 8 ? failures[dice / 16 % 6] : dice & 16 ? "" : NULL;

	if (!r->faulty || (failure && !*failure && !may_lose(r, body)))
		return NULL;
	return failure;
}

static void answer(struct receiver *r, int fd, struct str body)
{
	bool poisoned = r->poison && str_search(body, str_of(r->poison)) < body.n;
	unsigned int dice = (unsigned int)rand_r(&r->seed);
	const char *failure = fault(r, body, dice);

	r->n_requests++;
	if (!r->says && (!failure || dice & 1))
		store_all(r, body);
	if (r->hang)
		recv(fd, &dice, 1, 0);
	else if (r->says)
		test_say(fd, r->says);
	else if (poisoned)
		test_say(fd, r->deadly ? "" : "HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n");
	else
		test_say(fd, failure ? failure : OK_ANSWER);
}

/* One request a connection. */
static void serve(int fd, void *context)
{
	struct buf body = BUF_NULL;

	if (read_body(fd, &body))
		answer(context, fd, buf_str(&body));
	buf_free(&body);
}

int64_t stored_samples(const struct receiver *r)
{
	int64_t sum = 0;

	vec_each (&r->profiles, s)
		sum += s->samples;
	return sum;
}

static const struct andiron_str endpoint_keys[] = {
	{"url", 3},
	{"min_backoff_period", 18},
	{"max_backoff_period", 18},
	{"max_backoff_retries", 19},
	{"remote_timeout", 14},
	{"queue_bytes", 11},
	{"max_age", 7},
};
static const struct andiron_str spool_keys[] = {{"directory", 9}, {"max_bytes", 9}};
static const struct andiron_str root_keys[] = {{"endpoint", 8}, {"spool", 5}};

static struct andiron_value text_value(const char *text)
{
	return (struct andiron_value){.kind = ANDIRON_VALUE_STRING, .string = {text, strlen(text)}};
}

static struct andiron_value int_value(int64_t number)
{
	return (struct andiron_value){.kind = ANDIRON_VALUE_INT, .integer = number};
}

static struct andiron_value map_value(const struct andiron_str *keys,
				      const struct andiron_value *items, size_t n)
{
	return (struct andiron_value){
		.kind = ANDIRON_VALUE_MAP, .keys = keys, .items = items, .n_items = n};
}

const struct andiron_value *arguments(struct arguments *a)
{
	for (size_t i = 0; i < a->n; i++) {
		const int64_t numbers[] = {a->backoff_ms * NS_PER_MSEC,
					   a->backoff_ms * NS_PER_MSEC,
					   a->retries,
					   a->timeout_ms * NS_PER_MSEC,
					   a->queue_bytes,
					   a->max_age_ms * NS_PER_MSEC};

		a->values[i][0] = text_value(a->urls[i]);
		for (size_t k = 1; k < 7; k++)
			a->values[i][k] = int_value(numbers[k - 1]);
		a->blocks[i] = map_value(endpoint_keys, a->values[i], a->max_age_ms ? 7 : 6);
	}
	a->tops[0] = (struct andiron_value){
		.kind = ANDIRON_VALUE_LIST, .items = a->blocks, .n_items = a->n};
	a->spool_values[0] = text_value(a->spool ? a->spool : "");
	a->spool_values[1] = int_value((int64_t)a->spool_bytes);
	a->tops[1] = map_value(spool_keys, a->spool_values, 2);
	a->root = map_value(root_keys, a->tops, a->spool ? 2 : 1);
	return &a->root;
}

void set_url(struct arguments *a, size_t i, uint16_t port)
{
	snprintf(a->urls[i], sizeof(a->urls[i]), "http://127.0.0.1:%u", port);
}

void bench_arguments(struct bench *t)
{
	t->args.n = 1;
	t->args.backoff_ms = 2;
	t->args.timeout_ms = 5000;
	t->args.queue_bytes = 32 << 20;
	t->args.spool_bytes = 8 << 20;
}

void bench_open(struct bench *t)
{
	t->receiver.seed = 11;
	t->receiver.server = test_server_new(serve, &t->receiver);
	bench_arguments(t);
	set_url(&t->args, 0, test_server_port(t->receiver.server));
}

void bench_start(struct bench *t)
{
	struct abi_context context;
	struct push_config *config;
	struct error err = ERROR_NULL;

	t->host = test_host_new();
	context = test_host_context();
	if (push_config_new(t->protocol ? t->protocol : &protocol_pyroscope, arguments(&t->args),
			    &config, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
	expect_eq(writer_new(&context, config, &t->writer), 0);
	expect_eq(writer_start(t->writer, &err), 0);
}

void bench_check(const struct bench *t)
{
	const struct test_host *h = t->host;

	expect_eq(t->taken + h->carried,
		  h->delivered + h->spooled + h->uncertain + h->in_flight + h->n_dropped);
}

void bench_feed(struct bench *t, uint32_t n_groups, uint32_t n_rows)
{
	struct test_shape shape = {n_groups, n_rows, 4, 3, clock_real()};
	const struct andiron_batch *batch = test_batch(&shape);

	t->taken += batch->samples;
	writer_batch(t->writer, batch);
	batch_release(batch);
	bench_check(t);
}

void bench_drain(struct bench *t, int64_t ms)
{
	writer_drain(t->writer, ms * NS_PER_MSEC);
	expect(test_host_until(&t->host->drained, ms + 60000));
	expect_eq(t->host->in_flight, 0);
	bench_check(t);
}

void bench_end(struct bench *t)
{
	writer_stop(t->writer);
	bench_check(t);
	writer_free(t->writer);
	test_host_free();
}

void bench_close(struct bench *t)
{
	bench_end(t);
	test_server_free(t->receiver.server);
	vec_free(&t->receiver.profiles);
	vec_free(&t->receiver.lost);
}

void bench_make_directory(struct bench *t)
{
	test_directory_make(t->directory, sizeof(t->directory));
	t->args.spool = t->directory;
}

void bench_remove_directory(struct bench *t)
{
	test_directory_clear(t->directory);
	rmdir(t->directory);
}

struct bench_run bench_run(struct bench *t, void (*body)(struct bench *t))
{
	uint16_t port;
	int ends[2];
	pid_t pid;

	expect_eq(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		expect_eq(read(ends[0], &port, sizeof(port)), sizeof(port));
		bench_arguments(t);
		set_url(&t->args, 0, port);
		bench_start(t);
		body(t);
		raise(SIGKILL);
	}
	close(ends[0]);
	return (struct bench_run){pid, ends[1]};
}

void bench_run_end(const struct bench_run *run, uint16_t port)
{
	int status;

	expect_eq(write(run->port, &port, sizeof(port)), sizeof(port));
	close(run->port);
	expect_eq(waitpid(run->pid, &status, 0), run->pid);
	expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}
