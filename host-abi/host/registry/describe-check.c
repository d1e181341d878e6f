/* SPDX-License-Identifier: Apache-2.0 */
/* See describe-check.h. The structs of version 1.0 are the floor: a smaller size is no version that
 * ever was. Larger ones come from newer headers, and their tails are not read. */
#include "host/registry/describe-check.h"

#include "base/str.h"

#include <errno.h>
#include <stddef.h>

#define MAX_COMPONENTS 64u
#define MAX_OPTIONS    1000u
#define MAX_EXPORTS    64u
#define MAX_DEPTH      8u
#define MAX_LIST       1000u
#define MAX_TEXT       ((size_t)64 << 10)

/* The bytes of version 1.0. */
#define OLDEST_COMPONENT offsetof(struct andiron_component, subprocess)
#define OLDEST_OPTION    (offsetof(struct andiron_option, block) + sizeof(void *))
#define OLDEST_PLUGIN    (offsetof(struct andiron_plugin, n_components) + sizeof(uint64_t))

static int refuse(struct error *err, const char *component, const char *what)
{
	return error_set(err, -ENOEXEC, "its component %s %s: the plugin needs to be corrected",
			 component, what);
}

static bool is_blank(const char *text)
{
	return !text || *text == '\0';
}

/* Reads all that listings print: a wild pointer is met here, in a probe's child. */
static bool is_text(const char *text)
{
	size_t n = text ? strnlen(text, MAX_TEXT) : 0;

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < ' ' && text[i] != '\n' && text[i] != '\t')
			return false;
	return n < MAX_TEXT && str_utf8((struct str){text, n});
}

static bool are_texts(const char *const *list)
{
	size_t n = 0;

	while (list && list[n] && n < MAX_LIST && is_text(list[n]))
		n++;
	return !list || !list[n];
}

static bool has_option_texts(const struct andiron_option *o)
{
	return !is_blank(o->name) && is_text(o->name) && is_text(o->doc) &&
	       is_text(o->default_text) && is_text(o->since) && is_text(o->until) &&
	       is_text(o->effect) && are_texts(o->choices);
}

static bool has_component_texts(const struct andiron_component *c)
{
	return is_text(c->name) && is_text(c->summary) && are_texts(c->needs) &&
	       are_texts(c->offers) && are_texts(c->capabilities);
}

static int check_options(const struct andiron_options *options, const char *component,
			 unsigned int depth, struct error *err)
{
	if (!options || options->count == 0)
		return 0;
	if (depth > MAX_DEPTH)
		return refuse(err, component, "nests its options too deeply");
	if (!options->items || options->count > MAX_OPTIONS || options->stride < OLDEST_OPTION)
		return refuse(err, component, "has a malformed option table");
	for (uint32_t i = 0; i < options->count; i++) {
		const struct andiron_option *o = option_at(options, i);
		int r;

		if (!o || !has_option_texts(o))
			return refuse(err, component, "has an option without a name or text");
		if (is_blank(o->doc))
			return error_set(err, -ENOEXEC,
					 "its component %s does not document its option %s",
					 component, o->name);
		if (o->type < ANDIRON_TYPE_BOOL || o->type > ANDIRON_TYPE_UINT)
			return error_set(err, -ENOEXEC,
					 "option %s of its component %s has a type (%u) that this "
					 "host does not know: it was built for a newer andiron",
					 o->name, component, o->type);
		r = check_options(o->type == ANDIRON_TYPE_BLOCK ? o->block : NULL, component,
				  depth + 1, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int check_exports(const struct andiron_component *c, struct error *err)
{
	if (c->n_exports > MAX_EXPORTS || (c->n_exports > 0 && !c->exports))
		return refuse(err, c->name, "has a malformed table of exports");
	for (uint64_t i = 0; i < c->n_exports; i++) {
		if (is_blank(c->exports[i].name))
			return refuse(err, c->name, "has an export without a name");
		if (!is_text(c->exports[i].name) || !is_text(c->exports[i].doc))
			return refuse(err, c->name, "has an export whose texts are not text");
		if (c->exports[i].type == ANDIRON_EXPORT_RECEIVER && !c->batch)
			return refuse(err, c->name, "receives batches but has no function for it");
	}
	return 0;
}

static int check_component(const struct andiron_component *c, struct error *err)
{
	int r;

	if (!c || !ANDIRON_KNOWS(c, andiron_component, extension))
		return error_set(
			err, -ENOEXEC,
			"a component of its is described by %u bytes, version 1.0 has %zu: "
			"it was built with headers that were never released",
			c ? c->size : 0, OLDEST_COMPONENT);
	if (is_blank(c->name))
		return error_set(err, -ENOEXEC, "a component of its has no name");
	if (is_blank(c->summary))
		return refuse(err, c->name, "has no summary");
	if (!has_component_texts(c))
		return error_set(err, -ENOEXEC, "a component of its has texts that are not text");
	if (!c->create || !c->start || !c->stop || !c->destroy)
		return refuse(err, c->name, "lacks create, start, stop or destroy");
	if (c->offers && c->offers[0] && !c->extension)
		return refuse(err, c->name, "offers extensions but has no function for it");
	r = check_exports(c, err);
	return r < 0 ? r : check_options(c->options, c->name, 0, err);
}

int describe_check(const struct andiron_plugin *plugin, struct error *err)
{
	if (plugin->size == 0)
		return error_set(
			err, -ENOEXEC,
			"the size in its entry is 0: it is half-written, or sets no .size");
	if (!ANDIRON_KNOWS(plugin, andiron_plugin, n_components))
		return error_set(err, -ENOEXEC,
				 "its entry has %u bytes, version 1.0 has %zu: it was built with "
				 "headers that were never released",
				 plugin->size, OLDEST_PLUGIN);
	if (is_blank(plugin->name) || is_blank(plugin->version))
		return error_set(err, -ENOEXEC, "its entry has no name or no version");
	if (!is_text(plugin->name) || !is_text(plugin->version) || !is_text(plugin->license) ||
	    !are_texts(plugin->needs))
		return error_set(err, -ENOEXEC, "its entry has texts that are not text");
	if (plugin->n_components > MAX_COMPONENTS ||
	    (plugin->n_components > 0 && !plugin->components))
		return error_set(err, -ENOEXEC, "its entry has a malformed table of components");
	for (uint64_t i = 0; i < plugin->n_components; i++) {
		int r = check_component(plugin->components[i], err);

		if (r < 0)
			return r;
	}
	return 0;
}
