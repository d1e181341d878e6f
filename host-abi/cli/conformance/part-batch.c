/* SPDX-License-Identifier: Apache-2.0 */
/* See part-batch.h. */
#include "cli/conformance/part-batch.h"
#include "cli/conformance/check.h"

#include "abi/batch-build.h"
#include "base/clock.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void retain_batch(void *owner)
{
	((struct part_batch *)owner)->n_held++;
}

static void release_batch(void *owner)
{
	((struct part_batch *)owner)->n_held--;
}

static void add_stack(struct batch_builder *b, struct andiron_row *row)
{
	struct andiron_location location = {.kind = ANDIRON_FRAME_NATIVE, .address = 0x1000};
	struct andiron_function function = {0};
	struct andiron_line line = {.line = 12};
	uint32_t frames[2];

	function.name = batch_add_string(b, STR("work"));
	function.file = batch_add_string(b, STR("example.c"));
	line.function = batch_add_function(b, &function);
	frames[0] = batch_add_named(b, &location, &line, 1);
	location.address = 0x2000;
	function.name = batch_add_string(b, STR("main"));
	line.function = batch_add_function(b, &function);
	frames[1] = batch_add_named(b, &location, &line, 1);
	row->stack = batch_add_stack(b, frames, 2);
}

bool part_batch_make(struct part_batch *ret)
{
	struct batch_builder *b = batch_builder_new();
	struct andiron_profile_type type = {.period = 1000000000 / PART_SAMPLES};
	struct andiron_row row = {.value = 1000000000, .samples = PART_SAMPLES};
	const int64_t now = clock_real();
	const struct batch_head head = {
		.start_ns = now - 1000000000, .end_ns = now, .producer = 1, .sequence = 1};
	uint32_t label;

	if (!b)
		return false;
	add_stack(b, &row);
	type.name = batch_add_string(b, STR("process_cpu"));
	type.type = type.period_type = batch_add_string(b, STR("cpu"));
	type.unit = type.period_unit = batch_add_string(b, STR("nanoseconds"));
	row.type = batch_add_type(b, &type);
	label = batch_add_str_attribute(b, STR("service_name"), STR(PART_SERVICE));
	batch_group_begin(b, &label, 1);
	batch_add_row(b, &row);
	if (batch_finish(b, &head, &ret->real) < 0 ||
	    ret->real->n_columns >= sizeof(ret->columns) / sizeof(ret->columns[0]))
		return false;
	ret->known = *ret->real;
	ret->known.size = offsetof(struct part_batch, real);
	memset(ret->unknown, 0xff, sizeof(ret->unknown));
	memcpy(ret->columns, ret->real->columns, ret->real->n_columns * sizeof(ret->columns[0]));
	ret->columns[ret->known.n_columns] = ret->columns[0];
	ret->columns[ret->known.n_columns++].id = 9999;
	ret->known.columns = ret->columns;
	ret->known.owner = ret;
	ret->known.retain = retain_batch;
	ret->known.release = release_batch;
	return true;
}

/* --- In memory that cannot be written --- */

/* What the handler of SIGSEGV knows. One process makes one check. */
static struct {
	const char *base;
	size_t n;
	struct outcome_note *note;
} frozen;

static void on_fault(int number, siginfo_t *info, void *context)
{
	const char *at = info->si_addr;

	if (at >= frozen.base && at < frozen.base + frozen.n) {
		snprintf(frozen.note->text, sizeof(frozen.note->text),
			 "it has written into the batch that it was given, %zu bytes behind its "
			 "beginning",
			 (size_t)(at - frozen.base));
		frozen.note->outcome = OUTCOME_FAILED;
		_exit(0);
	}
	signal(SIGSEGV, SIG_DFL); /* and once more, to be the crash that it is */
}

/* A copy at the next multiple of 8. */
static void *put(char **at, const void *data, size_t n)
{
	char *to = *at;

	if (n)
		memcpy(to, data, n);
	*at += (n + 7) / 8 * 8;
	return to;
}

static size_t bytes_of(const struct andiron_batch *b)
{
	size_t n = b->size + b->n_columns * sizeof(*b->columns) +
		   b->n_segments * sizeof(*b->segments);

	for (uint32_t i = 0; i < b->n_segments; i++)
		n += b->segments[i].size + 8;
	return n;
}

const struct andiron_batch *part_batch_freeze(struct part_batch *b, struct trial *t)
{
	const struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	size_t n = bytes_of(&b->known);
	char *base = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at = base;
	struct andiron_segment *segments;
	struct andiron_batch *copy;

	if (base == MAP_FAILED)
		return NULL;
	copy = put(&at, &b->known, b->known.size);
	copy->columns = put(&at, b->known.columns, b->known.n_columns * sizeof(*b->known.columns));
	segments = put(&at, b->known.segments, b->known.n_segments * sizeof(*segments));
	for (uint32_t i = 0; i < b->known.n_segments; i++)
		segments[i].base = put(&at, segments[i].base, segments[i].size);
	copy->segments = segments;
	frozen.base = base;
	frozen.n = n;
	frozen.note = t->note;
	if (mprotect(base, n, PROT_READ) < 0 || sigaction(SIGSEGV, &action, NULL) < 0)
		return NULL;
	return copy;
}
