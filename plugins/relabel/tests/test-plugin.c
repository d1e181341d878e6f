/* SPDX-License-Identifier: Apache-2.0 */
/* The component behind its verbs, on hosts that lack what the ABI lets them lack. */
#include "abi/target-list.h"
#include "testing/test.h"

#include <andiron/plugin.h>

#include <errno.h>
#include <stdlib.h>

static struct {
	unsigned int requested, errors, logged;
	uint64_t rows;
} seen;

static int32_t error_add(struct andiron_error *err, int32_t code, const char *text, uint64_t len)
{
	seen.errors++;
	return code;
}

static int32_t log_enabled(uint64_t instance, uint32_t level)
{
	return 1;
}

static void log_line(uint64_t instance, uint32_t level, const struct andiron_str *message,
		     const struct andiron_kv *kv, uint64_t n_kv)
{
	seen.logged++;
}

static int32_t send_targets(uint64_t instance, const char *export_name,
			    const struct andiron_targets *update)
{
	seen.rows += update->n_added;
	return 0;
}

static void health(uint64_t instance, uint32_t state, const struct andiron_str *message)
{
	expect_eq(state, ANDIRON_HEALTH_HEALTHY);
}

static void request_targets(uint64_t instance, const char *port)
{
	seen.requested++;
}

static const struct andiron_host whole = {
	.size = sizeof(whole),
	.error_add = error_add,
	.log_enabled = log_enabled,
	.log = log_line,
	.send_targets = send_targets,
	.health = health,
	.request_targets = request_targets,
};

static const struct andiron_value no_arguments = {.kind = ANDIRON_VALUE_MAP};

static void *start(const struct andiron_host *host)
{
	const struct andiron_component *c = andiron_plugin_v1.components[0];
	static const struct andiron_str strings[] = {{"", 0}, {"name", 4}, {"value", 5}};
	static const struct andiron_label label = {1, 2};
	static const struct andiron_target row = {.row = 1, .n_labels = 1};
	static const struct andiron_targets all = {.size = sizeof(all),
						   .flags = ANDIRON_TARGETS_SNAPSHOT,
						   .producer = 1,
						   .generation = 1,
						   .strings = strings,
						   .n_strings = 3,
						   .labels = &label,
						   .n_labels = 1,
						   .rows = &row,
						   .n_rows = 1,
						   .n_added = 1};
	void *self = NULL;

	memset(&seen, 0, sizeof(seen));
	expect_eq(c->create(host, 1, &no_arguments, &self, NULL), 0);
	expect_eq(c->start(self, NULL), 0);
	c->targets(self, "targets", &all);
	expect_eq(seen.rows, 1);
	return self;
}

static void end(void *self)
{
	const struct andiron_component *c = andiron_plugin_v1.components[0];

	c->stop(self);
	c->destroy(self);
}

/* New rules are for all targets, which it does not keep: it asks for them. */
TEST(a_change_asks_for_all_targets)
{
	const struct andiron_component *c = andiron_plugin_v1.components[0];
	void *self = start(&whole);

	expect_eq(c->update(self, &no_arguments, NULL), 0);
	expect_eq(seen.requested, 1);
	c->resend(self, "output");
	expect_eq(seen.requested, 2);
	expect_eq(seen.errors + seen.logged, 0);
	end(self);
}

/* A function that an older host's table ends before, or that is NULL, is never called: the change
 * is refused with a reason, and the old rules go on. */
TEST(a_host_that_sends_nothing_again_is_told)
{
	const struct andiron_component *c = andiron_plugin_v1.components[0];
	struct andiron_host hosts[2] = {whole, whole};

	hosts[0].request_targets = NULL;
	hosts[1].size = offsetof(struct andiron_host, request_targets);
	memset(&hosts[1].request_targets, 0x5a, sizeof(hosts[1].request_targets));
	for (int i = 0; i < 2; i++) {
		void *self = start(&hosts[i]);

		expect_eq(c->update(self, &no_arguments, NULL), -ENOTSUP);
		expect_eq(seen.errors, 1);
		c->resend(self, "output");
		expect_eq(seen.logged, 1);
		end(self);
	}
}
