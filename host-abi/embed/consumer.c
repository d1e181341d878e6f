/* SPDX-License-Identifier: Apache-2.0 */
/* embed.profiles and embed.targets: the ends of paths at which the embedding process takes over.
 * Unlike all other components they are the library's own and know its host, since that is how one
 * finds the consumer that its user has registered.
 *
 * A profile is boxed with a count, so that a consumer may keep it: the box holds the batch, or the
 * bytes that were made of it. */
#include "abi/log.h"
#include "base/cleanup.h"
#include "embed/instance.h"
#include "export/pprof.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#define GZIP_LEVEL 1

DEFINE_CLEANUP(struct instance *, instance_unref);

struct end {
	struct abi_context context;
	const struct consumer *consumer;
	struct andiron *owner;
};

struct box {
	struct andiron_profile profile;
	atomic_uint refs;
	struct buf bytes;
};

static void box_retain(void *owner)
{
	struct box *box = owner;

	atomic_fetch_add(&box->refs, 1);
}

static void box_release(void *owner)
{
	struct box *box = owner;

	if (atomic_fetch_sub(&box->refs, 1) != 1)
		return;
	if (box->profile.batch)
		box->profile.batch->release(box->profile.batch->owner);
	buf_free(&box->bytes);
	free(box);
}

static struct box *box_new(const struct end *end, const struct andiron_batch *batch)
{
	struct box *box = calloc(1, sizeof(*box));

	if (!box)
		return NULL;
	box->refs = 1;
	box->profile = (struct andiron_profile){
		.size = sizeof(box->profile),
		.form = end->consumer->form,
		.name = end->consumer->name,
		.samples = batch->samples,
		.start_ns = batch->start_ns,
		.end_ns = batch->end_ns,
		.owner = box,
		.retain = box_retain,
		.release = box_release,
	};
	return box;
}

/* Hands it over and counts what came of it. Takes the box over; NULL: memory was short. */
static void hand_over(struct end *end, struct box *box, uint64_t samples)
{
	int32_t r = -ENOMEM;

	if (box && embed_callback_begin(end->owner)) {
		r = end->consumer->profiles(end->consumer->context, &box->profile);
		embed_callback_end(end->owner);
	}
	if (r >= 0)
		abi_ledger(&end->context, ANDIRON_LEDGER_DELIVERED, NULL, samples);
	else
		abi_ledger(&end->context, ANDIRON_LEDGER_DROPPED, box ? "refused" : "memory",
			   samples);
	if (box)
		box_release(box);
}

static void hand_batch(struct end *end, const struct andiron_batch *batch)
{
	struct box *box = box_new(end, batch);

	if (box) {
		batch->retain(batch->owner);
		box->profile.batch = batch;
	}
	hand_over(end, box, batch->samples);
}

static void hand_pprof(struct end *end, const struct batch_view *view, struct str type)
{
	struct pprof_export *x = pprof_export_new(type, EXPORT_SAMPLES | EXPORT_LABELS |
								EXPORT_LOSSES | EXPORT_WHOLE);
	struct box *box = x ? box_new(end, view->batch) : NULL;
	int r = box ? pprof_export_batch(x, view) : -ENOMEM;
	uint64_t samples = r == 0 ? pprof_export_weight(x)
				  : view->batch->samples - batch_count(view, ANDIRON_COL_ENCODED);

	if (r < 0 || pprof_export_finish(x, 0, GZIP_LEVEL, &box->bytes, NULL) < 0) {
		if (box)
			box_release(box);
		box = NULL;
	}
	if (box) {
		box->profile.bytes = box->bytes.p;
		box->profile.n_bytes = box->bytes.n;
		box->profile.samples = samples;
	}
	hand_over(end, box, samples);
	pprof_export_free(x);
}

static struct str type_name(const struct batch_view *view, uint32_t i)
{
	return batch_str(view, batch_type(view, i).name);
}

/* A pprof for each name among the types: one file has one. */
static void hand_each_type(struct end *end, const struct batch_view *view)
{
	uint32_t n = (uint32_t)batch_count(view, ANDIRON_COL_TYPE);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t first = 0;

		while (!str_eq(type_name(view, first), type_name(view, i)))
			first++;
		if (first == i)
			hand_pprof(end, view, type_name(view, i));
	}
}

/* A pprof as it came; whoever wants the rest takes batches. */
static void hand_encoded(struct end *end, const struct batch_view *view, uint32_t i)
{
	struct andiron_encoded e = batch_encoded(view, i);
	struct box *box;

	if (e.format != ANDIRON_ENCODED_PPROF) {
		abi_ledger(&end->context, ANDIRON_LEDGER_DROPPED, "no_format", 1);
		return;
	}
	box = box_new(end, view->batch);
	if (box && buf_str_append(&box->bytes, batch_encoded_bytes(view, &e)) < 0) {
		box_release(box);
		box = NULL;
	}
	if (box) {
		box->profile.bytes = box->bytes.p;
		box->profile.n_bytes = box->bytes.n;
		box->profile.samples = 1;
		box->profile.start_ns = e.start_ns ? e.start_ns : view->batch->start_ns;
		box->profile.end_ns = e.end_ns ? e.end_ns : view->batch->end_ns;
	}
	hand_over(end, box, 1);
}

