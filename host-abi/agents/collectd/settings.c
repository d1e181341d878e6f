/* SPDX-License-Identifier: Apache-2.0 */
/* See settings.h. One table says what each option is, so that all are checked alike, and a misspelt
 * one is answered with the nearest. */
#include "agents/collectd/settings.h"

#include "base/str.h"

#include <andiron/host.h>
#include <collectd/liboconfig/oconfig.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

enum kind { TEXT, TEXTS, NUMBER, LEVEL };

struct option {
	const char *name;
	enum kind kind;
	size_t offset;
	uint32_t least, most;
};

#define AT(member) offsetof(struct settings, member)

static const struct option options[] = {
	{"Config", TEXT, AT(config), 0, 0},
	{"LogLevel", LEVEL, AT(log_level), 0, 0},
	{"MaxSeries", NUMBER, AT(max_series), 1, 100000},
	{"Metric", TEXTS, AT(metrics), 0, 0},
	{"PluginDir", TEXTS, AT(plugin_dirs), 0, 0},
	{"QueueMegabytes", NUMBER, AT(queue_megabytes), 1, 65536},
	{"StopSeconds", NUMBER, AT(stop_seconds), 0, 3600},
	{"TargetLabel", TEXTS, AT(target_labels), 0, 0},
	{"Worker", TEXT, AT(worker), 0, 0},
	{"Workers", NUMBER, AT(workers), 1, 16},
};
#define N_OPTIONS (sizeof(options) / sizeof(options[0]))

static const char *const levels[] = {"error", "warn", "info", "debug"};

void settings_init(struct settings *s)
{
	*s = (struct settings){
		.log_level = ANDIRON_LOG_INFO,
		.max_series = 1000,
		.stop_seconds = 5,
	};
}

static void free_texts(settings_texts *texts)
{
	vec_each (texts, text)
		free(*text);
	vec_free(texts);
}

void settings_free(struct settings *s)
{
	free(s->config);
	free(s->worker);
	free_texts(&s->plugin_dirs);
	free_texts(&s->target_labels);
	free_texts(&s->metrics);
	settings_init(s);
}

static void *member(struct settings *s, const struct option *o)
{
	return (char *)s + o->offset;
}

static int read_number(struct settings *s, const struct option *o, const oconfig_item_t *item,
		       struct error *err)
{
	uint32_t *number = member(s, o);
	double value = item->values_num == 1 && item->values[0].type == OCONFIG_TYPE_NUMBER
			       ? item->values[0].value.number
			       : -1;

	/* What is no number at all (nan) is not in the range either. */
	if (!(value >= o->least && value <= o->most) || value != (uint32_t)value)
		return error_set(err, -EINVAL, "%s takes a whole number from %u to %u", o->name,
				 o->least, o->most);
	*number = (uint32_t)value;
	return 0;
}

static bool is_text(const oconfig_item_t *item, int i)
{
	return item->values[i].type == OCONFIG_TYPE_STRING && item->values[i].value.string[0];
}

static int read_level(struct settings *s, const oconfig_item_t *item, struct error *err)
{
	for (uint32_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (item->values_num == 1 && is_text(item, 0) &&
		    strcasecmp(item->values[0].value.string, levels[i]) == 0) {
			s->log_level = i;
			return 0;
		}
	return error_set(err, -EINVAL,
			 "LogLevel is one of \"error\", \"warn\", \"info\", \"debug\"");
}

static int read_text(struct settings *s, const struct option *o, const oconfig_item_t *item,
		     struct error *err)
{
	char **text = member(s, o), *copy;

	if (item->values_num != 1 || !is_text(item, 0))
		return error_set(err, -EINVAL, "%s takes one text in quotes", o->name);
	copy = strdup(item->values[0].value.string);
	if (!copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

static int read_texts(struct settings *s, const struct option *o, const oconfig_item_t *item,
		      struct error *err)
{
	settings_texts *texts = member(s, o);

	for (int i = 0; i < item->values_num; i++) {
		char *copy = is_text(item, i) ? strdup(item->values[i].value.string) : NULL;

		if (!is_text(item, i))
			return error_set(err, -EINVAL, "%s takes texts in quotes", o->name);
		if (!copy || !vec_push(texts, copy)) {
			free(copy);
			return -ENOMEM;
		}
	}
	if (item->values_num == 0)
		return error_set(err, -EINVAL, "%s takes at least one text in quotes", o->name);
	return 0;
}

static int unknown(const char *key, struct error *err)
{
	const struct option *nearest = NULL;
	unsigned int best = 4;

	for (size_t i = 0; i < N_OPTIONS; i++) {
		unsigned int d = str_distance(str_of(key), str_of(options[i].name), best);

		if (d < best) {
			best = d;
			nearest = &options[i];
		}
	}
	return error_set(err, -EINVAL, "there is no option %s%s%s", key,
			 nearest ? "; did you mean " : "", nearest ? nearest->name : "");
}

static int read_item(struct settings *s, const oconfig_item_t *item, struct error *err)
{
	const struct option *o = NULL;

	for (size_t i = 0; i < N_OPTIONS && !o; i++)
		if (strcasecmp(item->key, options[i].name) == 0)
			o = &options[i];
	if (!o)
		return unknown(item->key, err);
	if (item->children_num > 0)
		return error_set(err, -EINVAL, "%s is no block", o->name);
	switch (o->kind) {
	case TEXT:
		return read_text(s, o, item, err);
	case TEXTS:
		return read_texts(s, o, item, err);
	case NUMBER:
		return read_number(s, o, item, err);
	case LEVEL:
		return read_level(s, item, err);
	}
	return -EINVAL;
}

int settings_read(struct settings *s, const struct oconfig_item_s *block, struct error *err)
{
	int r = 0;

	for (int i = 0; i < block->children_num && r == 0; i++)
		r = read_item(s, &block->children[i], err);
	return r;
}
