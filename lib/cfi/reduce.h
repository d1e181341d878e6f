/* SPDX-License-Identifier: Apache-2.0 */
/* A full row of call-frame information, made into the words by which walkers unwind
 * (bpf/include/bpfwire/unwind-tables.h). Pure; O(expression bytes). */
#pragma once

#include "cfi/cfi.h"

/* What a machine's registers are for. */
struct rows_machine {
	uint16_t machine; /* EM_* */
	uint8_t sp, fp, ra;
	bool link; /* the return address is in a register at entry */
	uint8_t n_preserved;
	uint8_t preserved[10]; /* besides the frame pointer; in the order of the auxiliary word */
	uint32_t preserved_bits;
};

/* NULL: not a machine that is walked. */
const struct rows_machine *rows_machine_of(uint16_t machine);

struct rows_words {
	uint64_t rule; /* 0 where the word cannot hold it */
	uint64_t aux;
	bool inexpressible;
};

/* Words that hold over a range. */
struct rows_piece {
	uint64_t start, end;
	struct rows_words words;
};

/* `aux`: whether the file's rules need auxiliary words. */
struct rows_words rows_reduce(const struct rows_machine *m, const struct cfi_row *row, bool aux);

bool rows_expression_needs_aux(const struct rows_machine *m, const struct cfi_row *row);

/* Whether its CFA is found by way of a preserved register. */
static inline bool rows_needs_aux(const struct rows_machine *m, const struct cfi_row *row)
{
	if (row->cfa.how == CFI_REGISTER)
		return row->cfa.value < 32 && m->preserved_bits >> row->cfa.value & 1;
	return rows_expression_needs_aux(m, row);
}

/* The bit of a register among those that a run is to watch. */
void rows_watch(const struct rows_machine *m, bool aux, struct cfi_run *run);
