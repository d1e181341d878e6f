/* SPDX-License-Identifier: Apache-2.0 */
/* What a component is given: updates of targets as a newer producer sends them, whose structs are
 * longer, and a batch (part-batch.h). Their references are counted. */
#pragma once

#include "cli/conformance/part-batch.h"
#include "cli/conformance/part.h"

#define PART_UPDATES 4

struct part_update {
	struct andiron_targets known;
	uint64_t unknown[4];
	atomic_long n_held;
};

struct part_input {
	struct part_update updates[PART_UPDATES];
	struct part_batch batch;
};

/* Targets of this process: three rows; one goes and one changes; one comes again; all go. False
 * where memory is short, and the trial has its verdict. It lives as long as the process, and may be
 * given to one instance after another. */
bool part_input_make(struct part_input *ret, struct trial *t);

/* The nth of an endless sequence of updates: after the last comes the first. `ret` is given to an
 * instance once. */
void part_input_update(const struct part_input *input, uint64_t n, struct part_update *ret);

/* Calls `targets` where the component has it. Serves it until nothing has happened for so long, as
 * do those below. */
void part_give_update(struct part *p, struct part_update *u, int32_t quiet_ms);

/* The call alone, where the component has it. */
void part_call_targets(struct part *p, const struct part_update *u);
void part_call_batch(struct part *p, const struct part_input *input);

/* All updates, and a batch, to what takes such. */
void part_give_updates(struct part *p, struct part_input *input, int32_t quiet_ms);
void part_give_batch(struct part *p, const struct part_input *input, int32_t quiet_ms);
