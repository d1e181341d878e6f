/* SPDX-License-Identifier: Apache-2.0 */
/* Pyroscope's /ingest: the way for profiles in other formats than pprof (JFR, folded text), one in
 * a request, which says in its URL what it is. Source: pyroscope, pkg/ingester/pyroscope and its
 * page "Server API".
 *
 * Such a profile is kept as one message: a NUL byte, by which it is told from a RawProfileSeries,
 * that begins with a tag; the lengths of path and content type, 32 bits little-endian each; then
 * path, content type and body. */
#pragma once

#include "push-protocols/raw-series.h"

#include <stdint.h>

struct ingest {
	struct str name;         /* the application's */
	struct str query;        /* "format=jfr&sampleRate=100", as it stands in a URL */
	struct str content_type; /* empty: application/octet-stream */
	struct str body;
	int64_t start_ns, end_ns; /* CLOCK_REALTIME */
};

/* Appends the message, with the labels behind the name; those that begin with two underscores and
 * the service's name, which is the application's, are left out. Failure is left to the buffer's
 * `failed`. O(bytes). */
void ingest_put(struct buf *out, const struct ingest *i, const struct label *labels, size_t n);

bool ingest_is(struct str message);

/* What the message asks for, borrowed; the path begins with a slash. False if it is damaged. */
struct ingest_request {
	struct str path, content_type, body;
};
bool ingest_parse(struct str message, struct ingest_request *ret);
