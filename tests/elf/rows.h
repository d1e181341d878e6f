/* SPDX-License-Identifier: Apache-2.0 */
/* The two judges of rows, over one open file each. They print what differs and count it. */
#pragma once

#include "cfi/cfi.h"

#include <stdio.h>

struct verdict {
	uint64_t rows, functions, expressions;
	uint64_t differences; /* the first ones are printed */
	uint64_t inexpressible;
};

#define PRINT_MAX 5

/* Full rows against `readelf --debug-dump=frames-interp`, whose output is `in`. */
int judge_rows(struct elf_file *f, FILE *in, struct verdict *v);

/* Expressions and undefined registers against `readelf --debug-dump=frames`. */
int judge_operations(struct elf_file *f, FILE *in, struct verdict *v);

/* What elf_rows_read gives out against full rows, by carrying out both. */
int judge_words(struct elf_file *f, struct verdict *v);

/* What the finder says of single addresses against what is read. */
int judge_found(struct elf_file *f, struct verdict *v);

/* What is made of code alone, of code that is described: `expressions` counts rules that differ,
 * `inexpressible` instructions without one. `strict` as in rows-code.h. */
int judge_guesses(struct elf_file *f, bool strict, struct verdict *v);

/* Lengths of instructions against `objdump --disassemble --wide`. */
int judge_lengths(struct elf_file *f, FILE *in, struct verdict *v);

/* A difference to print; true as long as there are few. */
bool verdict_differs(struct verdict *v);

/* The name that readelf gives a register. */
const char *register_name(uint16_t machine, uint64_t n);

/* What both comparisons with readelf need: its output, function by function. */
struct listing {
	FILE *in;
	char *line;
	size_t capacity;
	bool any; /* `line` has not been used yet */
	char section[32];
};

/* The next line of the record at hand, or NULL. */
char *listing_content(struct listing *l);

/* A record that readelf lists, as we read it. */
struct record {
	uint16_t machine;
	const struct cfi_cie *cie;
	const struct cfi_fde *fde; /* NULL: the CIE itself */
};

/* Calls `judge` for each record of readelf's output `in`. 0 or a negative errno. */
int listing_judge(struct elf_file *f, FILE *in,
		  void (*judge)(void *context, struct verdict *v, struct listing *l,
				struct record *record),
		  void *context, struct verdict *v);
