/* SPDX-License-Identifier: Apache-2.0 */
/* Components and plans for the runtime's tests. Contracts in test-support.h. */
#include "host/tests/test-support.h"

#include <errno.h>

struct events test_events = {.lock = PTHREAD_MUTEX_INITIALIZER};

void test_event(const char *format, const char *name)
{
	struct events *e = &test_events;

	pthread_mutex_lock(&e->lock);
	/* The format is a literal of the tests with one %s. */
	for (const char *c = format; *c && e->n + 64 < sizeof(e->text); c++) {
		if (*c == '%')
			e->n += (size_t)snprintf(e->text + e->n, sizeof(e->text) - e->n, "%s",
						 name);
		else
			e->text[e->n++] = *c;
	}
	e->text[e->n] = '\0';
	pthread_mutex_unlock(&e->lock);
}

void test_before(const char *first, const char *second)
{
	const char *a = strstr(test_events.text, first), *b = strstr(test_events.text, second);

	if (!a || !b || a > b)
		test_fail(__FILE__, __LINE__, "%s is not before %s in %s", first, second,
			  test_events.text);
}

static struct probe *enter(void *self)
{
	struct probe *p = self;

	if (atomic_fetch_add(&p->inside, 1) != 0)
		test_fail(__FILE__, __LINE__, "%s was called while it is being called", p->name);
	return p;
}

static void leave(struct probe *p)
{
	atomic_fetch_sub(&p->inside, 1);
}

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret_self, struct andiron_error *err)
{
	struct probe *p = (struct probe *)(uintptr_t)args->integer;

	p->n_create++;
	if (p->fail_create)
		return host->error_add(err, p->fail_create, "no such thing", 13);
	p->host = host;
	p->instance = instance;
	if (!p->table)
		p->table = target_table_new();
	if (!p->table)
		return -ENOMEM;
	*ret_self = p;
	return 0;
}

static int32_t start(void *self, struct andiron_error *err)
{
	struct probe *p = enter(self);
	int32_t r = p->fail_start;

	if (p->block_start)
		sem_wait(p->block_start);
	if (r < 0)
		p->host->error_add(err, r, "the door is locked", 18);
	else if (p->on_start)
		p->on_start(p);
	test_event("+%", p->name);
	p->n_start++;
	leave(p);
	return r;
}

static int32_t update(void *self, const struct andiron_value *args, struct andiron_error *err)
{
	struct probe *p = enter(self);
	int32_t r = p->fail_update;

	p->n_update++;
	if (r < 0)
		p->host->error_add(err, r, "rate: too high", 14);
	leave(p);
	return r;
}

static int32_t drain(void *self, int64_t deadline_ns)
{
	struct probe *p = enter(self);

	test_event("d%", p->name);
	while (p->send_at_drain > 0) {
		p->send_at_drain--;
		test_take(p, 10, 0);
	}
	if (p->in_flight) {
		p->host->ledger_set(p->instance, ANDIRON_LEDGER_IN_FLIGHT, 0);
		p->host->ledger_add(p->instance, ANDIRON_LEDGER_DELIVERED, NULL, p->in_flight);
		p->in_flight = 0;
	}
	p->n_drain++;
	if (!p->never_drained)
		p->host->drained(p->instance);
	leave(p);
	return 0;
}

static void stop(void *self)
{
	struct probe *p = enter(self);

	test_event("-%", p->name);
	p->n_stop++;
	leave(p);
}

static void destroy(void *self)
{
	struct probe *p = enter(self);

	target_table_free(p->table);
	p->table = NULL;
	p->n_destroy++;
	leave(p);
}

static void no_change(void *context, int change, struct target_row *row)
{
}

static void targets(void *self, const char *port, const struct andiron_targets *update)
{
	struct probe *p = enter(self);

	expect_eq(target_table_apply(p->table, update, no_change, NULL), 0);
	p->n_targets++;
	leave(p);
}

static void deliver(struct probe *p, uint64_t samples)
{
	if (p->no_deliver) {
		p->in_flight += samples;
		p->host->ledger_set(p->instance, ANDIRON_LEDGER_IN_FLIGHT, p->in_flight);
		return;
	}
	p->host->ledger_add(p->instance, ANDIRON_LEDGER_DELIVERED, NULL, samples);
}

static void write_batch(void *self, const struct andiron_batch *batch)
{
	struct probe *p = enter(self);

	if (p->in_batch)
		sem_post(p->in_batch);
	if (p->block_batch)
		sem_wait(p->block_batch);
	deliver(p, batch->samples);
	p->samples += batch->samples;
	p->last_batch = batch;
	p->n_batch++;
	leave(p);
}

static void forward_batch(void *self, const struct andiron_batch *batch)
{
	struct probe *p = enter(self);

	if (p->in_batch)
		sem_post(p->in_batch);
	if (p->block_batch)
		sem_wait(p->block_batch);
	expect_eq(p->host->send_batch(p->instance, batch), 0);
	p->n_batch++;
	leave(p);
}

