/* SPDX-License-Identifier: Apache-2.0 */
/* Making a configuration. Contract in conversion.h. */
#include "cli/convert/conversion.h"

#include "base/ascii.h"
#include "base/clock.h"
#include "host/config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void conversion_fini(struct conversion *c)
{
	settings_fini(&c->settings);
	buf_free(&c->notes);
	for (size_t i = 0; i < N_SECTIONS; i++)
		buf_free(&c->sections[i]);
	buf_free(&c->rules);
	buf_free(&c->writers);
	buf_free(&c->receivers);
}

/* Control characters would end the comment. */
static void put_comment(struct buf *b, const char *text)
{
	buf_str_append(b, STR("//   "));
	for (; *text; text++)
		buf_putc(b, (unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text);
	buf_putc(b, '\n');
}

void conversion_note(struct conversion *c, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	while (!str_utf8(str_of(text))) /* cut within a character */
		text[strlen(text) - 1] = '\0';
	put_comment(&c->notes, text);
}

/* A letter or `_`, and behind the first also a digit. */
static bool in_name(char ch, size_t at)
{
	return ch == '_' || ascii_is_letter(ch) || (at > 0 && ascii_is_digit(ch));
}

static bool is_name(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!in_name(s.p[i], i))
			return false;
	return s.n > 0;
}

/* The name in $(NAME), ${NAME} or ${env:NAME} at the text's begin, or a NULL str. */
static struct str variable_at(struct str text, size_t *ret_length)
{
	struct str name;
	char end;

	if (text.n < 4 || text.p[0] != '$' || (text.p[1] != '(' && text.p[1] != '{'))
		return STR_NULL;
	end = text.p[1] == '(' ? ')' : '}';
	name = str_skip(text, 2);
	*ret_length = str_find(name, end) + 3;
	if (*ret_length > text.n)
		return STR_NULL;
	name = str_first(name, *ret_length - 3);
	if (str_starts(name, STR("env:")))
		name = str_skip(name, 4);
	return is_name(name) ? name : STR_NULL;
}

void conversion_expression(struct buf *b, struct str text)
{
	const char *joint = "";
	size_t from = 0;

	for (size_t i = 0; i < text.n; i++) {
		size_t length;
		struct str name = variable_at(str_skip(text, i), &length);

		if (!name.p)
			continue;
		if (i > from) {
			buf_printf(b, "%s", joint);
			config_quote(b, str_first(str_skip(text, from), i - from));
			joint = " + ";
		}
		buf_printf(b, "%ssys.env(", joint);
		config_quote(b, name);
		buf_putc(b, ')');
		joint = " + ";
		from = i + length;
		i = from - 1;
	}
	if (from < text.n || !text.n) {
		buf_printf(b, "%s", joint);
		config_quote(b, str_skip(text, from));
	}
}

void conversion_put(struct conversion *c, enum section section, const char *name, struct str text)
{
	struct buf *b = &c->sections[section];

	buf_printf(b, "%s = ", name);
	conversion_expression(b, text);
	buf_putc(b, '\n');
}

static int refuse(const struct setting *s, const char *what, struct error *err)
{
	char line[40] = "";

	if (s->line)
		snprintf(line, sizeof(line), "line %zu: ", s->line);
	return error_set(err, -EINVAL, "%s%.*s must be %s, and is \"%.*s\"", line, STR_FMT(s->name),
			 what, STR_FMT(str_first(s->text, 100)));
}

static bool is_true(struct str text)
{
	return str_is(text, "true") || str_is(text, "1") || str_is(text, "yes") ||
	       str_is(text, "on");
}

static bool is_false(struct str text)
{
	return str_is(text, "false") || str_is(text, "0") || str_is(text, "no") ||
	       str_is(text, "off");
}

static bool is_number(struct str text, double *ret)
{
	char copy[64], *end;

	if (!text.n || text.n >= sizeof(copy))
		return false;
	memcpy(copy, text.p, text.n);
	copy[text.n] = '\0';
	*ret = str_parse_fraction(copy, &end);
	return end == copy + text.n && (*copy == '.' || ascii_is_digit(*copy));
}

static int put_setting(struct conversion *c, const struct setting *s, struct error *err)
{
	struct buf *b = &c->sections[s->row->section];
	double number;
	int64_t ns;

	switch (s->row->kind) {
	case PUT_DURATION:
		if (!duration_parse(s->text, &ns))
			return refuse(s, "a duration, as \"5s\"", err);
		conversion_put(c, s->row->section, s->row->ours, s->text);
		return 0;
	case PUT_TEXT:
		conversion_put(c, s->row->section, s->row->ours, s->text);
		return 0;
	case PUT_NUMBER:
		if (!is_number(s->text, &number))
			return refuse(s, "a number", err);
		buf_printf(b, "%s = %.*s\n", s->row->ours, STR_FMT(s->text));
		return 0;
	case PUT_BOOL:
	case PUT_NOT:
		if (!is_true(s->text) && !is_false(s->text))
			return refuse(s, "true or false", err);
		buf_printf(b, "%s = %s\n", s->row->ours,
			   is_true(s->text) == (s->row->kind == PUT_BOOL) ? "true" : "false");
		return 0;
	case PUT_OWN:
	case PUT_OWN_BOOL:
		return s->row->put(c, s, err);
	case HAS_NONE:
	case HAS_NONE_BOOL:
		conversion_note(c, "%.*s: %s", STR_FMT(s->name), s->row->ours);
		return 0;
	case PUT_MAP:
	case IS_MOOT:
	case IS_MOOT_BOOL:
		break;
	}
	return 0;
}

