/* SPDX-License-Identifier: Apache-2.0 */
/* See part.h. */
#include "cli/conformance/part.h"

#include "abi/batch-view.h"
#include "abi/target-list.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/vec.h"
#include "proc/privileges.h"

#include <ctype.h>
#include <sys/mman.h>

#define MAX_PARTS ((size_t)4096)
#define STOP_NS   (10 * INT64_C(1000000000))
#define SERVE_NS  (200 * NS_PER_MSEC)

/* --- Hosts --- */

static int32_t no_watch_add(uint64_t instance, int32_t fd, uint32_t events, andiron_watch_fn fn,
			    void *arg, uint64_t *ret_watch)
{
	return -ENOSYS;
}

static int32_t no_timer_set(uint64_t instance, int64_t after_ns, int64_t every_ns,
			    andiron_call_fn fn, void *arg, uint64_t *ret_timer)
{
	return -ENOSYS;
}

static int32_t no_post(uint64_t instance, andiron_call_fn fn, void *arg)
{
	return -ENOSYS;
}

static int32_t no_work(uint64_t instance, andiron_call_fn run, andiron_call_fn done, void *arg)
{
	return -ENOSYS;
}

static int32_t no_extension(uint64_t instance, const char *id, struct andiron_extension *ret)
{
	return -ENOENT;
}

/* A member that is behind all that this version knows ends the process if somebody calls it. */
static _Noreturn void unknown(void)
{
	abort();
}

static void count_drained(uint64_t instance)
{
	struct andiron_min *min = (struct andiron_min *)(uintptr_t)instance;

	((struct part *)min->context)->n_drained++;
	andiron_min_host()->drained(instance);
}

static const struct andiron_host *host_of(enum host_kind kind)
{
	static struct {
		struct andiron_host known;
		void (*unknown[8])(void);
	} newer;
	static struct andiron_host plain, refusing;

	plain = *andiron_min_host();
	plain.drained = count_drained;
	if (kind == HOST_REFUSING) {
		refusing = plain;
		refusing.watch_add = no_watch_add;
		refusing.timer_set = no_timer_set;
		refusing.post = no_post;
		refusing.work = no_work;
		refusing.extension = no_extension;
		return &refusing;
	}
	if (kind == HOST_PLAIN)
		return &plain;
	newer.known = plain;
	newer.known.size = sizeof(newer);
	newer.known.abi_minor = ANDIRON_ABI_MINOR + 1;
	for (size_t i = 0; i < sizeof(newer.unknown) / sizeof(newer.unknown[0]); i++)
		newer.unknown[i] = unknown;
	return &newer.known;
}

/* --- What it sends --- */

static int32_t offer_extension(void *context, const char *id, struct andiron_extension *ret)
{
	const struct part *p = context;

	if (strcmp(id, ANDIRON_OBJECTS_ID) != 0)
		return -ENOENT;
	ret->table = andiron_min_objects_table();
	ret->self = p->objects;
	return 0;
}

static void ignore_change(void *context, int change, struct target_row *row)
{
}

static struct str text_at(const struct andiron_targets *u, uint32_t i)
{
	return i < u->n_strings ? (struct str){u->strings[i].ptr, u->strings[i].len} : STR_NULL;
}

/* Labels as target.h wants them; that indices are within their tables is asked first. */
static bool are_labels_sorted(const struct andiron_targets *u)
{
	for (uint64_t i = 0; i < u->n_rows; i++)
		for (uint32_t n = 1; n < u->rows[i].n_labels; n++) {
			const struct andiron_label *l = &u->labels[u->rows[i].label_start + n];

			if (str_cmp(text_at(u, l[-1].name), text_at(u, l[0].name)) >= 0)
				return false;
		}
	return true;
}

