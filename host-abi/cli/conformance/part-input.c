/* SPDX-License-Identifier: Apache-2.0 */
/* See part-input.h. */
#include "cli/conformance/part-input.h"

#include "abi/target-list.h"
#include "host/registry/describe-check.h"

#include <unistd.h>

static void retain_update(void *owner)
{
	((struct part_update *)owner)->n_held++;
}

static void release_update(void *owner)
{
	((struct part_update *)owner)->n_held--;
}

static void change_list(struct target_list *list, int step)
{
	char pid[16];
	struct target_label labels[] = {{STR("__process_pid__"), STR_NULL},
					{STR("service_name"), STR(PART_SERVICE)},
					{STR("step"), STR("0")}};

	snprintf(pid, sizeof(pid), "%d", getpid());
	labels[0].value = str_of(pid);
	for (uint64_t row = 1; step == 0 && row <= 3; row++)
		target_list_set(list, row, row, labels, 3);
	labels[2].value = STR("1");
	if (step == 1) {
		target_list_remove(list, 2);
		target_list_set(list, 3, 3, labels, 2);
	}
	if (step == 2)
		target_list_set(list, 2, 1, labels, 3);
	if (step == 3)
		target_list_clear(list);
}

static void update_init(struct part_update *u, const struct andiron_targets *real)
{
	u->known = *real;
	u->n_held = 0;
	u->known.size = offsetof(struct part_update, n_held);
	memset(u->unknown, 0xff, sizeof(u->unknown));
	u->known.owner = u;
	u->known.retain = retain_update;
	u->known.release = release_update;
}

bool part_input_make(struct part_input *ret, struct trial *t)
{
	struct target_list *list = target_list_new(1);
	const struct andiron_targets *real = NULL;
	bool made = list && part_batch_make(&ret->batch);

	for (int i = 0; made && i < PART_UPDATES; i++) {
		change_list(list, i);
		made = target_list_flush(list, &real) == 0 && real;
		if (made)
			update_init(&ret->updates[i], real);
	}
	if (!made)
		trial_skip(t, "memory");
	target_list_free(list);
	return made;
}

void part_input_update(const struct part_input *input, uint64_t n, struct part_update *ret)
{
	update_init(ret, &input->updates[n % PART_UPDATES].known);
	ret->known.generation = n + 1;
}

static const char *port_of(const struct andiron_component *c)
{
	const struct andiron_option *o;

	for (uint32_t i = 0; (o = option_at(c->options, i)); i++)
		if (o->type == ANDIRON_TYPE_TARGETS)
			return o->name;
	return "targets";
}

void part_call_targets(struct part *p, const struct part_update *u)
{
	const struct andiron_component *c = p->min->component;

	if (c->targets)
		c->targets(p->min->self, port_of(c), &u->known);
}

void part_call_batch(struct part *p, const struct part_input *input)
{
	if (p->min->component->batch)
		p->min->component->batch(p->min->self, &input->batch.known);
}

void part_give_update(struct part *p, struct part_update *u, int32_t quiet_ms)
{
	if (!p->min->component->targets || trial_is_over(p->t))
		return;
	trial_doing(p->t, "targets");
	part_call_targets(p, u);
	part_serve(p, quiet_ms);
}

void part_give_updates(struct part *p, struct part_input *input, int32_t quiet_ms)
{
	for (int i = 0; i < PART_UPDATES; i++)
		part_give_update(p, &input->updates[i], quiet_ms);
}

void part_give_batch(struct part *p, const struct part_input *input, int32_t quiet_ms)
{
	if (!p->min->component->batch || trial_is_over(p->t))
		return;
	trial_doing(p->t, "batch");
	part_call_batch(p, input);
	part_serve(p, quiet_ms);
}
