/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in settings.h. */
#include "host/lang/settings.h"

#include "abi/option.h"
#include "abi/value.h"

/* Alloy's words; host/report/log.h knows them all. */
static const char *const levels[] = {"error", "warn", "info", "debug", NULL};
static const char *const formats[] = {"logfmt", "json", NULL};
static const char *const destinations[] = {"stderr", NULL};

static const struct andiron_option logging[] = {
	OPTION(STRING, "level", NULL, "The least level that is logged.", .choices = levels),
	OPTION(STRING, "format", NULL, "The form of a line.", .choices = formats),
	OPTION(STRING, "destination", NULL, "Where lines go.", .choices = destinations),
	OPTION(STRINGS, "write_to", NULL, "Who gets the lines, too.",
	       .flags = ANDIRON_OPTION_IGNORED,
	       .effect = "andiron writes its log to standard error alone"),
};
static const struct andiron_options logging_options = ANDIRON_OPTIONS(logging);

static const struct andiron_option storage[] = {
	OPTION(STRING, "path", NULL,
	       "The directory in which components keep what outlives the agent, absolute.",
	       .flags = ANDIRON_OPTION_REQUIRED),
};
static const struct andiron_options storage_options = ANDIRON_OPTIONS(storage);

/* In the order of enum draft_setting. */
static const struct {
	const char *name;
	const char *instead; /* of the effect that it has in Alloy; NULL: it is obeyed */
} settings[DRAFT_SETTINGS] = {
	[DRAFT_LOGGING] = {"logging", NULL},
	[DRAFT_HTTP] = {"http", NULL},
	[DRAFT_TRACING] = {"tracing", "andiron does not trace itself"},
	[DRAFT_REMOTECFG] = {"remotecfg", "the configuration comes from these files alone; with "
					  "--watch a change of theirs is taken"},
	[DRAFT_LIVEDEBUGGING] = {"livedebugging", "what each component does is always to be seen: "
						  "start with --status PATH and ask for /targets "
						  "and /health"},
	[DRAFT_STORAGE] = {"storage", NULL},
};

static bool may_stand(struct draft *d, const struct scope *scope, const struct stmt *s,
		      const struct stmt *first)
{
	const char *name = lang_str(&d->l, s->name).p;

	if (!name)
		return false;
	if (scope->depth > 0)
		lang_error(&d->l, s->place, "it is about the whole agent",
			   "the block %s stands at the top of a file only", name);
	else if (s->labelled)
		lang_error(&d->l, s->label_place, NULL, "%s takes no label", name);
	else if (first)
		lang_error(&d->l, s->place,
			   arena_printf(d->l.arena, "it stands at %s:%u:%u already",
					first->place.source->name, first->place.line,
					first->place.column),
			   "%s is defined twice", name);
	else
		return true;
	return false;
}

bool settings_block(struct draft *d, const struct scope *scope, const struct stmt *s)
{
	size_t i = 0;

	while (i < DRAFT_SETTINGS && !str_is(s->name, settings[i].name))
		i++;
	/* A label makes it an instance of somebody's own declare "storage". */
	if (i == DRAFT_SETTINGS || (i == DRAFT_STORAGE && s->labelled))
		return false;
	if (!may_stand(d, scope, s, d->settings[i]))
		return true;
	d->settings[i] = s;
	if (settings[i].instead)
		lang_warning(&d->l, s->place, settings[i].instead,
			     "the block %s has no effect here", settings[i].name);
	return true;
}

/* What Alloy's block can hold, and nothing else of status.http. */
static bool is_of_http(struct draft *d, const struct stmt *s)
{
	static const char *const known[] = {"auth", "tls"};

	if (s->block && (str_is(s->name, "auth") || str_is(s->name, "tls")))
		return true;
	lang_error(&d->l, s->place, s->block ? diag_suggest(d->l.diags, s->name, known, 2) : NULL,
		   "http has no %s \"%.*s\"", s->block ? "block" : "argument",
		   STR_FMT(str_first(s->name, 200)));
	return false;
}

/* A copy of the listener's block that holds the other's, too. */
static const struct stmt *joined(struct draft *d, const struct stmt *listener,
				 const struct stmt *http)
{
	struct stmt *whole = lang_array(&d->l, struct stmt, 1);
	struct stmt **tail = whole ? &whole->body : NULL;
	const struct stmt *const bodies[] = {listener->body, http->body};

	if (!whole)
		return listener;
	*whole = *listener;
	whole->broken |= http->broken;
	for (size_t i = 0; i < 2; i++)
		for (const struct stmt *s = bodies[i]; s; s = s->next) {
			if (i == 1 && !s->broken && !is_of_http(d, s))
				continue;
			*tail = lang_array(&d->l, struct stmt, 1);
			if (!*tail)
				return listener;
			**tail = *s;
			tail = &(*tail)->next;
		}
	*tail = NULL;
	return whole;
}

void settings_serve(struct draft *d)
{
	const struct stmt *http = d->settings[DRAFT_HTTP];
	uint32_t at = names_find(&d->l.names, STR("status.http"));

	if (!http)
		return;
	if (at != INDEX_NONE)
		d->nodes.p[at].block = joined(d, d->nodes.p[at].block, http);
	else if (http->body)
		lang_warning(&d->l, http->place,
			     "start with --server.http.listen-addr, or write the block status.http",
			     "the block http has no effect here: nothing listens");
}

/* The word in the plan's memory; NULL: it is not said. */
static const char *word(struct draft *d, const struct andiron_value *args, const char *name)
{
	struct str text = value_str(args, name, STR_NULL);

	return text.p ? lang_str(&d->l, text).p : NULL;
}

/* The block's arguments; false: it is not there, or wrong, which was reported. */
static bool bind(struct draft *d, enum draft_setting setting, const struct andiron_options *options,
		 struct andiron_value *ret)
{
	const struct stmt *s = d->settings[setting];
	struct binder b = {.l = &d->l};
	struct bind_owner owner = {.name = settings[setting].name};
	bool good;

	if (!s || s->broken)
		return false;
	owner.place = s->place;
	good = bind_body(&b, options, s->body, &owner, ret);
	binder_free(&b);
	return good;
}

/* Its slashes at the end are left out. */
static void bind_storage(struct draft *d, const struct andiron_value *args)
{
	struct str path = value_str(args, "path", STR_NULL);

	if (!str_starts(path, STR("/"))) {
		lang_error(&d->l, d->settings[DRAFT_STORAGE]->place, NULL,
			   "storage: the path \"%.*s\" is not absolute",
			   STR_FMT(str_first(path, 200)));
		return;
	}
	while (path.n > 1 && path.p[path.n - 1] == '/')
		path.n--;
	d->l.storage = path;
}

void settings_bind(struct draft *d, struct plan *plan)
{
	struct andiron_value args;

	if (bind(d, DRAFT_LOGGING, &logging_options, &args)) {
		plan->log_level = word(d, &args, "level");
		plan->log_format = word(d, &args, "format");
	}
	if (bind(d, DRAFT_STORAGE, &storage_options, &args))
		bind_storage(d, &args);
}
