/* SPDX-License-Identifier: Apache-2.0 */
/* Labels that servers take. Contract in labels.h. Kept sorted by insertion: there are a dozen. */
#include "pyroscope-push/labels.h"

#include "base/check.h"
#include "export/pprof.h"

/* What tells where a profile came from, the more telling first. */
static const char *const telling[] = {"namespace", "pod", "container", "node",
				      "cluster",   "job", "instance"};

#define N_TELLING (sizeof(telling) / sizeof(telling[0]))

size_t labels_room(const struct label_rules *rules, const struct andiron_group *group)
{
	return (size_t)group->n_labels + rules->n_defaults + rules->n_external + 2;
}

static void set(struct label *out, size_t *n, struct str name, struct str value)
{
	size_t i = 0;

	while (i < *n && str_cmp(out[i].name, name) < 0)
		i++;
	if (i == *n || !str_eq(out[i].name, name)) {
		memmove(out + i + 1, out + i, (*n - i) * sizeof(*out));
		++*n;
	}
	out[i] = (struct label){name, value};
}

/* The longest beginning of at most `max` bytes that ends with a character. */
static struct str cut(struct str s, size_t max)
{
	if (s.n <= max)
		return s;
	s.n = max;
	while (s.n && ((unsigned char)s.p[s.n] & 0xc0) == 0x80)
		s.n--;
	return s;
}

/* One that servers would refuse is left out, one too long is cut. */
static void put(struct label *out, size_t *n, struct label l, struct label_repairs *repairs)
{
	bool bad = !l.name.n || l.name.n > LABELS_MAX_NAME || !str_utf8(l.name) ||
		   !str_utf8(l.value);

	if (bad) {
		repairs->dropped++;
		return;
	}
	if (!l.value.n) /* servers take it for a label that is not there */
		return;
	repairs->cut += l.value.n > LABELS_MAX_VALUE;
	set(out, n, l.name, cut(l.value, LABELS_MAX_VALUE));
}

/* The name under which a label is sent; STR_NULL: it is not. */
static struct str sent_name(const struct label_rules *rules, struct str name)
{
	if (!str_starts(name, STR("__")) || str_is(name, "__name__"))
		return name;
	for (const struct label_rename *r = rules->renames; r && r->from; r++)
		if (str_is(name, r->from))
			return str_of(r->to);
	return STR_NULL;
}

static void put_group(const struct label_rules *rules, const struct label_source *s,
		      struct label *out, size_t *n, struct label_repairs *repairs)
{
	for (uint32_t i = 0; i < s->group->n_labels; i++) {
		struct andiron_attribute a = batch_attribute_at(s->view, s->group->label_start + i);
		struct label l = {batch_str(s->view, a.key), batch_str(s->view, (uint32_t)a.value)};
		bool empty = !l.name.n;

		l.name = sent_name(rules, l.name);
		if (a.kind == ANDIRON_ATTRIBUTE_STRING && (l.name.n || empty))
			put(out, n, l, repairs);
	}
}

/* The less, the longer it stays. */
static size_t rank(const struct label_rules *rules, struct str name)
{
	if (str_is(name, "__name__") || str_is(name, "service_name"))
		return 0;
	for (size_t i = 0; i < rules->n_external; i++)
		if (str_eq(rules->external[i].name, name))
			return 1;
	for (size_t i = 0; i < N_TELLING; i++)
		if (str_is(name, telling[i]))
			return 2 + i;
	return 2 + N_TELLING;
}

/* Of those that rank highest the last by name goes. */
static void drop_one(const struct label_rules *rules, struct label *out, size_t *n)
{
	size_t worst = 0, worst_rank = 0;

	for (size_t i = 0; i < *n; i++) {
		size_t r = rank(rules, out[i].name);

		if (r >= worst_rank) {
			worst = i;
			worst_rank = r;
		}
	}
	check(*n > 0);
	memmove(out + worst, out + worst + 1, (*n - worst - 1) * sizeof(*out));
	--*n;
}

/* The profile's name is part of its type, which servers parse. */
static void spell_name(const struct label_source *s, struct label *out, size_t n,
		       struct label_repairs *repairs)
{
	for (size_t i = 0; i < n; i++)
		if (str_is(out[i].name, "__name__")) {
			repairs->spelled += export_spell(out[i].value, s->spelled);
			out[i].value = str_of(s->spelled);
		}
}

size_t labels_make(const struct label_rules *rules, const struct label_source *source,
		   struct label *out, struct label_repairs *repairs)
{
	size_t n = 0;

	set(out, &n, STR("__name__"), source->name);
	set(out, &n, STR("service_name"), STR("unspecified"));
	for (size_t i = 0; i < rules->n_defaults; i++)
		put(out, &n, rules->defaults[i], repairs);
	put_group(rules, source, out, &n, repairs);
	for (size_t i = 0; i < rules->n_external; i++)
		put(out, &n, rules->external[i], repairs);
	check(n <= labels_room(rules, source->group));
	for (; n > LABELS_MAX; repairs->dropped++)
		drop_one(rules, out, &n);
	spell_name(source, out, n, repairs);
	return n;
}
