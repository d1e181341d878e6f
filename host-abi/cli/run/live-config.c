/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in live-config.h. What was refused is kept to be compared with: files that are touched,
 * or written with the same text, are not tried and refused again. */
#include "cli/run/live-config.h"

#include "base/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void live_config_fini(struct live_config *live)
{
	config_free(live->config);
	config_free(live->pending);
	config_free(live->refused);
	buf_free(&live->unread);
	buf_free(&live->said);
	buf_free(&live->warned);
}

static int read_files(const struct live_config *live, struct config **ret, struct error *err)
{
	struct config *config = config_new();
	int r = config ? 0 : error_set(err, -ENOMEM, "out of memory");

	for (size_t i = 0; i < live->n_paths && r == 0; i++)
		r = config_add_path(config, live->paths[i], err);
	for (size_t i = 0; i < live->n_more && r == 0; i++)
		if (live->more[i].text.n > 0 &&
		    config_add_text(config, live->more[i].name, live->more[i].text) < 0)
			r = error_set(err, -ENOMEM, "out of memory");
	if (r < 0)
		config_free(config);
	else
		*ret = config;
	return r;
}

/* How the log is to be written: the command line decides, then the files. */
struct manner {
	uint32_t level;
	enum log_format format;
};

static struct manner manner_of(const struct live_config *live, const struct plan *plan)
{
	const char *level = live->log_level ? live->log_level : plan->log_level;
	const char *format = live->log_format ? live->log_format : plan->log_format;

	return (struct manner){
		.level = level ? log_value(log_levels, level) : ANDIRON_LOG_INFO,
		.format = format ? log_value(log_formats, format) : LOG_TEXT,
	};
}

static void follow_files(const struct live_config *live, const struct plan *plan)
{
	struct error err = ERROR_NULL;

	if (followed_files_set(live->files, plan, &err) < 0)
		log_printf(live->log, ANDIRON_LOG_WARN, RUN_LOG_NAME,
			   "changes of files that the configuration reads are not followed: %s",
			   err.text);
}

static void say_what_waits(const struct live_config *live, const struct plan *plan)
{
	if (plan->waiting.n)
		log_printf(live->log, ANDIRON_LOG_INFO, RUN_LOG_NAME,
			   "components that wait for a value: %zu, the first of them %s for one of "
			   "%s",
			   plan->waiting.n, plan->waiting.p[0].id, plan->waiting.p[0].waits_for);
}

struct found {
	char *text;
	size_t n;
};

/* `found` is the text of its findings, to be freed, whatever the result. */
static int plan_with_findings(struct config *config, struct registry *registry, struct found *found,
			      struct plan **ret)
{
	FILE *out = open_memstream(&found->text, &found->n);
	int r;

	if (!out)
		return -ENOMEM;
	r = config_plan(config, registry, false, out, ret);
	fclose(out);
	return r;
}

/* Whether the same was found in the plan before; remembers it for the next. */
static bool is_warned(struct live_config *live, struct str found)
{
	bool same = str_eq(buf_str(&live->warned), found);

	if (!same) {
		buf_clear(&live->warned);
		buf_str_append(&live->warned, found);
	}
	return same;
}

int live_config_begin(struct live_config *live, struct plan **ret)
{
	struct error err = ERROR_NULL;
	struct found found = {0};
	int r = read_files(live, &live->config, &err);

	if (r < 0) {
		fprintf(stderr, "andiron run: %s\n", err.text);
		return r;
	}
	r = plan_with_findings(live->config, *live->registry, &found, ret);
	if (found.n)
		fwrite(found.text, 1, found.n, stderr);
	if (r == 0) {
		struct manner manner = manner_of(live, *ret);

		is_warned(live, (struct str){found.text, found.n});
		log_change(live->log, manner.level, manner.format);
		follow_files(live, *ret);
		say_what_waits(live, *ret);
	}
	free(found.text);
	return r;
}

bool live_config_readable(const struct live_config *live)
{
	struct config *config = NULL;
	struct error err = ERROR_NULL;
	bool readable = read_files(live, &config, &err) == 0 &&
			followed_files_readable(live->files);

	config_free(config);
	return readable;
}

