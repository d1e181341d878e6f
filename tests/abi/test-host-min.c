/* SPDX-License-Identifier: Apache-2.0 */
/* The small host that is installed with the headers keeps what host.h promises a component. */
#include "testing/test.h"

#include <andiron/host-min-objects.h>
#include <andiron/host-min.h>

static int order[8], n_calls;

static void note(void *arg)
{
	order[n_calls++ % 8] = *(int *)arg;
}

static void note_ready(void *arg, int32_t fd, uint32_t events)
{
	char byte;

	expect(events & ANDIRON_WATCH_IN);
	expect_eq(read(fd, &byte, 1), 1);
	note(arg);
}

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret_self, struct andiron_error *err)
{
	*ret_self = order;
	return 0;
}

static int32_t start(void *self, struct andiron_error *err)
{
	return 0;
}

static void nothing(void *self)
{
}

static int32_t drain_never(void *self, int64_t deadline_ns)
{
	return 0;
}

static const struct andiron_component component = {
	.size = sizeof(component),
	.create = create,
	.start = start,
	.drain = drain_never,
	.stop = nothing,
	.destroy = nothing,
};

static void begin(struct andiron_min_loop *loop, struct andiron_min *part)
{
	expect_eq(andiron_min_open(loop), 0);
	expect_eq(andiron_min_create(part, loop, &component, NULL), 0);
	expect_eq(andiron_min_start(part), 0);
	n_calls = 0;
}

static uint64_t id_of(const struct andiron_min *part)
{
	return (uint64_t)(uintptr_t)part;
}

/* Causes stand outermost first, and a long one never leaves the struct. */
TEST(causes_of_an_error_are_chained)
{
	const struct andiron_host *host = andiron_min_host();
	struct andiron_error err = {.text = ""};
	char text[5000];

	memset(text, 'x', sizeof(text));
	expect_eq(host->error_add(NULL, -5, "a", 1), -5);
	expect_eq(host->error_add(&err, -5, "no disk", 7), -5);
	expect_eq(host->error_add(&err, -6, "no file", 7), -6);
	expect_str(str_of(err.text), "no file: no disk");
	for (int i = 0; i < 5; i++)
		host->error_add(&err, -7, text, sizeof(text));
	expect(strlen(err.text) < sizeof(err.text));
}

/* Work is not nested in the call that asks for it, and its end comes after it; calls keep their
 * order; after the end nothing is taken. */
TEST(calls_are_made_in_order_and_later)
{
	struct andiron_min_loop loop = {0};
	struct andiron_min part = {0};
	int one = 1, two = 2;

	begin(&loop, &part);
	expect_eq(part.host->work(id_of(&part), note, note, &one), 0);
	expect_eq(part.host->post(id_of(&part), note, &two), 0);
	expect_eq(n_calls, 0);
	andiron_min_end(&part);
	expect_eq(n_calls, 3);
	expect(order[0] == 1 && order[1] == 1 && order[2] == 2);
	expect_eq(part.host->post(id_of(&part), note, &two), -ESHUTDOWN);
	andiron_min_close(&loop);
}

/* A timer comes once or again and again, until it is cancelled; one that was forgotten costs no
 * descriptor. A descriptor is watched once. */
TEST(timers_and_descriptors_are_served)
{
	struct andiron_min_loop loop = {0};
	struct andiron_min part = {0};
	int once = 1, often = 2, byte = 3, fds[2];
	uint64_t timer, ticks, watch, other;

	begin(&loop, &part);
	expect_eq(pipe(fds), 0);
	expect_eq(part.host->timer_set(id_of(&part), 0, 0, note, &once, &timer), 0);
	while (n_calls == 0)
		expect(andiron_min_turn(&loop, -1) >= 0);
	part.host->timer_cancel(id_of(&part), timer); /* void already */
	expect_eq(part.host->timer_set(id_of(&part), 1, 1000, note, &often, &ticks), 0);
	while (n_calls < 3)
		expect(andiron_min_turn(&loop, -1) >= 0);
	part.host->timer_cancel(id_of(&part), ticks);
	expect_eq(andiron_min_turn(&loop, 0), 0);
	expect_eq(part.host->watch_add(id_of(&part), fds[0], ANDIRON_WATCH_IN, note_ready, &byte,
				       &watch),
		  0);
	expect_eq(part.host->watch_add(id_of(&part), fds[0], ANDIRON_WATCH_IN, note_ready, &byte,
				       &other),
		  -EEXIST);
	expect_eq(part.host->watch_add(id_of(&part), -1, ANDIRON_WATCH_IN, note_ready, &byte,
				       &other),
		  -EBADF);
	expect_eq(write(fds[1], "x", 1), 1);
	expect_eq(andiron_min_turn(&loop, -1), 1);
	expect(n_calls == 4 && order[0] == 1 && order[1] == 2 && order[2] == 2 && order[3] == 3);
	expect_eq(part.host->watch_modify(id_of(&part), watch, 0), 0);
	expect_eq(write(fds[1], "x", 1), 1);
	expect_eq(andiron_min_turn(&loop, 0), 0);
	part.host->watch_remove(id_of(&part), watch);
	expect_eq(part.host->timer_set(id_of(&part), INT64_C(1) << 60, 0, note, &once, &timer), 0);
	andiron_min_end(&part);
	andiron_min_close(&loop);
	close(fds[0]);
	close(fds[1]);
}