static void take_targets(void *context, const char *export_name,
			 const struct andiron_targets *update)
{
	struct part *p = context;
	const struct andiron_component *c = p->min->component;
	bool is_known = false;
	int r;

	p->n_updates++;
	for (uint64_t i = 0; i < c->n_exports; i++)
		is_known |= c->exports[i].type == ANDIRON_EXPORT_TARGETS && export_name &&
			    strcmp(c->exports[i].name, export_name) == 0;
	if (!is_known && p->judges_output)
		trial_fail(p->t, "it sends targets under \"%s\", which is none of its exports",
			   export_name ? export_name : "");
	r = !p->targets ? -ENOMEM : target_table_apply(p->targets, update, ignore_change, NULL);
	if (!p->judges_output)
		return;
	if (r == -EINVAL || (r == 0 && !are_labels_sorted(update)))
		trial_fail(p->t,
			   "the targets that it sends break target.h (update %llu): labels are "
			   "sorted by name, names are unique, values are not empty, and every "
			   "index is within its table",
			   (unsigned long long)p->n_updates);
	if (r == -EAGAIN)
		trial_fail(p->t, "an update of its targets leaves a generation out (update %llu)",
			   (unsigned long long)p->n_updates);
}

static void take_batch(void *context, const struct andiron_batch *batch)
{
	struct part *p = context;
	struct batch_view view;
	uint64_t sum = 0;

	p->n_batches++;
	p->n_samples += batch->samples;
	if (!p->judges_output)
		return;
	if (batch_view_init(&view, batch) < 0) {
		trial_fail(p->t,
			   "a batch that it sends breaks batch.h: a column lies outside of its "
			   "segment, or is not aligned");
		return;
	}
	sum = batch_count(&view, ANDIRON_COL_ENCODED);
	for (uint64_t n = 0; n < batch_count(&view, ANDIRON_COL_ROW); n++)
		sum += batch_row(&view, (uint32_t)n).samples;
	if (sum != batch->samples)
		trial_fail(p->t,
			   "a batch that it sends says that it has %llu samples, and its rows "
			   "have %llu",
			   (unsigned long long)batch->samples, (unsigned long long)sum);
}

static bool is_metric_name(const char *name)
{
	if (!name || !(isalpha((unsigned char)*name) || *name == '_'))
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && *name != '_' && *name != ':')
			return false;
	return true;
}

static void take_metric(void *self, const struct andiron_metric *m)
{
	struct part *p = self;

	if (!is_metric_name(m->name))
		trial_fail(p->t, "the name of a metric is not Prometheus's: \"%s\"",
			   m->name ? m->name : "");
	else if (m->kind != ANDIRON_METRIC_COUNTER && m->kind != ANDIRON_METRIC_GAUGE)
		trial_fail(p->t, "its metric %s is neither counter nor gauge", m->name);
	else if (!m->help || !*m->help)
		trial_fail(p->t, "its metric %s has no help", m->name);
}

/* The sink is one of newer headers: what stands behind it is not touched. */
void part_metrics(struct part *p)
{
	struct {
		struct andiron_metric_sink known;
		uint64_t unknown[4];
	} sink = {.known = {.size = sizeof(sink), .self = p, .add = take_metric},
		  .unknown = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};

	trial_doing(p->t, "metrics");
	if (p->min->component->metrics)
		p->min->component->metrics(p->min->self, &sink.known);
}

/* --- Its life --- */