/* The line of the first error, for whoever does not see the log. */
static void keep_finding(struct live_config *live, struct str text)
{
	const struct str mark = STR(": error: ");

	while (text.n && !live->finding[0]) {
		struct str line = str_cut(&text, '\n');

		if (memmem(line.p, line.n, mark.p, mark.n))
			snprintf(live->finding, sizeof(live->finding), "%.*s", STR_FMT(line));
	}
}

/* Values come often, and each may be refused for the same. */
static bool is_said(struct live_config *live, struct str why)
{
	live->said_again = live->refreshing && why.n && str_eq(buf_str(&live->said), why);
	if (live->refreshing && !live->said_again) {
		buf_clear(&live->said);
		buf_str_append(&live->said, why);
	}
	return live->said_again;
}

/* Findings as people read them, or as one line of a log that machines read. */
static void say_findings(const struct live_config *live, bool refused, struct str found)
{
	if (live->log->format == LOG_TEXT)
		fwrite(found.p, 1, found.n, stderr);
	else
		log_write(live->log, refused ? ANDIRON_LOG_ERROR : ANDIRON_LOG_WARN,
			  STR(RUN_LOG_NAME), found, NULL, 0);
}

static int make_plan(struct live_config *live, struct config *config, struct registry *registry,
		     struct plan **ret)
{
	struct found found = {0};
	int r = plan_with_findings(config, registry, &found, ret);
	struct str text = {found.text, found.n};
	bool known = r < 0 ? is_said(live, text) : is_warned(live, text);

	live->finding[0] = 0;
	if (text.n && !known)
		say_findings(live, r < 0, text);
	if (r < 0 && !known)
		keep_finding(live, text);
	free(found.text);
	return r;
}

/* A plan keeps its texts until it is replaced, so another one needs its own. */
static struct config *copy_of(const struct config *config)
{
	struct config *copy = config_new();

	for (size_t i = 0; copy && i < config->sources.n; i++) {
		const struct source *s = config->sources.p[i];

		if (config_add_text(copy, s->name, s->text) == 0)
			continue;
		config_free(copy);
		copy = NULL;
	}
	return copy;
}

static void become(struct live_config *live, struct config *config, struct config *pending)
{
	config_free(live->config);
	config_free(live->pending);
	live->config = config;
	live->pending = pending;
}

/* What runs goes on, with those beside it that supply values to the next plan. */
static int go_on_beside(struct live_config *live, struct config *pending, struct plan *next,
			struct registry *registry, struct host *host, struct error *err)
{
	struct config *copy = copy_of(live->config);
	struct plan *plan = NULL;
	int r = -ENOMEM;

	if (copy) {
		copy->supplied = host_supplied(host);
		r = config_plan(copy, registry, true, stderr, &plan);
	}
	if (r < 0)
		plan_free(next);
	else
		r = plan_add_suppliers(plan, next);
	if (r == 0) /* values may have changed what the former one needs */
		r = kept_check(live->kept, plan, err);
	if (r < 0)
		plan_free(plan);
	else
		r = host_reload(host, plan, err);
	if (r < 0) {
		config_free(copy);
		return err->code ? r : error_set(err, r, "what runs cannot be planned again");
	}
	follow_files(live, plan);
	become(live, copy, pending);
	return 0;
}

static int change_to(struct live_config *live, struct config *config, struct plan *plan,
		     struct host *host, struct error *err)
{
	struct manner manner = manner_of(live, plan);
	int r = host_reload(host, plan, err);

	if (r < 0)
		return r;
	follow_files(live, plan);
	say_what_waits(live, plan);
	log_change(live->log, manner.level, manner.format);
	host_log_change(host, manner.level, manner.format);
	become(live, config, NULL);
	return 0;
}

/* Takes the configuration over, to run or as the pending one; not on failure. */
static int change_graph(struct live_config *live, struct config *config, struct registry *registry,
			struct host *host, struct error *err)
{
	const struct plan_waiting *lost;
	struct plan *plan = NULL;
	int r;

	config->supplied = host_supplied(host);
	r = make_plan(live, config, registry, &plan);
	if (r < 0)
		return r;
	r = kept_check(live->kept, plan, err);
	if (r < 0) {
		plan_free(plan);
		return r;
	}
	lost = host_would_lose(host, plan);
	if (!lost)
		return change_to(live, config, plan, host, err);
	log_printf(live->log, ANDIRON_LOG_WARN, RUN_LOG_NAME,
		   "%s waits for a value of %s: the old configuration goes on until it is there",
		   lost->id, lost->waits_for);
	return go_on_beside(live, config, plan, registry, host, err);
}

