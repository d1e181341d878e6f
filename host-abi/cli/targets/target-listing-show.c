/* SPDX-License-Identifier: Apache-2.0 */
/* A listing as JSON and as text. Contract in target-listing.h. */
#include "cli/targets/target-listing.h"

#include "base/json.h"
#include "host/report/escape.h"

#include <string.h>

/* --- JSON --- */

static void put_labels(struct buf *out, const struct listed_target *t)
{
	buf_putc(out, '{');
	for (uint32_t i = 0; i < t->n_labels; i++) {
		buf_str_append(out, i ? STR(", ") : STR(""));
		json_put_str(out, t->labels[i].name);
		buf_str_append(out, STR(": "));
		json_put_str(out, t->labels[i].value);
	}
	buf_putc(out, '}');
}

static void put_dropped(struct buf *out, const struct listed_target *t)
{
	buf_str_append(out, STR("{\"target\": "));
	put_labels(out, t);
	buf_printf(out, ", \"rule\": %u", t->rule);
	if (t->line) {
		struct buf at = BUF_NULL;

		buf_printf(&at, "%s:%u", t->file, t->line);
		buf_str_append(out, STR(", \"at\": "));
		json_put_str(out, buf_str(&at));
		out->failed |= at.failed;
		buf_free(&at);
	}
	if (*t->reason) {
		buf_str_append(out, STR(", \"reason\": "));
		json_put_str(out, str_of(t->reason));
	}
	buf_putc(out, '}');
}

static void put_matched(struct buf *out, const struct listed_target *t)
{
	buf_str_append(out, STR("{\"processes\": ["));
	for (size_t i = 0; i < t->matched.n; i++) {
		const struct machine_process *p = t->matched.processes[i];

		buf_printf(out, "%s{\"pid\": %u, \"name\": ", i ? ", " : "", p->pid);
		json_put_str(out, str_first(str_of(p->comm), sizeof(p->comm)));
		buf_putc(out, '}');
	}
	buf_putc(out, ']');
	if (t->matched.why) {
		buf_str_append(out, STR(", \"why\": "));
		json_put_str(out, str_of(t->matched.why));
	}
	buf_putc(out, '}');
}

static void put_list(struct buf *out, const char *name, const struct listed_targets *list,
		     void (*put)(struct buf *out, const struct listed_target *t))
{
	buf_printf(out, "\n    \"%s\": [", name);
	for (size_t i = 0; i < list->n; i++) {
		buf_str_append(out, i ? STR(",\n      ") : STR("\n      "));
		put(out, &list->p[i]);
	}
	buf_str_append(out, list->n ? STR("\n    ]") : STR("]"));
}

void target_listing_json(const struct target_listing *s, const char *only, struct buf *out)
{
	bool first = true;

	buf_putc(out, '{');
	vec_each (&s->components, c) {
		if (only && strcmp(only, c->id) != 0)
			continue;
		buf_str_append(out, first ? STR("\n  ") : STR(",\n  "));
		first = false;
		json_put_str(out, str_of(c->id));
		buf_str_append(out, STR(": {"));
		put_list(out, "targets", &c->targets, put_labels);
		buf_putc(out, ',');
		if (s->matches) {
			put_list(out, "matched", &c->targets, put_matched);
			buf_putc(out, ',');
		}
		put_list(out, "dropped", &c->dropped, put_dropped);
		buf_str_append(out, STR("\n  }"));
	}
	buf_str_append(out, STR("\n}\n"));
}

/* --- For people --- */

static void show_labels(struct buf *out, const struct listed_target *t)
{
	for (uint32_t i = 0; i < t->n_labels; i++) {
		buf_str_append(out, STR("    "));
		text_line(out, t->labels[i].name);
		buf_str_append(out, STR(" = \""));
		text_line(out, t->labels[i].value);
		buf_str_append(out, STR("\"\n"));
	}
	if (!t->n_labels)
		buf_str_append(out, STR("    (no labels)\n"));
}

static void show_matched(struct buf *out, const struct matched *m)
{
	if (m->why) {
		buf_printf(out, "    matches no process: %s\n", m->why);
		return;
	}
	buf_printf(out, "    matches %zu process%s:", m->n, m->n == 1 ? "" : "es");
	for (size_t i = 0; i < m->n; i++) {
		buf_printf(out, "%s%u (", i ? ", " : " ", m->processes[i]->pid);
		text_line(out,
			  str_first(str_of(m->processes[i]->comm), sizeof(m->processes[i]->comm)));
		buf_putc(out, ')');
	}
	buf_putc(out, '\n');
}

static void show_dropped(struct buf *out, const struct listed_target *t)
{
	buf_str_append(out, STR("  dropped"));
	if (t->rule)
		buf_printf(out, " by rule %u", t->rule);
	if (t->line)
		buf_printf(out, " at %s:%u", t->file, t->line);
	if (*t->reason)
		buf_printf(out, ": %s", t->reason);
	buf_putc(out, '\n');
	show_labels(out, t);
}

static void show_component(const struct target_listing *s, const struct listed_component *c,
			   struct buf *out)
{
	buf_printf(out, "%s: %zu target%s", c->id, c->targets.n, c->targets.n == 1 ? "" : "s");
	if (c->dropped.n)
		buf_printf(out, ", %zu dropped", c->dropped.n);
	buf_putc(out, '\n');
	for (size_t i = 0; i < c->targets.n; i++) {
		buf_printf(out, "  target %zu\n", i + 1);
		show_labels(out, &c->targets.p[i]);
		if (s->matches)
			show_matched(out, &c->targets.p[i].matched);
	}
	vec_each (&c->dropped, t)
		show_dropped(out, t);
}

void target_listing_text(const struct target_listing *s, const char *only, struct buf *out)
{
	bool first = true;

	vec_each (&s->components, c) {
		if (only && strcmp(only, c->id) != 0)
			continue;
		if (!first)
			buf_putc(out, '\n');
		first = false;
		show_component(s, c, out);
	}
}
