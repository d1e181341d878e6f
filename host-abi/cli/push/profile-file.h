/* SPDX-License-Identifier: Apache-2.0 */
/* A pprof file on its way to a server: what the server would refuse, drop in silence or die of is
 * found here, and said with what to do about it. Sources of the limits: the defaults of pyroscope,
 * pkg/validation/limits.go; what ends Parca's process is in tests/servers/test_parca.py. */
#pragma once

#include "cli/options.h"

#include "base/buf.h"
#include "pprof/decode.h"
#include "push-protocols/raw-series.h"

enum push_kind { PUSH_PYROSCOPE, PUSH_PARCA };

struct push_file {
	struct profile *profile;
	struct buf packed; /* gzip, as it is sent */
	int64_t time_ns;   /* as the server will see it */
};

struct push_how {
	enum push_kind kind;
	bool now;   /* under the present time, whatever the file says */
	bool force; /* also what is beyond a server's default limits */
	int64_t present_ns;
};

/* Of bytes, gzip or plain. What has no time gets the present one. 0; -EINVAL, -ERANGE (a limit,
 * which `force` lifts), what profile_decode returns, or -ENOMEM without a text. push_file_fini in
 * any case. O(size). */
int push_file_make(struct push_file *f, struct str data, const struct push_how *how,
		   struct error *err);
void push_file_fini(struct push_file *f);

/* What servers call such a profile ("process_cpu", "memory"), by its types. Borrowed. */
struct str push_file_name(const struct profile *p);

/* The sum that a server must give back for a type: over all samples, and where Parca makes time of
 * counts, times the period. */
int64_t push_file_total(const struct push_file *f, size_t type, enum push_kind kind);

/* The name of a type in queries, "memory:inuse_space:bytes:space:bytes". */
void push_file_put_type(struct buf *out, const struct push_file *f, size_t type, struct str name,
			enum push_kind kind);

/* The labels of the series, sorted: those given as "k=v", service_name and __name__, which a given
 * one of that name wins over. `out` has texts->n + 2 entries; how many it is, -EINVAL with a text.
 */
int push_labels(const struct texts *texts, struct str service, struct str name, struct label *out,
		struct error *err);

/* {service_name="shop", …}: those that a selector can name, without __name__. */
void push_put_selector(struct buf *out, const struct label *labels, size_t n);
