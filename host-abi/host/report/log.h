/* SPDX-License-Identifier: Apache-2.0 */
/* The log: one line a message, as text
 *
 *     15:04:05.000 info  pyroscope.ebpf.node: programs loaded cpus=8
 *
 * or as logfmt, with Alloy's keys, so that what reads its log reads this
 *
 *     ts=2026-01-02T15:04:05.000Z level=info msg="programs loaded" component_id=… cpus=8
 *
 * or as one JSON object. Untrusted text is escaped, so a line is always one line. Of equal lines
 * (component, level and message; values may differ) ten a minute are written and the rest is
 * counted and summed up later. */
#pragma once

#include "base/buf.h"

#include <andiron/host.h>

#include <pthread.h>

#define LOG_REPEATS 64

struct log_repeat {
	uint64_t hash;
	int64_t since_ns;
	uint64_t n, n_muted;
	char component[64], message[128]; /* for the summary, cut off */
};

enum log_format {
	LOG_TEXT,
	LOG_LOGFMT,
	LOG_JSON,
};

/* The words for ANDIRON_LOG_* and for formats, by their values, and a NULL. */
extern const char *const log_levels[], *const log_formats[];

struct log {
	int fd;
	_Atomic uint32_t level, format; /* any thread reads them */
	/* In place of fd: see host.h, `log`. Set right after log_init. */
	void (*line_fn)(void *context, uint32_t level, const char *component, const char *line);
	void *context;
	pthread_mutex_t lock;
	struct buf line;
	struct log_repeat repeats[LOG_REPEATS];
};

void log_init(struct log *log, int fd, uint32_t level, enum log_format format);
/* From the next line on. [any] */
void log_change(struct log *log, uint32_t level, enum log_format format);
/* The value of a word of log_levels or log_formats, which it is. */
uint32_t log_value(const char *const *words, const char *word);

/* Writes what was summed up. */
void log_fini(struct log *log);

/* Writes a line; never fails. [any] */
void log_write(struct log *log, uint32_t level, struct str component, struct str message,
	       const struct andiron_kv *kv, uint64_t n_kv);
void log_printf(struct log *log, uint32_t level, const char *component, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