static void metrics(void *self, const struct andiron_metric_sink *sink)
{
	struct probe *p = enter(self);
	const struct andiron_kv kv = {{"color", 5}, {"a\"b\n", 4}};
	struct andiron_metric m = {"test_batches_total", "Batches.", ANDIRON_METRIC_COUNTER, 1, &kv,
				   (double)p->n_batch};

	sink->add(sink->self, &m);
	m.name = "not a name";
	sink->add(sink->self, &m);
	leave(p);
}

static const void *extension(void *self, const char *id)
{
	static const int the_table = 42;
	struct probe *p = enter(self);

	leave(p);
	return strcmp(id, TEST_SERVICE_ID) == 0 ? &the_table : NULL;
}

static const struct andiron_export exports[] = {{"targets", ANDIRON_EXPORT_TARGETS, 0, ""}};
static const char *const service_ids[] = {TEST_SERVICE_ID, NULL};

#define LIFE                                                                                       \
	.size = sizeof(struct andiron_component), .create = create, .start = start,                \
	.drain = drain, .stop = stop, .destroy = destroy, .metrics = metrics

const struct andiron_component test_producer = {LIFE, .name = "test.producer", .exports = exports,
						.n_exports = 1, .update = update};
const struct andiron_component test_forward = {LIFE, .name = "test.forward", .update = update,
					       .targets = targets, .batch = forward_batch};
const struct andiron_component test_writer = {LIFE,
					      .name = "test.writer",
					      .flags = ANDIRON_COMPONENT_WRITER,
					      .update = update,
					      .targets = targets,
					      .batch = write_batch};
const struct andiron_component test_replaced = {
	LIFE, .name = "test.replaced", .flags = ANDIRON_COMPONENT_WRITER, .batch = write_batch};
const struct andiron_component test_service = {LIFE, .name = "test.service",
					       .flags = ANDIRON_COMPONENT_SERVICE,
					       .offers = service_ids, .extension = extension};
const struct andiron_component test_user = {LIFE, .name = "test.user", .needs = service_ids};

void probe_fini(struct probe *p)
{
	target_table_free(p->table);
	p->table = NULL;
}

struct plan *test_plan(void)
{
	struct plan *plan = calloc(1, sizeof(*plan));

	expect(plan);
	return plan;
}

struct plan *test_try_plan(struct probe probes[2])
{
	static struct registered_component registered[2] = {{&test_producer, NULL},
							    {&test_writer, NULL}};
	static struct andiron_str key = {"k", 1};
	static struct andiron_value args[2] = {{.kind = ANDIRON_VALUE_MAP},
					       {.kind = ANDIRON_VALUE_MAP}};
	static struct andiron_value label = {.kind = ANDIRON_VALUE_STRING, .string = {"v", 1}};
	static struct andiron_value row = {
		.kind = ANDIRON_VALUE_MAP, .keys = &key, .items = &label, .n_items = 1};
	static struct andiron_value list = {
		.kind = ANDIRON_VALUE_LIST, .items = &row, .n_items = 1};
	static const char *const ids[2] = {"p", "w"};
	struct plan *plan = calloc(1, sizeof(*plan));
	bool ok = plan;

	for (int i = 0; ok && i < 2; i++) {
		probes[i].name = ids[i];
		args[i].integer = (int64_t)(uintptr_t)&probes[i];
		ok = vec_push(&plan->nodes, ((struct plan_node){.id = ids[i],
								.registered = &registered[i],
								.args = &args[i]}));
	}
	ok = ok &&
	     vec_push(&plan->edges, ((struct plan_edge){.from = 0, .to = 1, .kind = PLAN_BATCHES}));
	ok = ok && vec_push(&plan->edges, ((struct plan_edge){.from = 0,
							      .to = 1,
							      .kind = PLAN_TARGETS,
							      .export_name = "targets",
							      .port = "targets"}));
	ok = ok && vec_push(&plan->literals,
			    ((struct plan_literal){
				    .to = 1, .order = 1, .port = "targets", .targets = &list}));
	if (ok)
		return plan;
	plan_free(plan);
	return NULL;
}

uint32_t test_node(struct plan *plan, const char *id, const struct andiron_component *component,
		   struct probe *probe)
{
	struct registered_component *rc = arena_alloc(&plan->arena, sizeof(*rc));
	struct andiron_value *args = arena_alloc(&plan->arena, sizeof(*args));

	expect(rc && args);
	probe->name = id;
	rc->component = component;
	*args = (struct andiron_value){.kind = ANDIRON_VALUE_MAP,
				       .integer = (int64_t)(uintptr_t)probe};
	expect(vec_push(&plan->nodes,
			((struct plan_node){.id = id, .registered = rc, .args = args})));
	return (uint32_t)plan->nodes.n - 1;
}

