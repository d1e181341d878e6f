/* SPDX-License-Identifier: Apache-2.0 */
/* The status socket, metrics and health, with clients of every kind. */
#include "host/tests/test-support.h"
#include "testing/comma-locale.h"

#include "host/report/status.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct scene {
	char dir[64], path[96];
	struct host *host;
	struct probe a, w;
};

static struct host *scene_host(struct scene *s)
{
	return test_host((struct host_options){.status_path = s->path});
}

static void scene_folder(struct scene *s)
{
	snprintf(s->dir, sizeof(s->dir), "/tmp/andiron-test-XXXXXX");
	expect(mkdtemp(s->dir));
	snprintf(s->path, sizeof(s->path), "%s/socket", s->dir);
}

static void scene_open(struct scene *s)
{
	struct plan *plan = test_plan();
	uint32_t a = test_node(plan, "a", &test_producer, &s->a);

	scene_folder(s);
	test_batches(plan, a, test_node(plan, "w", &test_writer, &s->w));
	s->host = scene_host(s);
	expect_eq(host_load(s->host, plan, NULL), 0);
}

static void scene_close(struct scene *s)
{
	host_free(s->host);
	expect_eq(access(s->path, F_OK), -1);
	expect_eq(rmdir(s->dir), 0);
}

static int dial(struct scene *s)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, s->path, strlen(s->path) + 1);
	expect_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* The whole answer, the loop being driven meanwhile. */
static void answer(struct scene *s, int fd, struct buf *out)
{
	for (;;) {
		char chunk[4096];
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n > 0)
			buf_append(out, chunk, (size_t)n);
		else if (n < 0 && errno == EAGAIN)
			host_step(s->host);
		else
			break;
	}
	buf_putc(out, '\0');
	close(fd);
}