/* Of settings of one name the last one counts, as it does there. */
static bool is_last(const struct settings *all, size_t i)
{
	for (size_t j = i + 1; j < all->list.n; j++)
		if (settings_same_name(all->list.p[i].name, all->list.p[j].name) &&
		    str_eq(all->list.p[i].key, all->list.p[j].key))
			return false;
	return true;
}

/* All entries of one map, at its last. */
static void put_map(struct conversion *c, size_t last)
{
	const struct settings *all = &c->settings;
	const struct counterpart *row = all->list.p[last].row;
	struct buf *b = &c->sections[row->section];

	for (size_t i = last + 1; i < all->list.n; i++)
		if (all->list.p[i].row == row)
			return;
	if (row->section != SECTION_LABELS)
		buf_printf(b, "%s = {\n", row->ours);
	for (size_t i = 0; i <= last; i++) {
		const struct setting *s = &all->list.p[i];

		if (s->row != row || !is_last(all, i))
			continue;
		config_quote(b, s->key);
		buf_str_append(b, STR(" = "));
		conversion_expression(b, s->text);
		buf_str_append(b, STR(",\n"));
	}
	if (row->section != SECTION_LABELS)
		buf_str_append(b, STR("}\n"));
}

int conversion_apply(struct conversion *c, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < c->settings.list.n && r == 0; i++) {
		const struct setting *s = &c->settings.list.p[i];

		if (s->row && s->row->kind == PUT_MAP)
			put_map(c, i);
		else if (!is_last(&c->settings, i))
			continue;
		else if (s->row)
			r = put_setting(c, s, err);
		else
			conversion_note(c, "%.*s: andiron does not know this setting",
					STR_FMT(s->name));
	}
	return r;
}

int conversion_tracers(struct conversion *c, const struct setting *s, struct error *err)
{
	static const char *const runtimes[][2] = {
		{"python", "python_enabled"}, {"hotspot", "hotspot_enabled"}, {"v8", "v8_enabled"}};
	bool wanted[3] = {false}, all = !s->text.n;

	for (struct str rest = s->text; rest.n;) {
		struct str name = str_trim(str_cut(&rest, ','));

		all |= str_is(name, "all");
		for (size_t i = 0; i < 3; i++)
			wanted[i] |= str_is(name, runtimes[i][0]);
	}
	for (size_t i = 0; !all && i < 3; i++)
		if (!wanted[i])
			buf_printf(&c->sections[SECTION_SAMPLER], "%s = false\n", runtimes[i][1]);
	return 0;
}

/* A share, once in thousandths. */
int conversion_off_cpu(struct conversion *c, const struct setting *s, struct error *err)
{
	char text[32];
	double share;

	if (!is_number(s->text, &share))
		return refuse(s, "a number", err);
	if (share > 1) {
		share = share < 1000 ? share / 1000 : 1;
		conversion_note(c, "%.*s: %.*s is taken for thousandths", STR_FMT(s->name),
				STR_FMT(s->text));
	}
	str_print_fraction(text, sizeof(text), 6, share);
	if (share > 0)
		buf_printf(&c->sections[SECTION_SAMPLER], "off_cpu_threshold = %s\n", text);
	return 0;
}

void conversion_url(struct conversion *c, struct str address, bool plain_text, const char *instead,
		    const char *setting)
{
	struct buf url = BUF_NULL;
	bool has_scheme = str_search(address, STR("://")) < address.n;
	/* What a variable begins with is not known; where a scheme is needed a Collector wants it
	 * in there, too. */
	bool opens = str_starts(address, STR("$"));

	if (!address.n) {
		conversion_note(c, "%s was not given: put the server's address for %s", setting,
				instead);
		buf_printf(&url, "%s", instead);
	} else {
		buf_printf(&url, "%s%.*s",
			   has_scheme || opens ? ""
			   : plain_text        ? "http://"
					       : "https://",
			   STR_FMT(address));
	}
	c->sections[SECTION_ENDPOINT].failed |= url.failed;
	conversion_put(c, SECTION_ENDPOINT, "url", buf_str(&url));
	if (opens && !has_scheme && plain_text)
		buf_printf(&c->sections[SECTION_ENDPOINT], "insecure = true\n");
	buf_free(&url);
}

