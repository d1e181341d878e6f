/* SPDX-License-Identifier: Apache-2.0 */
/* The log. Contracts in log.h. A line is put together in one buffer and written by one call, so
 * lines of several threads do not mix. Counting repeats takes a fixed table: a place is reused by
 * the next message that hashes there, after its summary was written. */
#include "host/report/log.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "host/report/escape.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define WINDOW_NS  (60 * NS_PER_SEC)
#define PER_WINDOW 10
#define LINE_BYTES ((size_t)64 << 10)

const char *const log_levels[] = {
	[ANDIRON_LOG_ERROR] = "error", [ANDIRON_LOG_WARN] = "warn",    [ANDIRON_LOG_INFO] = "info",
	[ANDIRON_LOG_DEBUG] = "debug", [ANDIRON_LOG_DEBUG + 1] = NULL,
};

const char *const log_formats[] = {
	[LOG_TEXT] = "text",
	[LOG_LOGFMT] = "logfmt",
	[LOG_JSON] = "json",
	[LOG_JSON + 1] = NULL,
};

uint32_t log_value(const char *const *words, const char *word)
{
	uint32_t value = 0;

	while (strcmp(word, words[value]) != 0) {
		value++;
		check(words[value]);
	}
	return value;
}

void log_init(struct log *log, int fd, uint32_t level, enum log_format format)
{
	*log = (struct log){.fd = fd, .level = level, .format = format};
	log->line.limit = LINE_BYTES;
	pthread_mutex_init(&log->lock, NULL);
}

void log_change(struct log *log, uint32_t level, enum log_format format)
{
	atomic_store(&log->level, level);
	atomic_store(&log->format, format);
}

/* The whole moment in UTC, or the local time of day. */
static void put_time(struct buf *out, bool whole)
{
	struct timespec now;
	struct tm tm;
	char text[32];

	clock_gettime(CLOCK_REALTIME, &now);
	if (whole)
		gmtime_r(&now.tv_sec, &tm);
	else
		localtime_r(&now.tv_sec, &tm);
	strftime(text, sizeof(text), whole ? "%Y-%m-%dT%H:%M:%S" : "%H:%M:%S", &tm);
	buf_printf(out, whole ? "%s.%03dZ" : "%s.%03d", text, (int)(now.tv_nsec / NS_PER_MSEC));
}

static struct str border(struct andiron_str s)
{
	return (struct str){s.ptr, s.ptr ? s.len : 0};
}

static void put_json(struct buf *out, uint32_t level, struct str component, struct str message)
{
	buf_str_append(out, STR("{\"time\":\""));
	put_time(out, true);
	buf_printf(out, "\",\"level\":\"%s\",\"component\":", log_levels[level]);
	json_put_str(out, component);
	buf_str_append(out, STR(",\"message\":"));
	json_put_str(out, message);
}

static void put_text(struct buf *out, uint32_t level, struct str component, struct str message)
{
	put_time(out, false);
	buf_printf(out, " %-5s ", log_levels[level]);
	if (component.n) {
		text_line(out, component);
		buf_str_append(out, STR(": "));
	}
	text_line(out, message);
}

static void put_logfmt(struct buf *out, uint32_t level, struct str component, struct str message)
{
	buf_str_append(out, STR("ts="));
	put_time(out, true);
	buf_printf(out, " level=%s msg=", log_levels[level]);
	text_value(out, message);
	if (component.n) {
		buf_str_append(out, STR(" component_id="));
		text_value(out, component);
	}
}

static void put_values(struct buf *out, bool json, const struct andiron_kv *kv, uint64_t n_kv)
{
	for (uint64_t i = 0; i < n_kv; i++) {
		if (json) {
			buf_putc(out, ',');
			json_put_str(out, border(kv[i].key));
			buf_putc(out, ':');
			json_put_str(out, border(kv[i].value));
		} else {
			buf_putc(out, ' ');
			text_line(out, border(kv[i].key));
			buf_putc(out, '=');
			text_value(out, border(kv[i].value));
		}
	}
}

