/* SPDX-License-Identifier: Apache-2.0 */
/* A protocol: how a series is encoded, how many make a request, and what answers mean. All else
 * (queue, spool, retries, counts) is the same for every writer. A protocol is a constant; its
 * functions keep no state and run on any thread. */
#pragma once

#include "push-protocols/answer.h"
#include "push-protocols/ingest.h"
#include "push-protocols/raw-series.h"

/* A hidden label (its name begins with "__") that is sent under another name. */
struct label_rename {
	const char *from, *to;
};

/* Of one profile: what is passed is split. */
struct series_limits {
	uint32_t max_samples;
	size_t max_raw;  /* uncompressed bytes at which a part is ended */
	size_t hard_raw; /* uncompressed bytes that no part may pass; what cannot be split is lost
			  */
};

struct protocol {
	const char *component; /* "pyroscope.write" */
	const char *path;      /* appended to an endpoint's URL */
	const struct http_header *headers;
	size_t n_headers;
	const char *wanted[HTTP_WANTED]; /* headers or trailers for `classify` */
	/* HTTP/2 without asking first, as gRPC wants it; a URL may lack its scheme. */
	bool http2;
	/* The server names addresses by build id: frames without a name are left to it, unless the
	 * configuration says otherwise. */
	bool addresses;
	/* Profiles for put_series have all ids of files, and threads (EXPORT_IDS). */
	bool ids;
	/* And it asks for the files that it does so by. */
	bool debuginfo;
	/* Whole profiles alone may be sent, with samples and a period type: the server ends at
	 * others, or they are taken apart for it. */
	bool whole;
	/* The server has /ingest, for what is not pprof. */
	bool ingest;
	/* Series say on which node they are, where their target does not. */
	bool node_label;
	const struct label_rename *renames;
	/* A server keeps the same bytes of the same time once: they may be sent again. Otherwise a
	 * request whose answer was lost is `uncertain`. */
	bool idempotent;
	struct series_limits limits;
	/* Of one request. */
	uint32_t max_series;
	size_t max_raw;
	/* Bytes a second and at once that the server takes, 0: any. */
	int64_t rate, burst;
	/* What the server takes, counted from its clock; 0: any. */
	int64_t max_age_ns, max_ahead_ns;

	/* Appends one finished series, the profile given as gzip'd pprof. */
	void (*put_series)(struct buf *out, const struct label *labels, size_t n_labels,
			   struct str pprof);
	/* Appends the body of a request with n finished series, at most max_series; without any it
	 * asks for nothing, by which a server shows that it answers. */
	void (*put_body)(struct buf *out, const struct str *series, size_t n);
	struct answer (*classify)(const struct http_response *response);
};

/* protocol_parca.put_body; `normalized`: addresses are their file's own. */
void parca_put_write(struct buf *out, const struct str *series, size_t n, bool normalized);

extern const struct protocol protocol_pyroscope;
extern const struct protocol protocol_parca;
extern const struct protocol protocol_otlp;
extern const struct protocol protocol_otlp_grpc;
