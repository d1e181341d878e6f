/* SPDX-License-Identifier: Apache-2.0 */
/* From a batch to records: one per group and profile name, checked against what servers refuse,
 * split where it is too large. */
#pragma once

#include "abi/batch-view.h"
#include "pyroscope-push/labels.h"
#include "push-protocols/protocol.h"
#include "pyroscope-push/spool/record.h"
#include "pyroscope-push/timestamps.h"

/* Why samples did not become part of a record. */
enum series_loss {
	SERIES_NEGATIVE,  /* a value below 0: servers drop it without a word */
	SERIES_ZERO,      /* a value of 0: nothing to store */
	SERIES_TOO_LARGE, /* a single stack beyond hard_raw */
	SERIES_NO_TYPE,   /* no name, or not of the name's period type */
	SERIES_NO_MEMORY,
	SERIES_N_LOSSES,
};

/* The loss as a word for the ledger. */
const char *series_loss_word(enum series_loss loss);

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

/* Encodes all rows. What was not emitted stands in `ret_lost`, in samples by
 * reason: emitted and lost together are the batch's samples. */
void series_encode(const struct series_encoder *e, const struct andiron_batch *batch,
		   uint64_t ret_lost[SERIES_N_LOSSES]);