/* A line over the limit, or one without memory, is left out whole. */
static void write_line(struct log *log, uint32_t level, struct str component, struct str message,
		       const struct andiron_kv *kv, uint64_t n_kv)
{
	uint32_t format = atomic_load(&log->format);
	struct buf *out = &log->line;

	pthread_mutex_lock(&log->lock);
	buf_clear(out);
	if (format == LOG_JSON)
		put_json(out, level, component, message);
	else if (format == LOG_LOGFMT)
		put_logfmt(out, level, component, message);
	else
		put_text(out, level, component, message);
	put_values(out, format == LOG_JSON, kv, n_kv);
	buf_str_append(out, format == LOG_JSON ? STR("}\n") : STR("\n"));
	if (!out->failed)
		file_write_fd(log->fd, out->p, out->n);
	pthread_mutex_unlock(&log->lock);
}

static void hand_line(struct log *log, uint32_t level, struct str component, struct str message,
		      const struct andiron_kv *kv, uint64_t n_kv)
{
	struct buf name = {.limit = LINE_BYTES}, line = {.limit = LINE_BYTES};

	text_line(&name, component);
	buf_putc(&name, '\0');
	text_line(&line, message);
	put_values(&line, false, kv, n_kv);
	buf_putc(&line, '\0');
	if (!name.failed && !line.failed)
		log->line_fn(log->context, level, name.p, line.p);
	buf_free(&name);
	buf_free(&line);
}

static void put_line(struct log *log, uint32_t level, struct str component, struct str message,
		     const struct andiron_kv *kv, uint64_t n_kv)
{
	(log->line_fn ? hand_line : write_line)(log, level, component, message, kv, n_kv);
}

static void sum_up(struct log *log, const struct log_repeat *r)
{
	char text[sizeof(r->message) + 64];
	int n;

	if (!r->n_muted)
		return;
	n = snprintf(text, sizeof(text), "%llu more like this: %s", (unsigned long long)r->n_muted,
		     r->message);
	put_line(log, ANDIRON_LOG_INFO, str_of(r->component),
		 (struct str){text, n > 0 ? (size_t)n : 0}, NULL, 0);
}

/* Whether this line is one too many. *ret_former is what is to be summed up first. */
static bool muted(struct log *log, uint32_t level, struct str component, struct str message,
		  struct log_repeat *ret_former)
{
	uint64_t hash = hash_mix(hash_mix(hash_str(component), hash_str(message)), level);
	struct log_repeat *r = &log->repeats[hash % LOG_REPEATS];
	int64_t now = clock_mono();
	bool one_too_many;

	ret_former->n_muted = 0;
	pthread_mutex_lock(&log->lock);
	if (r->hash != hash || now - r->since_ns >= WINDOW_NS) {
		*ret_former = *r;
		*r = (struct log_repeat){.hash = hash, .since_ns = now};
		snprintf(r->component, sizeof(r->component), "%.*s", STR_FMT(component));
		snprintf(r->message, sizeof(r->message), "%.*s", STR_FMT(message));
	}
	one_too_many = r->n++ >= PER_WINDOW;
	r->n_muted += one_too_many;
	pthread_mutex_unlock(&log->lock);
	return one_too_many;
}

void log_write(struct log *log, uint32_t level, struct str component, struct str message,
	       const struct andiron_kv *kv, uint64_t n_kv)
{
	struct log_repeat former;
	bool mute;

	if (level > ANDIRON_LOG_DEBUG)
		level = ANDIRON_LOG_DEBUG;
	if (level > atomic_load(&log->level))
		return;
	message = str_first(message, LINE_BYTES / 8);
	mute = muted(log, level, component, message, &former);
	sum_up(log, &former);
	if (!mute)
		put_line(log, level, component, message, kv, n_kv);
}

void log_printf(struct log *log, uint32_t level, const char *component, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	log_write(log, level, str_of(component), str_of(text), NULL, 0);
}

void log_fini(struct log *log)
{
	for (size_t i = 0; i < LOG_REPEATS; i++)
		sum_up(log, &log->repeats[i]);
	buf_free(&log->line);
	pthread_mutex_destroy(&log->lock);
}
