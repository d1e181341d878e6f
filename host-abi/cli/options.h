/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command-line options from tables, over getopt_long. The table is all there
 * is: parsing, `--help` and messages come from it, so help cannot list what
 * does not exist.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

/* Texts in the order in which they were given; borrowed from argv. */
struct texts {
	const char **p;
	size_t n;
	size_t capacity;
};

enum flag_kind {
	FLAG_BOOL,     /* bool: set to true */
	FLAG_TEXT,     /* const char *: the last one wins */
	FLAG_TEXTS,    /* struct texts: repeatable */
	FLAG_NUMBER,   /* uint64_t, from min to max */
	FLAG_DURATION, /* int64_t ns, from min to max */
	FLAG_NOTED,    /* struct texts: collects the names of what is accepted without meaning */
	FLAG_NOTED_BOOL,
};

/* `word` stands for the argument in help. `max` 0: no bound. */
struct flag {
	const char *name;
	char letter; /* 0: none */
	enum flag_kind kind;
	const char *word;
	const char *help; /* NULL: not in help */
	void *value;
	int64_t min, max;
};

struct command {
	const char *verb;
	const char *usage;        /* what follows "andiron VERB " */
	const char *summary;      /* one sentence or more */
	const char *examples;     /* lines, or NULL */
	const struct flag *flags; /* ends with a NULL name */
};

#define OPTIONS_DONE (-1)

/*
 * Reads options up to "--" or the first that is none (`mixed`: also behind
 * operands). Returns OPTIONS_DONE and the index of the first operand in
 * *ret_first; else the exit code, after --help or a message was printed.
 */
int options_parse(const struct command *command, int argc, char **argv, bool mixed, int *ret_first);

void options_help(const struct command *command);

/* Prints "andiron VERB: text" and how to get help; returns EXIT_USAGE. */
int options_wrong(const struct command *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The nearest of n words, or NULL if none is near. */
const char *options_nearest(const char *word, const char *const *words, size_t n);

#endif
