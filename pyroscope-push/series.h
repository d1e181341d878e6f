/* SPDX-License-Identifier: Apache-2.0 */
/* From a batch to records: one per group and profile name, checked against servers' limits, and
 * split where it is too large; and one per profile that is encoded already (encoded.h). */
#pragma once

#include "abi/batch-view.h"
#include "pyroscope-push/labels.h"
#include "push-protocols/protocol.h"
#include "pyroscope-push/spool/record.h"

/* Times for profiles. A server keeps one profile of a series and a time, so each profile gets its
 * own. Times rise strictly over all series of a writer, which takes no memory of series, and over
 * its restarts, where a spool has the last one. The low bits are the process's own, since many
 * hosts may write one series. */
#define TIMES_STEP_NS 4096 /* a power of two: the bits below it are the process's */
/* A clock that was set back further is followed, with other low bits: servers take nothing from so
 * far ahead. */
#define TIMES_MAX_LEAD_NS (INT64_C(300) * 1000000000)

struct times {
	int64_t last;
	int64_t tag; /* 0 ≤ tag < TIMES_STEP_NS */
};

/* `seed` differs between processes. */
struct times times_init(uint64_t seed);
/* Continues after `last`, the last time of an earlier run. */
void times_resume(struct times *t, int64_t last);
/* The time for a profile whose window ended at end_ns: within TIMES_STEP_NS of it, unless an
 * earlier one has that. O(1). */
int64_t times_next(struct times *t, int64_t end_ns);

/* Why samples did not become part of a record. */
enum series_loss {
	SERIES_NEGATIVE,  /* a value below 0: servers drop it without a word */
	SERIES_ZERO,      /* a value of 0: nothing to store */
	SERIES_TOO_LARGE, /* a single stack beyond hard_raw */
	SERIES_NO_TYPE,   /* no name, or not of the name's period type */
	SERIES_NO_MEMORY,
	SERIES_MALFORMED, /* an encoded profile that cannot be read */
	SERIES_FORMAT,    /* one in a format that the server does not take */
	SERIES_N_LOSSES,
};

/* The loss as a word for the ledger. */
const char *series_loss_word(enum series_loss loss);
/* What a person may do about it, for the log; NULL: nothing. */
const char *series_loss_advice(enum series_loss loss);

/* What was brought into a form that servers take. */
struct series_repairs {
	struct label_repairs labels;
	uint64_t moved; /* profiles whose time servers would not take, given the present one */
	uint64_t split; /* profiles that became more than one */
};

struct series_encoder {
	const struct protocol *protocol;
	bool addresses; /* frames without a name stay addresses: EXPORT_ADDRESSES */
	struct label_rules rules;
	struct times *times;
	int64_t now_ns; /* CLOCK_REALTIME */
	/* Takes the record over. */
	void (*emit)(void *context, struct record *record);
	void *context;
	struct series_repairs *repairs; /* added to */
};

/* Encodes all rows and profiles. `ret_lost` has the samples that were not emitted, by reason:
 * emitted and lost together are the batch's samples. */
void series_encode(const struct series_encoder *e, const struct andiron_batch *batch,
		   uint64_t ret_lost[SERIES_N_LOSSES]);
