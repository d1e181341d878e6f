/* SPDX-License-Identifier: Apache-2.0 */
/* A chunk of Fluent Bit's on its way. Two have it: the flush that waits for an answer, and who
 * answers. The flush may leave first, and is then to come again with the same chunk: so nothing is
 * offered any more, and no copy of the chunk stays. */
#pragma once

#include "agents/fluent-bit/chunk.h"

struct job;

/* Copies the chunk; NULL when memory is short. */
struct job *job_new(const void *data, size_t n);

/* The flush leaves with the answer, or with -ETIMEDOUT. *ret_why has a text where profiles were
 * left out. */
int job_wait(struct job *j, int64_t patience_ns, struct error *ret_why);

/* Reads the chunk, unless the flush has left. [worker] */
void job_read(struct job *j, const struct chunk_head *head);

/* What is to be answered: 0, and in *ret a reference to what is to be offered before, or NULL;
 * -EBADMSG or -ENOMEM; -ECANCELED: the flush has left. After job_read. */
int job_ready(struct job *j, const struct andiron_batch **ret);

/* Who answers leaves. [any] */
void job_answer(struct job *j, int result);
