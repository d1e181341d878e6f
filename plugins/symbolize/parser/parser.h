/* SPDX-License-Identifier: Apache-2.0 */
/* The parser reads untrusted files. It gets descriptors and addresses and answers in bytes, in a
 * sandboxed process or not. It keeps the tables of the objects used last.
 *
 * Needs DEMANGLE_STACK_BYTES of stack. Used by one thread at a time. */
#pragma once

#include "symbolize/parser/object-symbols.h"

#define PARSER_OBJECTS_MAX   64u
#define PARSER_ADDRESSES_MAX (1u << 20)
#define PARSER_FRAMES_MAX    128u /* of one address */
#define PARSER_SPLITS_MAX    32u  /* files of split units in one request */
#define PARSER_FDS_MAX       700u /* that are kept open, about */

/* What a request can ask for. */
#define PARSER_LINES   1u
#define PARSER_INLINES 2u
#define PARSER_REOPEN  4u /* forget what is known of the object: there are other files now */
#define PARSER_SYMBOLS 8u /* leave debug information alone: it has cost more than it may */

struct parser_request {
	uint64_t object;
	uint32_t flags;
	uint32_t demangle;             /* ANDIRON_DEMANGLE_* */
	uint64_t max_bytes;            /* of memory for all objects, about, */
	uint64_t file_bytes;           /* and for one of them */
	uint64_t steps;                /* for this request */
	int fds[TABLES_FILES];         /* taken over; -1: none */
	int splits[PARSER_SPLITS_MAX]; /* taken over; added to what is known of the object */
	size_t n_splits;
	const uint64_t *addresses; /* in rising order */
	size_t n;
};

/* A parser, in this process or another. `ask` appends an answer (answer.h) and returns 0; -EPIPE:
 * the parser died over the request; -ENOMEM or another errno. It closes the request's
 * descriptors. */
struct parser_port {
	int (*ask)(void *self, const struct parser_request *request, struct buf *answer);
	void *self;
};

struct parser_kept;

struct parser {
	VEC(struct parser_kept *) kept;
	uint64_t uses;
	struct buf readable, clean_name, clean_linked, clean_file, wanted;
	struct dwarf_frames frames;
};

#define PARSER_NULL ((struct parser){0})

/* Closes all descriptors of a request. */
void parser_request_close(const struct parser_request *request);

/* Appends the answer (answer.h). 0; -ENOMEM: nothing is answered. What is wrong with a file stands
 * in the answer. */
int parser_run(struct parser *p, const struct parser_request *request, struct buf *answer);
void parser_fini(struct parser *p);