static int n_held, n_batches;

static void retain(void *owner)
{
	n_held++;
}

static void release(void *owner)
{
	n_held--;
}

static void count_batch(void *context, const struct andiron_batch *batch)
{
	n_batches++;
}

/* The queue is bounded: what does not fit is dropped and counted, and all is released. */
TEST(batches_beyond_the_queue_are_dropped)
{
	struct andiron_min_loop loop = {0};
	struct andiron_min part = {.on_batch = count_batch};
	const struct andiron_batch batch = {.size = sizeof(batch),
					    .bytes = ANDIRON_MIN_QUEUE_BYTES / 2,
					    .samples = 7,
					    .retain = retain,
					    .release = release};

	begin(&loop, &part);
	for (int i = 0; i < 5; i++)
		expect_eq(part.host->send_batch(id_of(&part), &batch), 0);
	expect_eq(n_held, 2);
	expect_eq(part.ledger[ANDIRON_LEDGER_DROPPED], 21);
	expect_eq(andiron_min_turn(&loop, -1), 1);
	expect_eq(andiron_min_turn(&loop, -1), 1);
	expect_eq(n_batches, 2);
	expect_eq(n_held, 0);
	expect_eq(part.host->send_batch(id_of(&part), &batch), 0);
	andiron_min_end(&part);
	expect_eq(n_batches, 3);
	expect_eq(n_held, 0);
	andiron_min_close(&loop);
}

static void end_on_batch(void *context, const struct andiron_batch *batch)
{
	n_batches++;
	andiron_min_end(context);
}

static void note_stop(void *self)
{
	static int stopped = 8;

	note(&stopped);
}

static void note_destroy(void *self)
{
	static int destroyed = 9;

	note(&destroyed);
}

/* Whoever takes batches may end the part that sent them: the calls behind it are made before the
 * part is destroyed, in their order, and the part ends once. */
TEST(a_part_is_ended_from_on_batch)
{
	struct andiron_min_loop loop = {0};
	struct andiron_min part = {.on_batch = end_on_batch, .context = &part};
	const struct andiron_batch batch = {
		.size = sizeof(batch), .bytes = 1, .retain = retain, .release = release};
	struct andiron_component noted = component;
	int one = 1, two = 2;

	noted.stop = note_stop;
	noted.destroy = note_destroy;
	n_held = n_batches = 0;
	begin(&loop, &part);
	part.component = &noted;
	expect_eq(part.host->send_batch(id_of(&part), &batch), 0);
	expect_eq(part.host->post(id_of(&part), note, &one), 0);
	expect_eq(part.host->send_batch(id_of(&part), &batch), 0);
	expect_eq(part.host->send_batch(id_of(&part), &batch), 0);
	expect_eq(part.host->post(id_of(&part), note, &two), 0);
	expect_eq(andiron_min_turn(&loop, -1), 1);
	expect(!part.self && n_held == 0 && n_batches == 3 && n_calls == 4);
	expect(order[0] == 8 && order[1] == 1 && order[2] == 2 && order[3] == 9);
	expect_eq(loop.queued_bytes, 0);
	andiron_min_end(&part);
	expect_eq(n_calls, 4);
	andiron_min_close(&loop);
}

static void drain_on_batch(void *context, const struct andiron_batch *batch)
{
	if (n_batches++ == 0)
		expect_eq(andiron_min_drain(context, INT64_C(60000000000)), 0);
}