/* What the sampler took, and what somebody else has encoded. */
static void hand_all(struct end *end, const struct batch_view *view)
{
	uint64_t n = batch_count(view, ANDIRON_COL_ENCODED);

	hand_each_type(end, view);
	for (uint32_t i = 0; i < n; i++)
		hand_encoded(end, view, i);
}

static void profiles_batch(void *self, const struct andiron_batch *batch)
{
	struct end *end = self;
	struct batch_view view;

	if (end->consumer->form == ANDIRON_FORM_BATCH)
		hand_batch(end, batch);
	else if (batch_view_init(&view, batch) == 0)
		hand_all(end, &view);
	else
		abi_ledger(&end->context, ANDIRON_LEDGER_DROPPED, "malformed", batch->samples);
}

static void targets_update(void *self, const char *port, const struct andiron_targets *update)
{
	struct end *end = self;

	end->consumer->targets(end->consumer->context, update);
}

/* An instance is called COMPONENT.LABEL. */
static const struct consumer *consumer_of(uint64_t instance, bool targets,
					  struct andiron **ret_owner)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);
	size_t n = i ? strlen(i->component->name) : 0;

	if (!i || strlen(i->name) <= n)
		return NULL;
	*ret_owner = i->host->options.context;
	return embed_consumer(*ret_owner, i->name + n + 1, targets);
}

static int32_t create(const struct andiron_host *host, uint64_t instance, bool targets,
		      void **ret_self, struct andiron_error *err)
{
	struct andiron *owner = NULL;
	const struct consumer *consumer = consumer_of(instance, targets, &owner);
	struct error why = ERROR_NULL;
	struct end *end;

	if (!consumer) {
		error_set(&why, -ENOENT,
			  "this program has registered nobody under this name: have it call %s "
			  "with it before it starts",
			  targets ? "andiron_on_targets" : "andiron_on_profiles");
		return abi_error(host, err, &why, -ENOENT);
	}
	end = calloc(1, sizeof(*end));
	if (!end)
		return -ENOMEM;
	*end = (struct end){{host, instance}, consumer, owner};
	*ret_self = end;
	return 0;
}

static int32_t profiles_create(const struct andiron_host *host, uint64_t instance,
			       const struct andiron_value *args, void **ret_self,
			       struct andiron_error *err)
{
	return create(host, instance, false, ret_self, err);
}

static int32_t targets_create(const struct andiron_host *host, uint64_t instance,
			      const struct andiron_value *args, void **ret_self,
			      struct andiron_error *err)
{
	return create(host, instance, true, ret_self, err);
}

static int32_t accept_update(void *self, const struct andiron_value *args,
			     struct andiron_error *err)
{
	return 0;
}

static int32_t start(void *self, struct andiron_error *err)
{
	return 0;
}

static void stop(void *self)
{
}

static void destroy(void *self)
{
	free(self);
}

static const struct andiron_option target_options[] = {
	{.name = "targets",
	 .type = ANDIRON_TYPE_TARGETS,
	 .flags = ANDIRON_OPTION_REQUIRED,
	 .doc = "The targets that the embedding process gets.",
	 .since = "0.1"},
};
static const struct andiron_options targets_options = ANDIRON_OPTIONS(target_options);
static const struct andiron_options no_options = {
	.stride = (uint32_t)sizeof(struct andiron_option),
};
static const struct andiron_export receiver[] = {
	{"receiver", ANDIRON_EXPORT_RECEIVER, 0, "Takes profiles for the embedding process."},
};

static const struct andiron_component profiles_component = {
	.size = sizeof(profiles_component),
	.flags = ANDIRON_COMPONENT_WRITER | ANDIRON_COMPONENT_WANTS_NAMES,
	.name = "embed.profiles",
	.summary = "Hands profiles to the process that andiron is embedded in.",
	.options = &no_options,
	.exports = receiver,
	.n_exports = 1,
	.create = profiles_create,
	.start = start,
	.update = accept_update,
	.stop = stop,
	.destroy = destroy,
	.batch = profiles_batch,
};

static const struct andiron_component targets_component = {
	.size = sizeof(targets_component),
	.name = "embed.targets",
	.summary = "Hands targets to the process that andiron is embedded in.",
	.options = &targets_options,
	.create = targets_create,
	.start = start,
	.update = accept_update,
	.stop = stop,
	.destroy = destroy,
	.targets = targets_update,
};

static const struct andiron_component *const components[] = {&profiles_component,
							     &targets_component};

const struct andiron_plugin embed_plugin = {
	.size = sizeof(embed_plugin),
	.abi_minor = ANDIRON_ABI_MINOR,
	.name = "embed",
	.version = ANDIRON_VERSION,
	.license = "Apache-2.0",
	.components = components,
	.n_components = 2,
};
