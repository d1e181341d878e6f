/* SPDX-License-Identifier: Apache-2.0 */
/* Counts are sums of what sessions say, by atomic additions: sessions are on workers, and metrics
 * are asked for on the loop. */
#include "runtime-kit/service.h"

#include <andiron/bpf/walk.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const runtime_service_needs[] = {ANDIRON_OBJECTS_ID, NULL};
const struct andiron_options runtime_service_options = {0, sizeof(struct andiron_option), NULL};

int32_t runtime_service_create(const struct andiron_host *host, uint64_t instance, const char *id,
			       const struct andiron_runtime *table, void **ret)
{
	struct runtime_service *s = calloc(1, sizeof(*s));
	int32_t r;

	if (!s)
		return -ENOMEM;
	s->id = id;
	s->table = *table;
	s->table.size = sizeof(s->table);
	s->table.walk_version = ANDIRON_WALK_VERSION;
	r = host->extension(instance, ANDIRON_OBJECTS_ID, &s->objects);
	if (r != 0)
		free(s);
	else
		*ret = s;
	return r;
}

int32_t runtime_service_start(void *self, struct andiron_error *err)
{
	return 0;
}

void runtime_service_stop(void *self)
{
}

void runtime_service_destroy(void *self)
{
	free(self);
}

const void *runtime_service_extension(void *self, const char *id)
{
	struct runtime_service *s = self;

	return strcmp(id, s->id) == 0 ? &s->table : NULL;
}

int32_t runtime_service_ask(const struct runtime_service *s, uint64_t object, int (*is)(int fd))
{
	const struct andiron_objects *objects = s->objects.table;
	int32_t fd, r = objects->open(s->objects.self, object, ANDIRON_OPEN_FILE, &fd);

	if (r != 0)
		return r;
	r = is(fd);
	close(fd);
	return r;
}

int runtime_map_of(const struct andiron_runtime_map *maps, uint64_t n, const char *name)
{
	for (uint64_t i = 0; i < n; i++)
		if (strcmp(maps[i].name, name) == 0)
			return maps[i].fd;
	return -1;
}

static void add(uint64_t *sum, uint64_t *said, uint64_t now)
{
	__atomic_fetch_add(sum, now - *said, __ATOMIC_RELAXED);
	*said = now;
}

void runtime_service_count(struct runtime_service *s, struct runtime_counts *said,
			   const struct runtime_counts *now)
{
	add(&s->counts.processes, &said->processes, now->processes);
	add(&s->counts.name_bytes, &said->name_bytes, now->name_bytes);
	add(&s->counts.names_evicted, &said->names_evicted, now->names_evicted);
	add(&s->counts.stuck_reads, &said->stuck_reads, now->stuck_reads);
}

void runtime_service_metrics(void *self, const struct andiron_metric_sink *sink)
{
	struct runtime_service *s = self;
	const char *name = s->table.program;
	struct andiron_kv label = {{"runtime", 7}, {name, strlen(name)}};
	const struct {
		const char *name, *help;
		uint32_t kind;
		const uint64_t *value;
	} rows[] = {
		{"andiron_runtime_processes", "Processes of a language runtime that are walked.",
		 ANDIRON_METRIC_GAUGE, &s->counts.processes},
		{"andiron_runtime_name_bytes", "Memory of names of a language runtime.",
		 ANDIRON_METRIC_GAUGE, &s->counts.name_bytes},
		{"andiron_runtime_names_evicted_total",
		 "Names of a language runtime that made room for others.", ANDIRON_METRIC_COUNTER,
		 &s->counts.names_evicted},
		{"andiron_runtime_stuck_reads",
		 "Reads of processes with a language runtime that do not end.",
		 ANDIRON_METRIC_GAUGE, &s->counts.stuck_reads},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		sink->add(sink->self,
			  &(struct andiron_metric){
				  .name = rows[i].name,
				  .help = rows[i].help,
				  .kind = rows[i].kind,
				  .n_labels = 1,
				  .labels = &label,
				  .value = (double)__atomic_load_n(rows[i].value, __ATOMIC_RELAXED),
			  });
}
