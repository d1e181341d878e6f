/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs and their options, as constant tables over getopt_long. The table is all there is: parsing,
 * `--help`, messages, man pages and shell completions come from it, so none of them can list what
 * does not exist. A table says where a value goes by its place in the verb's own struct of values,
 * and the kind of a flag follows from the type found there. */
#pragma once

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXIT_OK     0
#define EXIT_FAILED 1   /* what was asked for could not be done */
#define EXIT_USAGE  2   /* the command line makes no sense */
#define EXIT_CANNOT 125 /* `record -- CMD`: our own failure, not the command's */

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
	FLAG_NOTED_BOOL, /* with =true or =false, or without; one that is false is not noted */
};

struct flag {
	const char *name;
	char letter; /* 0: none */
	enum flag_kind kind;
	size_t at;
	const char *word;           /* stands for the argument in help */
	const char *help;           /* NULL: not in help. At most a few lines; they are wrapped. */
	int64_t min, max;           /* max 0: no bound */
	const char *const *choices; /* FLAG_TEXT and _NOTED: one of these, up to NULL; NULL: any */
};

/* The initializers of `kind` and `at`: where in `type` the value goes. */
#define FLAG_INTO(type, member)                                                                    \
	_Generic(((type *)0)->member,                                                              \
		bool: FLAG_BOOL,                                                                   \
		const char *: FLAG_TEXT,                                                           \
		struct texts: FLAG_TEXTS,                                                          \
		uint64_t: FLAG_NUMBER,                                                             \
		int64_t: FLAG_DURATION),                                                           \
		offsetof(type, member)

/* One verb. Texts are plain sentences without line breaks; paragraphs end with "\n". */
struct command {
	const char *verb;
	int (*run)(int argc, char **argv); /* argv[0] is the verb; returns the exit code */
	const char *usage;                 /* what follows "andiron VERB " */
	const char *brief;                 /* half a line; NULL: not for people */
	const char *summary;
	const char *examples;     /* a command line each, ending with "\n"; or NULL */
	const struct flag *flags; /* ends with a NULL name; or NULL */
	bool mixed;               /* options may stand behind operands */
};

#define OPTIONS_DONE (-1)

/* Reads options up to "--", or up to the first operand unless the command is `mixed`, into
 * `values`, the struct that the table is about. Returns OPTIONS_DONE and the index of the first
 * operand in *ret_first; else the exit code, after --help, --version or a message was printed.
 * --help and --version win in every position before "--". */
int options_parse(const struct command *command, void *values, int argc, char **argv,
		  int *ret_first);

/* --help and --version, which every verb has. */
extern const struct flag options_common[];

void options_help(const struct command *command);
void options_version(void);

/* Prints "andiron VERB: text" and how to get help; returns EXIT_USAGE. */
int options_wrong(const struct command *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The nearest of n words, or NULL if none is near. */
const char *options_nearest(const char *word, const char *const *words, size_t n);