/* After a drain no batch waits, also where it is the taker of a batch that drains. */
TEST(a_drain_brings_the_batches_that_wait)
{
	struct andiron_min_loop loop = {0};
	struct andiron_min part = {.on_batch = drain_on_batch, .context = &part};
	const struct andiron_batch batch = {
		.size = sizeof(batch), .bytes = 1, .retain = retain, .release = release};
	struct andiron_component plain = component;

	plain.drain = NULL;
	n_held = n_batches = 0;
	begin(&loop, &part);
	part.component = &plain;
	for (int i = 0; i < 3; i++)
		expect_eq(part.host->send_batch(id_of(&part), &batch), 0);
	expect_eq(andiron_min_turn(&loop, -1), 1);
	expect_eq(n_batches, 3);
	expect_eq(part.host->send_batch(id_of(&part), &batch), 0);
	expect_eq(andiron_min_drain(&part, INT64_C(60000000000)), 0);
	expect_eq(n_batches, 4);
	expect_eq(n_held, 0);
	andiron_min_end(&part);
	andiron_min_close(&loop);
}

static int32_t warn_twice(const struct andiron_host *host, const struct andiron_value *args,
			  struct andiron_report *report)
{
	host->report_add(report, ANDIRON_REPORT_WARNING, args, "a", 1);
	host->report_add(report, ANDIRON_REPORT_WARNING, args, "b", 1);
	return 0;
}

static void keep_line(void *context, uint32_t level, const struct andiron_min *part,
		      const struct andiron_str *text)
{
	char *lines = context;

	expect_eq(level, ANDIRON_LOG_WARN);
	snprintf(lines + strlen(lines), 64 - strlen(lines), "%.*s;", (int)text->len, text->ptr);
}

/* What `validate` warns of is logged, a line each. */
TEST(warnings_are_logged)
{
	char lines[64] = "";
	struct andiron_min_loop loop = {.log = keep_line, .context = lines};
	struct andiron_min part = {0};
	struct andiron_component careful = component;

	careful.validate = warn_twice;
	expect_eq(andiron_min_open(&loop), 0);
	expect_eq(andiron_min_create(&part, &loop, &careful, NULL), 0);
	expect_str(str_of(lines), "warning: a;warning: b;");
	andiron_min_end(&part);
	andiron_min_close(&loop);
}

/* A component that never says that it has drained is not waited for for ever. */
TEST(a_drain_has_an_end)
{
	struct andiron_min_loop loop = {0};
	struct andiron_min part = {0};

	begin(&loop, &part);
	expect_eq(andiron_min_drain(&part, -1000000000), -ETIMEDOUT);
	andiron_min_end(&part);
	andiron_min_close(&loop);
}

/* One file is one object as long as somebody holds it, with a descriptor that reads from its
 * beginning; the table is bounded, and gives its descriptors back. */
TEST(objects_are_interned)
{
	static struct andiron_min_objects all;
	const struct andiron_objects *o = andiron_min_objects_table();
	const struct andiron_str path = {"/x", 2}, none = {NULL, 0}, id = {"ab", 2};
	struct andiron_object_info info = {.size = sizeof(info)};
	FILE *file = tmpfile();
	int fd = file ? fileno(file) : -1, copy = -1;
	uint64_t first, again;
	char text[8] = "";

	expect_eq(write(fd, "hello", 5), 5);
	expect_eq(o->intern(&all, fd, &path, &none, &first), 0);
	expect_eq(o->intern(&all, fd, &path, &none, &again), 0);
	expect(first == again && first > ANDIRON_OBJECT_KERNEL);
	expect_eq(o->identify(&all, first, &id, &none, &none), 0);
	expect_eq(o->info(&all, first, &info), 0);
	expect_str(((struct str){info.gnu_build_id.ptr, info.gnu_build_id.len}), "ab");
	expect_eq(info.file_size, 5);
	expect_eq(o->find(&all, &info.key, &again), 0);
	expect_eq(o->open(&all, first, ANDIRON_OPEN_FILE, &copy), 0);
	expect_eq(read(copy, text, sizeof(text)), 5);
	close(copy);
	expect_eq(o->open(&all, first, ANDIRON_OPEN_DEBUG, &copy), -ENOENT);
	for (int i = 0; i < 3; i++)
		o->release(&all, first);
	expect_eq(o->info(&all, first, &info), -ENOENT);
	expect_eq(all.last_id, first);
	expect_eq(o->info(&all, ANDIRON_OBJECT_KERNEL, &info), 0);
	for (uint32_t i = 0; i < ANDIRON_MIN_OBJECTS; i++)
		all.all[i].id = UINT64_MAX - i;
	expect_eq(o->intern(&all, STDIN_FILENO, &path, &none, &first), -ENOMEM);
	fclose(file);
}
