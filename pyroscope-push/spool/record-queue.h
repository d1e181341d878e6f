/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of records of one endpoint. Entries move between queues without memory being asked for.
 */
#pragma once

#include "pyroscope-push/spool/record.h"

#include <stddef.h>

struct entry {
	struct entry *next;
	struct record *record;
	size_t cost;     /* what the endpoint's books hold for it */
	bool spooled;    /* likewise */
	bool noted;      /* the spool was told that it went out whole */
	bool unanswered; /* it did, and no answer came: it may be there */
};

struct fifo {
	struct entry *head, *last;
	size_t n;
};

static inline void fifo_push(struct fifo *f, struct entry *e)
{
	e->next = NULL;
	if (f->last)
		f->last->next = e;
	else
		f->head = e;
	f->last = e;
	f->n++;
}

static inline struct entry *fifo_pop(struct fifo *f)
{
	struct entry *e = f->head;

	if (!e)
		return NULL;
	f->head = e->next;
	if (!f->head)
		f->last = NULL;
	f->n--;
	return e;
}

/* All of `from` behind what is there; `from` is empty then. */
static inline void fifo_move(struct fifo *f, struct fifo *from)
{
	struct entry *e;

	while ((e = fifo_pop(from)))
		fifo_push(f, e);
}