/* With the plugins' files as they are now. */
static int change_all(struct live_config *live, struct config *config, struct host *host,
		      struct error *err)
{
	struct registry *registry = NULL;
	int r = registry_renew(*live->registry, &registry, err);

	if (r < 0)
		return r;
	r = change_graph(live, config, registry, host, err);
	if (r == 0) { /* the plan that pointed into the old one is gone */
		registry_free(*live->registry);
		*live->registry = registry;
	} else {
		registry_free(registry);
	}
	return r;
}

/* Findings about a configuration have been said already; any other cause is in `err`. */
static int note(const struct live_config *live, struct host *host, int r, struct error *err)
{
	host_note_configuration(host, r == 0);
	if (r == 0) {
		log_printf(live->log, ANDIRON_LOG_INFO, RUN_LOG_NAME, "reloaded");
		return 0;
	}
	if (err->code)
		log_printf(live->log, ANDIRON_LOG_ERROR, RUN_LOG_NAME, "%s", err->text);
	else
		error_set(err, r, "%s; the log says more",
			  live->finding[0] ? live->finding : "it has errors");
	log_printf(live->log, ANDIRON_LOG_ERROR, RUN_LOG_NAME,
		   "not reloaded, the old configuration goes on");
	return r;
}

/* Takes the configuration over. */
static int try(struct live_config *live, struct host *host, struct config *config, bool always,
	       struct error *err)
{
	int r = always ? change_all(live, config, host, err)
		       : change_graph(live, config, *live->registry, host, err);

	config_free(live->refused);
	live->refused = NULL;
	if (r == -EBUSY || r == -ETIMEDOUT) {
		config_free(config); /* so that it is tried again */
	} else if (r < 0) {
		live->refused = config;
	} else if (live->pending) {
		return -EINPROGRESS; /* neither taken nor refused */
	}
	return note(live, host, r, err);
}

static const struct config *tried_last(const struct live_config *live)
{
	if (live->refused)
		return live->refused;
	return live->pending ? live->pending : live->config;
}

static int take(struct live_config *live, struct host *host, bool always, struct error *err)
{
	struct config *config;
	int r;

	check(live->config);
	r = read_files(live, &config, err);
	if (r < 0) {
		if (!always && str_is(buf_str(&live->unread), err->text))
			return 0;
		buf_clear(&live->unread);
		buf_str_append(&live->unread, str_of(err->text));
		return note(live, host, r, err);
	}
	if (!always && live->unread.n == 0 && config_same(config, tried_last(live))) {
		config_free(config);
		return 0;
	}
	buf_clear(&live->unread);
	return try(live, host, config, always, err);
}

int live_config_reload(struct live_config *live, struct host *host, struct error *err)
{
	int r = take(live, host, true, err);

	host_note_waiting(host, live->pending);
	return r;
}

int live_config_follow(struct live_config *live, struct host *host)
{
	struct error err = ERROR_NULL;
	int r = take(live, host, false, &err);

	host_note_waiting(host, live->pending);
	return r;
}

static int refresh(struct live_config *live, struct host *host)
{
	struct config *copy = copy_of(live->pending ? live->pending : live->config);
	bool waited = live->pending;
	struct error err = ERROR_NULL;
	int r;

	live->refreshing = true;
	live->said_again = false;
	r = copy ? change_graph(live, copy, *live->registry, host, &err)
		 : error_set(&err, -ENOMEM, "out of memory");
	if (err.code)
		is_said(live, str_of(err.text));
	live->refreshing = false;
	if (r == 0)
		buf_clear(&live->said);
	if (r < 0)
		config_free(copy);
	else if (waited && !live->pending)
		log_printf(live->log, ANDIRON_LOG_INFO, RUN_LOG_NAME,
			   "the configuration that waited for a value runs now");
	/* Configuration files that were refused still are, and those that wait still do. */
	if (r == 0 && (live->refused || live->pending || live->unread.n > 0))
		return 0;
	if (live->said_again) {
		host_note_configuration(host, false);
		return r;
	}
	return note(live, host, r, &err);
}

int live_config_refresh(struct live_config *live, struct host *host)
{
	int r = refresh(live, host);

	host_note_waiting(host, live->pending);
	return r;
}
