/* SPDX-License-Identifier: Apache-2.0 */
/* test.journal: a component that writes down what becomes of the targets it is given, one JSON
 * object per line: {"at": CLOCK_MONOTONIC ns, "row": "producer/ row", "labels": {…}}; labels is
 * null where a target is gone. So a test sees what any consumer sees, and when. */
#include "abi/log.h"
#include "abi/target-list.h"
#include "abi/value.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"

#include <andiron/plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct journal {
	struct abi_context context;
	struct target_table *table;
	struct buf text;
	int64_t at_ns;
	int fd;
};

static void destroy(void *self)
{
	struct journal *j = self;

	if (j->fd >= 0)
		close(j->fd);
	target_table_free(j->table);
	buf_free(&j->text);
	free(j);
}

static int32_t create(const struct andiron_host *host, uint64_t id,
		      const struct andiron_value *args, void **ret_self, struct andiron_error *err)
{
	struct journal *j = calloc(1, sizeof(*j));
	char *path = str_dup(value_str(args, "path", STR("")));

	if (!j || !path) {
		free(j);
		free(path);
		return -ENOMEM;
	}
	j->context = (struct abi_context){host, id};
	j->table = target_table_new();
	j->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	free(path);
	if (!j->table || j->fd < 0) {
		destroy(j);
		return -EIO;
	}
	*ret_self = j;
	return 0;
}

static int32_t start(void *self, struct andiron_error *err)
{
	return 0;
}

static void stop(void *self)
{
}

static void note(void *context, int change, struct target_row *row)
{
	struct journal *j = context;

	buf_printf(&j->text, "{\"at\":%lld,\"row\":\"%llu/%llu\",\"labels\":", (long long)j->at_ns,
		   (unsigned long long)row->producer, (unsigned long long)row->row);
	if (change == TARGET_REMOVED) {
		buf_printf(&j->text, "null}\n");
		return;
	}
	for (uint32_t i = 0; i < row->n_labels; i++) {
		buf_putc(&j->text, i ? ',' : '{');
		json_put_str(&j->text, row->labels[i].name);
		buf_putc(&j->text, ':');
		json_put_str(&j->text, row->labels[i].value);
	}
	buf_printf(&j->text, "%s}}\n", row->n_labels ? "" : "{");
}

static void targets(void *self, const char *port, const struct andiron_targets *update)
{
	struct journal *j = self;
	int r;

	buf_clear(&j->text);
	j->at_ns = clock_mono();
	r = target_table_apply(j->table, update, note, j);
	if (r == 0 && !j->text.failed)
		r = file_write_fd(j->fd, j->text.p, j->text.n);
	if (r < 0 && r != -EAGAIN)
		abi_health(&j->context, ANDIRON_HEALTH_UNHEALTHY, "cannot write targets down: %d",
			   r);
}

static const struct andiron_option options[] = {
	{.name = "targets",
	 .type = ANDIRON_TYPE_TARGETS,
	 .flags = ANDIRON_OPTION_REQUIRED,
	 .doc = "What to write down."},
	{.name = "path",
	 .type = ANDIRON_TYPE_STRING,
	 .flags = ANDIRON_OPTION_REQUIRED,
	 .doc = "The file to append to."},
};
static const struct andiron_options table = ANDIRON_OPTIONS(options);

static const struct andiron_component journal = {
	.size = sizeof(journal),
	.name = "test.journal",
	.summary = "Writes targets down, for tests.",
	.options = &table,
	.create = create,
	.start = start,
	.stop = stop,
	.destroy = destroy,
	.targets = targets,
};

ANDIRON_PLUGIN("journal", ANDIRON_VERSION, "Apache-2.0", &journal);