static void put_block(struct buf *out, const char *name, struct buf *section)
{
	if (section->n)
		buf_printf(out, "%s {\n%.*s}\n", name, STR_FMT(buf_str(section)));
	out->failed |= section->failed;
	buf_clear(section);
}

void conversion_end_writer(struct conversion *c, const char *component, struct str label,
			   const char *protocol)
{
	struct buf *w = &c->writers, *labels = &c->sections[SECTION_LABELS];
	struct buf name = BUF_NULL;

	for (size_t i = 0; i < label.n; i++)
		buf_putc(&name, in_name(label.p[i], i) ? label.p[i] : '_');
	buf_printf(&c->receivers, "%s%s.%.*s.receiver", c->n_writers++ ? ", " : "", component,
		   STR_FMT(buf_str(&name)));
	buf_printf(w, "\n%s \"%.*s\" {\n", component, STR_FMT(buf_str(&name)));
	if (protocol)
		buf_printf(w, "protocol = \"%s\"\n", protocol);
	if (labels->n)
		buf_printf(w, "external_labels = {\n%.*s}\n", STR_FMT(buf_str(labels)));
	buf_printf(w, "endpoint {\n%.*s", STR_FMT(buf_str(&c->sections[SECTION_ENDPOINT])));
	put_block(w, "tls_config", &c->sections[SECTION_TLS]);
	buf_str_append(w, STR("}\n"));
	put_block(w, "debuginfo", &c->sections[SECTION_DEBUGINFO]);
	buf_str_append(w, STR("}\n"));
	w->failed |= name.failed | labels->failed | c->sections[SECTION_ENDPOINT].failed;
	buf_clear(&c->sections[SECTION_ENDPOINT]);
	buf_free(&name);
}

void conversion_copy_rule(struct conversion *c, const char *from, const char *to)
{
	buf_printf(&c->rules, "rule {\nsource_labels = [\"%s\"]\ntarget_label = \"%s\"\n}\n", from,
		   to);
}

static void put_discovery(const struct conversion *c, struct buf *out)
{
	if (c->pods)
		buf_str_append(out, STR("\ndiscovery.kubernetes \"pods\" {\nrole = \"pod\"\n}\n"));
	if (c->processes)
		buf_printf(out, "\ndiscovery.process \"all\" {\n%s%s}\n",
			   c->pods ? "join = discovery.kubernetes.pods.targets\n" : "",
			   c->cgroups ? "discover_config {\ncgroup_path = true\n}\n" : "");
	if (!c->rules.n)
		return;
	buf_printf(out, "\ndiscovery.relabel \"targets\" {\ntargets = discovery.%s.targets\n",
		   c->processes ? "process.all" : "kubernetes.pods");
	buf_printf(out, "%.*s}\n", STR_FMT(buf_str(&c->rules)));
}

int conversion_check_file(struct yaml_view *view, const char *path, struct error *err)
{
	yaml_node_t *root = yaml_view_root(view);
	struct str kind = yaml_view_text(view, yaml_view_member(view, root, "kind"));

	if (!kind.n || !yaml_view_member(view, root, "apiVersion"))
		return 0;
	return error_set(err, -EINVAL,
			 "%s is Kubernetes's %.*s; take the file that stands in its ConfigMap, or "
			 "write the arguments of its container behind --",
			 path, STR_FMT(str_first(kind, 60)));
}

void conversion_default(struct conversion *c, const char *name, const char *text)
{
	struct buf *b = &c->sections[SECTION_SAMPLER];
	struct buf line = BUF_NULL;

	buf_printf(&line, "%s = ", name);
	if (str_search(buf_str(b), buf_str(&line)) >= b->n)
		buf_printf(b, "%s = %s\n", name, text);
	b->failed |= line.failed;
	buf_free(&line);
}

void conversion_finish(struct conversion *c, struct buf *out)
{
	struct buf *sampler = &c->sections[SECTION_SAMPLER];

	buf_printf(out, "// Converted from %s's configuration by `andiron convert`.\n", c->from);
	if (c->notes.n)
		buf_printf(out, "// What is not the same here:\n%.*s", STR_FMT(buf_str(&c->notes)));
	buf_putc(out, '\n');
	put_block(out, "logging", &c->sections[SECTION_LOGGING]);
	put_discovery(c, out);
	buf_printf(out, "\npyroscope.ebpf \"node\" {\nforward_to = [%.*s]\n",
		   STR_FMT(buf_str(&c->receivers)));
	if (c->rules.n)
		buf_str_append(out, STR("targets = discovery.relabel.targets.output\n"));
	if (!c->only_targets)
		buf_str_append(out, STR("targets_only = false\n"
					"default_target = {\"service_name\" = \"host\"}\n"));
	buf_printf(out, "%.*s}\n%.*s", STR_FMT(buf_str(sampler)), STR_FMT(buf_str(&c->writers)));
	out->failed |= c->notes.failed | c->rules.failed | c->writers.failed | c->receivers.failed |
		       sampler->failed;
}
