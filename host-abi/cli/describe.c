/* SPDX-License-Identifier: Apache-2.0 */
/* See describe.h. The tables were checked when the plugin was loaded. */
#include "cli/describe.h"

#include "base/check.h"
#include "base/clock.h"
#include "host/registry/describe-check.h"

#include <string.h>

static const char *const types[] = {
	[ANDIRON_TYPE_BOOL] = "bool",
	[ANDIRON_TYPE_INT] = "number",
	[ANDIRON_TYPE_FLOAT] = "number",
	[ANDIRON_TYPE_STRING] = "string",
	[ANDIRON_TYPE_SECRET] = "secret",
	[ANDIRON_TYPE_DURATION] = "duration",
	[ANDIRON_TYPE_STRINGS] = "list(string)",
	[ANDIRON_TYPE_MAP] = "map(string)",
	[ANDIRON_TYPE_TARGETS] = "list(target)",
	[ANDIRON_TYPE_RECEIVERS] = "list(receiver)",
	[ANDIRON_TYPE_BLOCK] = "block",
	[ANDIRON_TYPE_SECRETS] = "map(secret)",
	[ANDIRON_TYPE_UINT] = "number",
};

static void print_bound(const struct andiron_option *o, int64_t value, FILE *out)
{
	char text[32];

	if (o->type == ANDIRON_TYPE_DURATION)
		fprintf(out, "%s", duration_format(value, text, sizeof(text)));
	else
		fprintf(out, "%lld", (long long)value);
}

/* The ends of the type's own range bound nothing. */
static void print_bounds(const struct andiron_option *o, FILE *out)
{
	if (o->min == o->max)
		return;
	if (o->type == ANDIRON_TYPE_DURATION && o->min == 1) {
		fprintf(out, ", more than 0");
	} else if (o->min != INT64_MIN) {
		fprintf(out, ", at least ");
		print_bound(o, o->min, out);
	}
	if (o->max != INT64_MAX) {
		fprintf(out, ", at most ");
		print_bound(o, o->max, out);
	}
}

/* What stands behind the type: required, default, choices, bounds. */
static void print_terms(const struct andiron_option *o, FILE *out)
{
	if (o->flags & ANDIRON_OPTION_REQUIRED)
		fprintf(out, ", required");
	if (o->flags & ANDIRON_OPTION_LABELLED)
		fprintf(out, ", with a label");
	if (o->flags & ANDIRON_OPTION_REPEATED)
		fprintf(out, ", may be repeated");
	if (o->default_text)
		fprintf(out, ", default %s", o->default_text);
	if (o->choices)
		for (const char *const *c = o->choices; *c; c++)
			fprintf(out, "%s\"%s\"", c == o->choices ? ", one of " : " ", *c);
	print_bounds(o, out);
	if (o->until)
		fprintf(out, ", until %s", o->until);
}

static void print_options(const struct andiron_options *options, int indent, FILE *out)
{
	for (uint32_t i = 0; options && i < options->count; i++) {
		const struct andiron_option *o = option_at(options, i);

		if (!o)
			return;
		check(o->type < sizeof(types) / sizeof(types[0]) && types[o->type]);
		fprintf(out, "%*s%s  %s", indent, "", o->name, types[o->type]);
		print_terms(o, out);
		fprintf(out, "\n%*s%s\n", indent + 4, "", o->doc);
		if (o->flags & ANDIRON_OPTION_IGNORED)
			fprintf(out, "%*saccepted and ignored%s%s\n", indent + 4, "",
				o->effect ? ": " : "", o->effect ? o->effect : "");
		if (o->type == ANDIRON_TYPE_BLOCK)
			print_options(o->block, indent + 4, out);
	}
}

static void print_list(const char *title, const char *const *list, FILE *out)
{
	if (!list || !*list)
		return;
	fprintf(out, "  %s", title);
	for (; *list; list++)
		fprintf(out, " %s", *list);
	fputc('\n', out);
}

void describe_component(const struct andiron_component *c, FILE *out)
{
	fprintf(out, "\n%s\n  %s\n", c->name, c->summary);
	for (uint64_t i = 0; i < c->n_exports; i++)
		fprintf(out, "  exports %s: %s\n", c->exports[i].name,
			c->exports[i].doc ? c->exports[i].doc : "");
	print_list("offers", c->offers, out);
	print_list("needs", c->needs, out);
	print_list("capabilities", c->capabilities, out);
	if (c->options && c->options->count > 0) {
		fprintf(out, "  options\n");
		print_options(c->options, 4, out);
	}
}

void describe_plugin(const struct andiron_plugin *p, const char *path, FILE *out)
{
	fprintf(out, "%s %s (ABI 1.%u%s%s)\n  %s\n", p->name, p->version, p->abi_minor,
		p->license ? ", " : "", p->license ? p->license : "", path);
	print_list("needs", p->needs, out);
	for (uint64_t i = 0; i < p->n_components; i++)
		describe_component(p->components[i], out);
}
