/* SPDX-License-Identifier: Apache-2.0 */
/* See part-arguments.h. A text that is parsed, and not values that are built: so a value comes to
 * the component in the very form in which a configuration brings it, and what the host refuses by
 * the option's table never comes to it. */
#include "cli/conformance/part-arguments.h"

#include "host/registry/describe-check.h"

#include <errno.h>
#include <string.h>

#define LABEL "validated"

/* Where a body is: the names of the blocks around it. */
struct place_in {
	const struct trial *t;
	const struct setting *setting; /* NULL: what it sets is elsewhere */
	struct buf *out;
	size_t depth;
	char path[256]; /* "endpoint." */
};

/* The expression that --with has for the option of this path; or whether it has one below it. */
static const char *given(const struct place_in *p, const char *path, bool *ret_below)
{
	const struct texts *all = &p->t->options->arguments;
	const char *component = p->t->component->name;
	size_t n_component = strlen(component), n = strlen(path);

	*ret_below = false;
	for (size_t i = 0; i < all->n; i++) {
		const char *a = all->p[i];

		if (strncmp(a, component, n_component) != 0 || a[n_component] != ':')
			continue;
		a += n_component + 1;
		if (strncmp(a, path, n) != 0)
			continue;
		if (a[n] == '=')
			return a + n + 1;
		*ret_below |= a[n] == '.';
	}
	return NULL;
}

/* A value of the option's type. */
static void sample(const struct andiron_option *o, struct buf *out)
{
	struct str name = str_of(o->name);

	switch (o->type) {
	case ANDIRON_TYPE_BOOL:
		buf_str_append(out, STR("false"));
		break;
	case ANDIRON_TYPE_INT:
	case ANDIRON_TYPE_UINT:
	case ANDIRON_TYPE_FLOAT:
		buf_printf(out, "%lld", o->min != o->max ? (long long)o->min : 1ll);
		break;
	case ANDIRON_TYPE_DURATION:
		buf_str_append(out, STR("\"1s\""));
		break;
	case ANDIRON_TYPE_STRINGS:
	case ANDIRON_TYPE_RECEIVERS:
	case ANDIRON_TYPE_TARGETS:
		buf_str_append(out, STR("[]"));
		break;
	case ANDIRON_TYPE_MAP:
	case ANDIRON_TYPE_SECRETS:
		buf_str_append(out, STR("{}"));
		break;
	default:
		if (o->choices)
			buf_printf(out, "\"%s\"", o->choices[0]);
		else if (str_ends(name, STR("url")) || str_ends(name, STR("address")))
			buf_str_append(out, STR("\"http://127.0.0.1:9\""));
		else
			buf_str_append(out, STR("\"x\""));
	}
}

static void put_body(struct place_in *p, const struct andiron_options *options);

static void put_block(struct place_in *p, const struct andiron_option *o, const char *path,
		      const struct setting *setting)
{
	struct place_in inner = {
		.t = p->t, .setting = setting, .out = p->out, .depth = p->depth + 1};
	int n = snprintf(inner.path, sizeof(inner.path), "%s.", path);

	if (n < 0 || (size_t)n >= sizeof(inner.path) || inner.depth >= OPTION_DEPTH)
		return;
	buf_printf(p->out, "%s%s {\n", o->name,
		   o->flags & ANDIRON_OPTION_LABELLED ? " \"" LABEL "\"" : "");
	put_body(&inner, o->block);
	buf_str_append(p->out, STR("}\n"));
}

static void put_option(struct place_in *p, const struct andiron_option *o)
{
	const struct setting *s = p->setting;
	bool is_set = s && s->n > p->depth && s->path[p->depth] == o, is_last, below;
	char path[256];
	const char *value;
	int n = snprintf(path, sizeof(path), "%s%s", p->path, o->name);

	if (n < 0 || (size_t)n >= sizeof(path))
		return;
	is_last = is_set && s->n == p->depth + 1;
	value = given(p, path, &below);
	if (!is_set && !value && !below && !(o->flags & ANDIRON_OPTION_REQUIRED))
		return;
	if (o->type == ANDIRON_TYPE_BLOCK) {
		put_block(p, o, path, is_set ? s : NULL);
		return;
	}
	buf_printf(p->out, "%s = ", o->name);
	if (is_last && s->value)
		buf_str_append(p->out, str_of(s->value));
	else if (value)
		buf_str_append(p->out, str_of(value));
	else
		sample(o, p->out);
	buf_putc(p->out, '\n');
}

static void put_body(struct place_in *p, const struct andiron_options *options)
{
	for (uint32_t i = 0; options && i < options->count; i++)
		put_option(p, option_at(options, i));
}

static void put_component(const struct trial *t, const struct setting *setting, struct buf *out)
{
	struct place_in p = {.t = t, .setting = setting, .out = out};

	buf_printf(out, "%s%s {\n", t->component->name,
		   t->component->flags & ANDIRON_COMPONENT_NO_LABEL ? "" : " \"" LABEL "\"");
	put_body(&p, t->component->options);
	buf_str_append(out, STR("}\n"));
}

/* The first error, with what to do about it. */
static const char *first_error(struct part_arguments *a)
{
	vec_each (&a->diags.list, d)
		if (d->severity == DIAG_ERROR)
			return d->text;
	return "";
}

int part_arguments_make(const struct trial *t, const struct setting *setting,
			struct part_arguments *ret)
{
	static const char *const no_directories[] = {NULL};
	const struct andiron_plugin *const given_plugins[] = {t->plugin, NULL};
	int r;

	*ret = (struct part_arguments){.refusal = ""};
	put_component(t, setting, &ret->text);
	if (ret->text.failed)
		return -ENOMEM;
	r = registry_new(no_directories, given_plugins, false, &ret->registry);
	if (r < 0)
		return r;
	ret->source = (struct source){"validate-plugin", buf_str(&ret->text)};
	r = plan_build(&ret->source, 1, ret->registry, &ret->diags, &ret->plan);
	ret->refusal = first_error(ret);
	if (r == -EINVAL)
		return 0;
	for (size_t i = 0; r == 0 && i < ret->plan->nodes.n; i++)
		if (ret->plan->nodes.p[i].registered->component == t->component &&
		    !ret->plan->nodes.p[i].implicit)
			ret->values = ret->plan->nodes.p[i].args;
	return r;
}

void part_arguments_fini(struct part_arguments *a)
{
	plan_free(a->plan);
	diags_free(&a->diags);
	registry_free(a->registry);
	buf_free(&a->text);
}
