/* SPDX-License-Identifier: Apache-2.0 */
/* When a URL is asked again that gives no value. Its requests fail before anything leaves. */
#include "client/polling.h"

#include "base/clock.h"
#include "testing/test.h"

#include <errno.h>
#include <string.h>

static struct {
	const void *poll;   /* whose timers these are */
	andiron_call_fn fn; /* of the one that fires once, while it is set */
	int64_t after_ns, every_ns;
	int n_set, n_open;
	char said[512];
} seen;

static int32_t timer_set(uint64_t instance, int64_t after_ns, int64_t every_ns, andiron_call_fn fn,
			 void *arg, uint64_t *ret_timer)
{
	*ret_timer = every_ns ? 1 : 2;
	if (arg != seen.poll)
		return 0;
	seen.n_open++;
	if (every_ns) {
		seen.every_ns = every_ns;
		return 0;
	}
	expect(!seen.fn);
	seen.n_set++;
	seen.after_ns = after_ns;
	seen.fn = fn;
	return 0;
}

static void timer_cancel(uint64_t instance, uint64_t timer)
{
	seen.n_open--;
}

static void health(uint64_t instance, uint32_t state, const struct andiron_str *message)
{
	expect_eq(state, ANDIRON_HEALTH_UNHEALTHY);
	snprintf(seen.said, sizeof(seen.said), "%.*s", (int)message->len, message->ptr);
}

static int32_t log_enabled(uint64_t instance, uint32_t level)
{
	return 0;
}

static int32_t extension(uint64_t instance, const char *id, struct andiron_extension *ret)
{
	*ret = (struct andiron_extension){0};
	return strcmp(id, ANDIRON_VALUES_ID) == 0 ? 0 : -ENOENT;
}

static const struct andiron_host host = {
	.size = sizeof(host),
	.timer_set = timer_set,
	.timer_cancel = timer_cancel,
	.health = health,
	.log_enabled = log_enabled,
	.extension = extension,
};

static struct client_poll *begin(int64_t frequency_ns)
{
	static const struct abi_context context = {&host, 7};
	static const struct http_config http = {0};
	const struct client_poll_how how = {
		.host = &context,
		.export_name = "content",
		.http = &http,
		.request = {.url = STR("ftp://a/"), .method = "GET", .max_response = 1},
		.frequency_ns = frequency_ns,
		.timeout_ns = NS_PER_SEC,
	};
	struct error err = ERROR_NULL;
	struct client_poll *p;

	memset(&seen, 0, sizeof(seen));
	expect_eq(client_poll_new(&how, &p), 0);
	seen.poll = p;
	expect_eq(client_poll_start(p, &err), 0);
	expect_eq(seen.every_ns, frequency_ns);
	return p;
}

/* Its timer fires: whether it has asked to be called again after so many seconds. */
static void fire(struct client_poll *p, int64_t seconds)
{
	andiron_call_fn fn = seen.fn;

	expect(fn);
	seen.fn = NULL;
	seen.n_open--;
	fn(p);
	expect_eq(seen.after_ns, seconds * NS_PER_SEC);
}

/* Others wait for the first value, so a poll that fails before it is repeated soon, and not for
 * ever as soon as that. */
TEST(the_first_value_is_asked_for_soon)
{
	static const int64_t seconds[] = {2, 4, 8, 16, 30, 30, 30};
	struct client_poll *p = begin(60 * NS_PER_SEC);

	client_poll_ask(p);
	expect(strstr(seen.said, "no value since it started"));
	expect_eq(seen.after_ns, NS_PER_SEC);
	for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++)
		fire(p, seconds[i]);
	client_poll_ask(p); /* the interval's turn: one such timer is enough */
	expect_eq(seen.n_set, 8);
	expect_eq(client_poll_counts(p).failures, 9);
	client_poll_stop(p);
	expect_eq(seen.n_open, 0);
	client_poll_free(p);
}

/* No sooner than the interval, and not for what polls do not mend. */
TEST(an_interval_that_is_short_is_soon_enough)
{
	struct client_poll *p = begin(3 * NS_PER_SEC);

	client_poll_fail(p, "no credentials");
	expect_eq(seen.n_set, 0);
	client_poll_ask(p);
	fire(p, 2);
	fire(p, 2);
	expect_eq(seen.n_set, 2);
	client_poll_stop(p);
	expect_eq(seen.n_open, 0);
	client_poll_free(p);
}