static void ask(struct scene *s, const char *request, struct buf *out)
{
	int fd = dial(s);

	buf_clear(out);
	expect_eq(send(fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
	answer(s, fd, out);
}

TEST(metrics_and_health_are_served)
{
	struct scene s = {0};
	struct buf out = BUF_NULL;
	struct stat st;

	scene_open(&s);
	expect_eq(stat(s.path, &st), 0);
	expect_eq(st.st_mode & 0777, 0600);
	ask(&s, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", &out);
	expect(str_starts(str_of(out.p), STR("HTTP/1.0 200 OK\r\n")));
	expect(strstr(out.p, "\n# TYPE andiron_samples_taken_total counter\n"));
	expect(strstr(out.p, "\nandiron_samples_taken_total 0\n"));
	expect(strstr(out.p, "\nandiron_queue_bytes{component_id=\"w\"} 0\n"));
	expect(strstr(out.p, "\nalloy_component_controller_running_components{health_type="
			     "\"unknown\"} 2\n"));
	/* A family stands together, a stranger's label is escaped, and what has no valid name is
	 * left out. */
	expect(strstr(out.p, "\ntest_batches_total{component_id=\"a\",color=\"a\\\"b\\n\"} 0\n"
			     "test_batches_total{component_id=\"w\","));
	expect(!strstr(out.p, "not a name"));
	ask(&s, "GET /health HTTP/1.0\n\n", &out);
	expect(strstr(out.p, "\"healthy\": true"));
	expect(strstr(out.p, "{\"id\": \"w\", \"health\": \"unknown\""));
	ask(&s, "GET /other HTTP/1.0\n\n", &out);
	expect(strstr(out.p, "404"));
	ask(&s, "POST /metrics HTTP/1.0\n\n", &out);
	expect(strstr(out.p, "400"));
	buf_free(&out);
	scene_close(&s);
}

struct asked {
	struct scene s;
	int fd, result;
	const char *why;
	int n;
};

static void ask_for_it(void *context, const char *failed)
{
	static const char request[] = "POST /-/reload HTTP/1.1\r\nContent-Length: 0\r\n\r\n";
	struct asked *a = context;

	a->fd = dial(&a->s);
	expect_eq(send(a->fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
}

static int read_again(void *context, struct error *err)
{
	struct asked *a = context;

	a->n++;
	host_stop(a->s.host);
	return a->why ? error_set(err, a->result, "%s", a->why) : a->result;
}

static void expect_reload(int result, const char *why, const char *answered)
{
	struct asked a = {.result = result, .why = why};
	struct plan *plan = test_plan();
	struct buf out = BUF_NULL;

	scene_folder(&a.s);
	test_node(plan, "a", &test_producer, &a.s.a);
	a.s.host = test_host((struct host_options){
		.status_path = a.s.path, .reload = read_again, .live = ask_for_it, .context = &a});
	expect_eq(host_load(a.s.host, plan, NULL), 0);
	expect_eq(host_run(a.s.host, NULL), 0);
	expect_eq(a.n, 1);
	answer(&a.s, a.fd, &out);
	expect(strstr(out.p, answered));
	buf_free(&out);
	scene_close(&a.s);
}

/* Whoever asks for a reload hears what came of it, and why it was refused. */
TEST(reloads_are_answered)
{
	expect_reload(0, NULL, "HTTP/1.0 200 OK\r\n");
	expect_reload(-EINPROGRESS, NULL, "HTTP/1.0 202 ");
	expect_reload(-EINVAL, "no such port", "goes on: no such port\n");
	expect_reload(-EINVAL, "no such port", "HTTP/1.0 400 ");
	expect_reload(-ETIMEDOUT, "it is late", "HTTP/1.0 503 ");
	expect_reload(-EBUSY, NULL, "HTTP/1.0 503 ");
}

/* Nobody reads a configuration: so it is said. */
TEST(reloads_need_a_reader)
{
	struct scene s = {0};
	struct buf out = BUF_NULL;

	scene_open(&s);
	ask(&s, "POST /-/reload HTTP/1.0\n\n", &out);
	expect(strstr(out.p, "501 ") && strstr(out.p, "nobody reads a configuration"));
	buf_free(&out);
	scene_close(&s);
}

/* Garbage of any length ends in an answer or a closed connection. */
TEST(garbage_is_bounded)
{
	struct scene s = {0};
	struct buf out = BUF_NULL;
	uint64_t seed = 7;

	scene_open(&s);
	for (int round = 0; round < 300; round++) {
		char bytes[6000];
		size_t n;
		int fd = dial(&s);

		for (size_t i = 0; i < sizeof(bytes); i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			bytes[i] = (char)(seed >> 56);
		}
		n = round % 2 ? sizeof(bytes) : (size_t)(seed >> 40) % sizeof(bytes);
		expect(send(fd, bytes, n, MSG_NOSIGNAL) >= 0);
		shutdown(fd, SHUT_WR);
		buf_clear(&out);
		answer(&s, fd, &out);
	}
	buf_free(&out);
	scene_close(&s);
}

/* Sixteen who say nothing keep nobody out for ever: their time runs out. */
TEST(silent_clients_are_dropped)
{
	struct scene s = {0};
	struct buf out = BUF_NULL;
	int fds[40];

	scene_open(&s);
	for (int i = 0; i < 16; i++)
		fds[i] = dial(&s);
	ask(&s, "GET /health HTTP/1.0\n\n", &out);
	expect(strstr(out.p, "200 OK"));
	for (int i = 0; i < 16; i++) {
		buf_clear(&out);
		answer(&s, fds[i], &out);
		expect_eq(out.n, 1);
	}
	buf_free(&out);
	scene_close(&s);
}

/* A socket that a crash left behind is replaced; one that answers is not, nor is a file. */
TEST(a_stale_socket_is_replaced)
{
	struct scene s = {0};
	struct host_options options = {.log_fd = 2};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct error err = ERROR_NULL;
	struct host *second;
	int fd;

	scene_open(&s);
	options.status_path = s.path;
	expect_eq(host_new(&options, &second, &err), -EADDRINUSE);
	expect(strstr(err.text, "another process answers"));
	host_free(s.host);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	memcpy(address.sun_path, s.path, strlen(s.path) + 1);
	expect_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	s.host = scene_host(&s);
	host_free(s.host);
	fd = open(s.path, O_CREAT | O_CLOEXEC | O_WRONLY, 0600);
	close(fd);
	expect_eq(host_new(&options, &second, &err), -EEXIST);
	expect_eq(unlink(s.path), 0);
	s.host = scene_host(&s);
	scene_close(&s);
}

static void take_one(struct probe *p)
{
	test_take(p, 5, 0);
}

static struct host *asked;

static void ask_live(void *context, const char *failed)
{
	struct probe *w = context;

	test_until(asked, &w->n_batch, 1);
	host_stop(asked);
}

/* One metric of one component, also after its end. */
TEST(a_metric_can_be_asked_for_at_the_end)
{
	struct probe a = {.on_start = take_one}, w = {0};
	struct plan *plan = test_plan();
	uint32_t na = test_node(plan, "a", &test_producer, &a);

	test_batches(plan, na, test_node(plan, "w", &test_writer, &w));
	asked = test_host((struct host_options){.live = ask_live, .context = &w});
	expect_eq(host_load(asked, plan, NULL), 0);
	expect(host_metric(asked, "w", "test_batches_total") < 0.5);
	test_run(asked, 0);
	expect(fabs(host_metric(asked, "w", "test_batches_total") - 1) < 0.01);
	expect(isnan(host_metric(asked, "w", "other")));
	expect(isnan(host_metric(asked, "nobody", "test_batches_total")));
	host_free(asked);
}

static void half(void *self, const struct andiron_metric_sink *sink)
{
	const struct andiron_metric m = {
		.name = "test_half", .help = "Half.", .kind = ANDIRON_METRIC_GAUGE, .value = 0.5};

	sink->add(sink->self, &m);
}

/* Prometheus reads a point, whatever the locale of the agent that we are a part of. */
TEST(metrics_do_not_follow_the_locale)
{
	struct andiron_component component = test_producer;
	struct probe probe = {0};
	struct buf page = BUF_NULL;
	struct plan *plan = test_plan();
	struct host *host = test_host((struct host_options){0});

	test_comma_locale();
	component.metrics = half;
	test_node(plan, "a", &component, &probe);
	expect_eq(host_load(host, plan, NULL), 0);
	expect_eq(host_metrics(host, &page), 0);
	expect(str_search(buf_str(&page), STR("test_half{component_id=\"a\"} 0.5\n")) < page.n);
	buf_free(&page);
	host_free(host);
}
