/* SPDX-License-Identifier: Apache-2.0 */
/* Events followed. Contract in stream.h. */
#include "docker/stream.h"

#include "base/check.h"
#include "base/clock.h"

#include <stdio.h>

#define REFUSED_NS      (60 * NS_PER_SEC)
#define LASTED_NS       (5 * NS_PER_SEC) /* a stream that was one, after which waits are short */
#define FIRST_WAIT_MS   250
#define LONGEST_WAIT_MS 10000

static void follow(struct stream *s);

static void on_retry(void *context)
{
	struct stream *s = context;

	s->timer = 0;
	if (!s->request && !s->stopped)
		follow(s);
}

static void retry_later(struct stream *s)
{
	engine_timer(s->engine, &s->timer, s->wait_ms * NS_PER_MSEC, on_retry, s);
	s->wait_ms = s->wait_ms * 2 < LONGEST_WAIT_MS ? s->wait_ms * 2 : LONGEST_WAIT_MS;
}

static void on_event(void *context, const struct event *e)
{
	struct stream *s = context;

	s->n_events++;
	s->calls->event(s->context, e);
}

static bool on_piece(void *context, struct str piece)
{
	struct stream *s = context;

	s->n_bytes += piece.n;
	return events_feed(&s->events, piece, on_event, s);
}

static void on_begun(void *context)
{
	struct stream *s = context;

	s->following = true;
	s->begun_ns = clock_mono();
	s->trouble[0] = '\0';
	s->calls->begun(s->context);
}

static void on_ended(void *context, const struct http_response *response)
{
	struct stream *s = context;

	s->answered = response->status != 0 || s->following;
	if (s->following && clock_mono() - s->begun_ns > LASTED_NS)
		s->wait_ms = FIRST_WAIT_MS;
	s->request = 0;
	s->following = false;
	s->n_failures++;
	if (response->status == 200)
		snprintf(s->trouble, sizeof(s->trouble),
			 "the Docker engine at %.*s has ended its stream of events",
			 STR_FMT(s->engine->settings->host));
	else
		engine_describe(s->engine, "its events", response, s->trouble);
	if (response->status >= 400)
		engine_timer(s->engine, &s->timer, REFUSED_NS, on_retry, s);
	else
		retry_later(s);
	s->calls->ended(s->context);
}

static void follow(struct stream *s)
{
	struct http_request request = {
		.max_response = UINT64_MAX,
		.uncompressed = true,
		.begun = on_begun,
		.data = on_piece,
		.done = on_ended,
		.context = s,
	};
	struct buf url = BUF_NULL;

	check(!s->request);
	settings_url(s->engine->settings, &url, "/events", str_of(s->filters));
	events_begin(&s->events);
	if (engine_ask(s->engine, &url, &request, &s->request, s->trouble) == 0)
		return;
	s->answered = false;
	retry_later(s);
	s->calls->ended(s->context);
}

void stream_start(struct stream *s)
{
	s->wait_ms = FIRST_WAIT_MS;
	follow(s);
}

void stream_stop(struct stream *s)
{
	engine_timer_cancel(s->engine, &s->timer);
	s->stopped = true;
}

void stream_fini(struct stream *s)
{
	events_fini(&s->events);
}
