/* SPDX-License-Identifier: Apache-2.0 */
/* Findings: the list. It is kept in order of place, so that printing allocates nothing and two runs
 * over one file say the same. Texts are cut off at a fixed length, since a name in an untrusted
 * file may be megabytes long. */
#include "host/diag.h"

#include "base/check.h"

#include <stdarg.h>

#define MAX_FINDINGS 100
#define MAX_TEXT     1000
#define MAX_HINT     4000

void diags_free(struct diags *d)
{
	vec_free(&d->list);
	vec_free(&d->secrets);
	arena_free(&d->arena);
	d->n_errors = d->n_warnings = d->n_blamed = 0;
	d->subject = NULL;
}

static bool comes_before(const struct place *a, const struct place *b)
{
	if (a->source != b->source)
		return (uintptr_t)a->source < (uintptr_t)b->source;
	if (a->line != b->line)
		return a->line < b->line;
	return a->column < b->column;
}

/* A full list gives up its last warning for an error. */
static bool make_room(struct diags *d, int severity)
{
	if (d->list.n < MAX_FINDINGS)
		return vec_reserve(&d->list, 1);
	if (severity != DIAG_ERROR)
		return false;
	for (size_t i = d->list.n; i-- > 0;) {
		if (d->list.p[i].severity == DIAG_ERROR)
			continue;
		memmove(&d->list.p[i], &d->list.p[i + 1],
			(d->list.n - i - 1) * sizeof(d->list.p[0]));
		d->list.n--;
		return true;
	}
	return false;
}

static void insert(struct diags *d, struct diag finding)
{
	size_t i = d->list.n;

	while (i > 0 && comes_before(&finding.place, &d->list.p[i - 1].place))
		i--;
	memmove(&d->list.p[i + 1], &d->list.p[i], (d->list.n - i) * sizeof(finding));
	d->list.p[i] = finding;
	d->list.n++;
	check(d->list.n <= MAX_FINDINGS);
}

void diag_add(struct diags *d, int severity, struct place place, const char *hint,
	      const char *format, ...)
{
	struct diag finding = {.severity = severity, .place = place, .subject = d->subject};
	char text[MAX_TEXT];
	va_list args;

	check(severity == DIAG_ERROR || severity == DIAG_WARNING);
	if (severity == DIAG_ERROR)
		d->n_errors++;
	else
		d->n_warnings++;
	if (severity == DIAG_ERROR && d->subject) {
		*d->subject = true;
		d->n_blamed++;
	}
	if (!make_room(d, severity))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	finding.text = arena_str(&d->arena, str_of(text)).p;
	if (hint)
		finding.hint = arena_str(&d->arena, str_first(str_of(hint), MAX_HINT)).p;
	if (finding.text)
		insert(d, finding);
}

/* As interval is of collect_interval, and sample_rate of default_sample_rate. */
static bool is_part(struct str whole, struct str part)
{
	if (part.n < 3 || part.n >= whole.n)
		return false;
	return (str_ends(whole, part) && whole.p[whole.n - part.n - 1] == '_') ||
	       (str_starts(whole, part) && whole.p[part.n] == '_');
}

/* The one name that a word is part of, or the other way round; of several none is meant. */
static const char *kindred(struct str word, size_t group, const char *const *words, size_t n)
{
	struct str own = str_skip(word, group);
	const char *found = NULL;

	for (size_t i = 0; i < n; i++) {
		struct str other = str_skip(str_of(words[i]), group);

		if (!str_starts(str_of(words[i]), str_first(word, group)) ||
		    (!is_part(other, own) && !is_part(own, other)))
			continue;
		if (found)
			return NULL;
		found = words[i];
	}
	return found;
}

const char *diag_suggest(struct diags *d, struct str word, const char *const *words, size_t n)
{
	size_t dot = str_rfind(word, '.');
	size_t own = word.n - (dot < word.n ? dot : 0); /* discovery.ec2 is no discovery.dns */
	unsigned int limit = own < 4 ? 1 : own < 8 ? 2 : 3, best = limit + 1;
	const char *nearest = NULL;

	/* Nobody will read it. */
	if (d->list.n >= MAX_FINDINGS)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		unsigned int distance = str_distance(word, str_of(words[i]), limit);

		if (distance < best) {
			best = distance;
			nearest = words[i];
		}
	}
	if (!nearest)
		nearest = kindred(word, dot < word.n ? dot + 1 : 0, words, n);
	return nearest ? arena_printf(&d->arena, "did you mean \"%s\"?", nearest) : NULL;
}