void test_batches(struct plan *plan, uint32_t from, uint32_t to)
{
	expect(vec_push(&plan->edges,
			((struct plan_edge){.from = from, .to = to, .kind = PLAN_BATCHES})));
}

/* How many lists the node's port refers to by now. */
static uint32_t next_order(const struct plan *plan, uint32_t to)
{
	uint32_t n = 0;

	vec_each (&plan->edges, edge)
		n += edge->kind == PLAN_TARGETS && edge->to == to;
	vec_each (&plan->literals, literal)
		n += literal->to == to;
	return n;
}

void test_targets(struct plan *plan, uint32_t from, uint32_t to)
{
	uint32_t order = next_order(plan, to); /* before the list has an element more */

	expect(vec_push(&plan->edges, ((struct plan_edge){.from = from,
							  .to = to,
							  .kind = PLAN_TARGETS,
							  .order = order,
							  .export_name = "targets",
							  .port = "targets"})));
}

void test_literal(struct plan *plan, uint32_t to, const char *name, const char *value)
{
	struct andiron_value *v = arena_array(&plan->arena, struct andiron_value, 3);
	struct andiron_str *key = arena_alloc(&plan->arena, sizeof(*key));
	uint32_t order = next_order(plan, to);

	expect(v && key);
	*key = (struct andiron_str){name, strlen(name)};
	v[0] = (struct andiron_value){.kind = ANDIRON_VALUE_LIST, .items = &v[1], .n_items = 1};
	v[1] = (struct andiron_value){
		.kind = ANDIRON_VALUE_MAP, .keys = key, .items = &v[2], .n_items = 1};
	v[2] = (struct andiron_value){.kind = ANDIRON_VALUE_STRING,
				      .string = {value, strlen(value)}};
	expect(vec_push(&plan->literals,
			((struct plan_literal){
				.to = to, .order = order, .port = "targets", .targets = v})));
}

const struct andiron_batch *test_batch(uint64_t samples, uint64_t bytes)
{
	struct batch_builder *b = batch_builder_new();
	const struct andiron_batch *batch;
	struct andiron_profile_type type = {.period = 1};
	struct andiron_row row = {.value = 1, .samples = samples};
	struct batch_head head = {.end_ns = 1};

	row.type = batch_add_type(b, &type);
	batch_group_begin(b, NULL, 0);
	expect(batch_add_row(b, &row));
	expect_eq(batch_finish(b, &head, &batch), 0);
	expect_eq(batch->samples, samples);
	/* What it says it weighs is what queues go by. */
	if (bytes)
		((struct andiron_batch *)(uintptr_t)batch)->bytes = bytes;
	return batch;
}

void test_take(struct probe *p, uint64_t samples, uint64_t bytes)
{
	const struct andiron_batch *batch = test_batch(samples, bytes);

	p->host->ledger_add(p->instance, ANDIRON_LEDGER_TAKEN, NULL, samples);
	expect_eq(p->host->send_batch(p->instance, batch), 0);
	batch_release(batch);
}

struct instance *host_instance_of(const struct probe *p)
{
	struct instance *i = instance_get(p->instance);

	if (i)
		instance_unref(i);
	return i;
}

struct host *test_host(struct host_options options)
{
	struct host *host;
	struct error err = ERROR_NULL;

	if (!options.log_fd)
		options.log_fd = 2;
	if (host_new(&options, &host, &err) < 0)
		test_fail(__FILE__, __LINE__, "%s", err.text);
	return host;
}

void test_until(struct host *host, atomic_int *counter, int n)
{
	while (atomic_load(counter) < n)
		host_step(host);
}

void test_run(struct host *host, int r)
{
	struct error err = ERROR_NULL;
	const char *writer = "";
	int64_t gap = 0;
	int got = host_run(host, &err);

	if (got != r)
		test_fail(__FILE__, __LINE__, "host_run gave %d (%s), not %d", got, err.text, r);
	if (!ledger_balanced(&host->ledger, &writer, &gap))
		test_fail(__FILE__, __LINE__, "%s lacks %lld samples", writer, (long long)gap);
}

void test_stop_live(void *context, const char *failed)
{
	host_stop(*(struct host **)context);
}

const struct ledger_writer *test_writer_row(struct host *host, const char *name)
{
	const struct ledger_view *view = host_ledger(host);

	for (size_t i = 0; i < view->n_writers; i++)
		if (strcmp(view->writers[i].component, name) == 0)
			return &view->writers[i];
	test_fail(__FILE__, __LINE__, "the ledger has no row for %s", name);
}

uint64_t test_dropped(struct host *host, const char *writer, const char *key)
{
	const struct ledger_writer *w = test_writer_row(host, writer);

	for (size_t i = 0; i < w->n_reasons; i++) {
		char text[128];

		snprintf(text, sizeof(text), "%s:%s", w->reasons[i].component,
			 w->reasons[i].reason);
		if (strcmp(text, key) == 0)
			return w->reasons[i].samples;
	}
	return 0;
}
