/* SPDX-License-Identifier: Apache-2.0 */
/* File reader: a thread that reads files' rows into pages, in the order of requests. It shares
 * nothing with the store: pages are private memory, with rules as words instead of numbers. So the
 * ring is read while a compiler's libraries are, which takes half a second.
 *
 * The queue holds FILE_READER_BYTES; then the thread waits. The thread starts with the first
 * request, and goes before others as the sampler's own does (proc/haste.h): each file is read once,
 * and until it is, stacks of it are cut off. All functions: one thread at a time. */
#pragma once

#include "ebpf/processes/mapped-file.h"

#include "base/error.h"
#include "bpfwire/unwind-tables.h"
#include "unwind/rows.h"

#define FILE_READER_BYTES (2u << 20)

/* Hands the rows of a mapped file to `fn`, as elf_rows_read does, whose options these are but for
 * `debug`; those of the vDSO where `mapped` is NULL. Called on the reader's thread. 0, also where
 * there are none; what `fn` returned; or a negative errno and the reason. */
typedef int (*unwind_read_fn)(void *context, const struct mapped_file *mapped,
			      const struct elf_rows_options *options, elf_row_fn fn,
			      void *fn_context, struct error *err);

/* What is asked for. The mapped file must outlive the request. */
struct file_request {
	void *owner; /* not used here */
	const struct mapped_file *mapped;
	bool aux; /* auxiliary words are requested, whether rules of the file need them or not */
	uint32_t mode; /* not used here */
};

/* A page of a file, or its end. */
struct file_reading {
	struct file_request request;
	bool ended;
	/* Of a page: */
	uint64_t base;   /* the file's address where page 0 begins */
	uint32_t number; /* ascending */
	uint8_t *bytes;  /* its list of rules has positions in `rules`, from 1 on; 0: no rule */
	size_t n;
	const struct unwind_entry *rules;
	size_t n_rules;
	/* Of the end: 0 or a negative errno, and what was read: */
	int result;
	uint64_t pages, rows, lost, ns;
	bool any_aux; /* some row has an auxiliary word */
};

struct file_reader;

/* NULL when memory or descriptors are short. */
struct file_reader *file_reader_new(unwind_read_fn read, void *context);
/* Waits for the file that is being read to come to an end, which is soon. */
void file_reader_free(struct file_reader *r);

/* 0, -ENOMEM, or -EAGAIN: there can be no thread. */
int file_reader_add(struct file_reader *r, const struct file_request *request);

/* Readable when something can be taken; level. */
int file_reader_fd(const struct file_reader *r);
/* Takes the next page or end; what `ret` points to holds until the next call. False: nothing is
 * there yet. O(1). */
bool file_reader_take(struct file_reader *r, struct file_reading *ret);
