/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of otlp-request.h. Results are 0, -ENOMEM, -EBADMSG where the profile is at fault, or
 * -E2BIG where the request is, with a text. */
#pragma once

#include "pprof/encode.h"
#include "protobuf/wire.h"
#include "receive-http/otlp-request.h"

/* Fields of ProfilesDictionary: its tables. */
#define OTLP_MAPPING   1u
#define OTLP_LOCATION  2u
#define OTLP_FUNCTION  3u
#define OTLP_STRING    5u
#define OTLP_ATTRIBUTE 6u
#define OTLP_STACK     7u
#define OTLP_TABLES    8u

/* What the encoder of the profile `stamp` has of an entry. */
struct otlp_made {
	uint32_t stamp, id;
};

struct otlp_reading {
	struct push_request *out;
	struct otlp_rejected *rejected;
	struct error *err;
	VEC(struct str) tables[OTLP_TABLES];
	struct otlp_made *made[OTLP_FUNCTION + 1]; /* mappings, locations, functions */
	uint64_t entries_left;                     /* of all tables */
	uint64_t work_left;                        /* bytes of entries that may still be read */
	size_t raw_left;                           /* bytes of pprof, uncompressed */
	uint32_t n_profiles;                       /* that were looked at */
	/* Of the profile that is being made. */
	struct pprof_encoder *encoder;
	uint32_t stamp;
	VEC(uint32_t) frames;
};

/* A profile's own fields. */
struct otlp_shape {
	struct str type, unit, period_type, period_unit;
	int64_t period, time_ns, duration_ns;
	bool counted; /* samples of time, each of which is a period */
};

int otlp_field(struct otlp_reading *r, struct str *in, struct wire_field *ret);
/* A string of the dictionary, or nothing where there is none, or it would be too much. */
struct str otlp_text(struct otlp_reading *r, uint64_t at);

/* A packed Profile as pprof, in the request's arena; STR_NULL: it has no samples. */
int otlp_profile(struct otlp_reading *r, struct str in, struct otlp_shape *shape, struct str *ret);