/* Not of the heap, whose size is measured. */
void part_renew(struct part *p)
{
	static struct andiron_min *all;
	static size_t n;

	if (!all)
		all = mmap(NULL, MAX_PARTS * sizeof(*all), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(all != MAP_FAILED);
	p->min = &all[n++ % MAX_PARTS];
	*p->min = (struct andiron_min){
		.on_targets = take_targets,
		.on_batch = take_batch,
		.extension = offer_extension,
		.context = p,
		.host = p->host,
		.loop = &p->loop,
		.component = p->t->component,
	};
}

bool part_open(struct part *p, struct trial *t, enum host_kind host)
{
	int r;

	*p = (struct part){.t = t};
	trial_doing(t, "make arguments (validate)");
	r = part_arguments_make(t, NULL, &p->arguments);
	if (r == 0 && !p->arguments.values) {
		trial_skip(t, "arguments, by --with (%s)", p->arguments.refusal);
		return false;
	}
	p->objects = calloc(1, sizeof(*p->objects));
	if (r == 0)
		r = p->objects ? andiron_min_open(&p->loop) : -ENOMEM;
	p->is_open = r == 0;
	p->host = host_of(host);
	if (r < 0)
		trial_skip(t, "memory and descriptors (%s)", strerror(-r));
	if (r == 0)
		part_renew(p);
	return !trial_is_over(t);
}

/* The first extension that it needs and this host has not; NULL. */
static const char *lacks(const struct part *p)
{
	for (const char *const *id = p->min->component->needs; id && *id; id++)
		if (p->min->host->extension == no_extension || strcmp(*id, ANDIRON_OBJECTS_ID) != 0)
			return *id;
	return NULL;
}

/* What it lacks is what the host lacks: that needs no words. */
static bool is_plain(const struct part *p, int32_t r)
{
	return r == -ENOMEM || (r == -ENOENT && lacks(p)) ||
	       (r == -ENOSYS && p->min->host->work == no_work);
}

/* Why it could not be made or started. */
static const char *reason(const struct part *p, int32_t r)
{
	if (*p->min->error.text)
		return p->min->error.text;
	return r == -ENOENT && lacks(p) ? lacks(p) : strerror(-r);
}

bool part_create(struct part *p, bool may_fail)
{
	int32_t r;

	trial_doing(p->t, "create");
	part_renew(p);
	p->started = false;
	target_table_free(p->targets);
	p->targets = target_table_new();
	r = p->min->component->create(p->min->host, (uint64_t)(uintptr_t)p->min,
				      p->arguments.values, &p->min->self, &p->min->error);
	if (r >= 0)
		return true;
	if (!*p->min->error.text && !is_plain(p, r))
		trial_fail(p->t, "`create` failed (%s) and did not say why", strerror(-r));
	else if (p->min->self)
		trial_fail(p->t, "`create` failed (%s) and has set *ret_self", strerror(-r));
	else if (!may_fail)
		trial_skip(p->t, "a host that has what `create` asks for: %s", reason(p, r));
	p->min->self = NULL;
	return false;
}

const char *part_capability(const struct part *p)
{
	uint64_t held = privileges_held();

	for (const char *const *c = p->min->component->capabilities; c && *c; c++) {
		int number = privilege_number(*c);

		if (number >= 0 && !(held & PRIVILEGE(number)))
			return *c;
	}
	return NULL;
}

bool part_start(struct part *p)
{
	int32_t r;

	trial_doing(p->t, "start");
	p->min->error.text[0] = '\0';
	r = p->min->component->start(p->min->self, &p->min->error);
	p->started = r >= 0;
	if (r < 0 && !*p->min->error.text && !is_plain(p, r))
		trial_fail(p->t, "`start` failed (%s) and did not say why", strerror(-r));
	return r >= 0;
}

/* What has a timer of some milliseconds is never quiet. */
void part_serve(struct part *p, int32_t quiet_ms)
{
	const int64_t end = andiron_min_now() + SERVE_NS + quiet_ms * NS_PER_MSEC;

	trial_doing(p->t, "its timers, watches and work");
	while (!trial_is_over(p->t) && andiron_min_turn(&p->loop, quiet_ms) > 0)
		if (andiron_min_now() >= end)
			break;
}

void part_stop(struct part *p)
{
	const int64_t end = andiron_min_now() + STOP_NS;
	const struct andiron_min_source *left;

	trial_doing(p->t, "stop");
	p->min->component->stop(p->min->self);
	left = p->loop.sources;
	if (left)
		trial_fail(p->t, "it has a %s after `stop` has returned",
			   left->is_timer ? "timer" : "watch");
	trial_doing(p->t, "its work after stop");
	while (p->min->pending && andiron_min_now() < end)
		andiron_min_turn(&p->loop, 100);
	if (p->min->pending)
		trial_fail(p->t, "it asks for calls again and again after `stop` has returned");
}

void part_destroy(struct part *p)
{
	trial_doing(p->t, "destroy");
	p->min->gone = 1;
	p->min->component->destroy(p->min->self);
	p->min->self = NULL;
	target_table_free(p->targets);
	p->targets = NULL;
}

void part_end(struct part *p)
{
	if (p->min && p->min->self) {
		part_stop(p);
		part_destroy(p);
	}
	if (p->is_open)
		andiron_min_close(&p->loop);
	part_arguments_fini(&p->arguments);
	target_table_free(p->targets);
	free(p->objects);
	*p = (struct part){.t = p->t};
}
