/* SPDX-License-Identifier: Apache-2.0 */
/* A target's URL and labels. Contract in endpoint.h. */
#include "scrape/endpoint.h"

#include "abi/target-selector.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PARAM STR("__param_")

bool endpoint_keeps(struct str name)
{
	return !str_starts(name, STR("__meta_")) || target_service_reads(name);
}

static struct str label_or(const struct target_row *row, const char *name, struct str absent)
{
	struct str value = target_label_value(row, name);

	return value.n ? value : absent;
}

/* --- Labels --- */

static int add_label(struct endpoint *e, struct str name, struct str value, struct error *err)
{
	if (!value.p)
		return -ENOMEM;
	if (!value.n)
		return 0;
	if (e->n_labels == ENDPOINT_MAX_LABELS)
		return error_set(err, -EINVAL, "the target has more than %d labels",
				 ENDPOINT_MAX_LABELS);
	e->labels[e->n_labels++] = (struct target_label){name, value};
	return 0;
}

/* One that the target does not have itself. */
static int add_missing(struct endpoint *e, const struct target_row *row, const char *name,
		       struct str value, struct error *err)
{
	if (target_label_value(row, name).n)
		return 0;
	return add_label(e, str_of(name), value, err);
}

static int set_labels(struct endpoint *e, const struct settings *s, const struct target_row *row,
		      const struct kind *kind, struct str address, struct error *err)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < row->n_labels; i++)
		if (!str_starts(row->labels[i].name, STR("__")))
			r = add_label(e, row->labels[i].name, row->labels[i].value, err);
	if (r == 0)
		r = add_label(e, STR("__name__"), label_or(row, "__name__", kind->name), err);
	if (r == 0)
		r = add_missing(e, row, "instance", address, err);
	if (r == 0)
		r = add_missing(e, row, "job", s->job_name, err);
	if (r == 0)
		r = add_missing(e, row, "service_name",
				target_service_name(&e->arena, "", row->labels, row->n_labels),
				err);
	qsort(e->labels, e->n_labels, sizeof(*e->labels), target_label_compare);
	return r;
}

/* --- URL --- */

/* "host" or "[::1]" gets the scheme's port. */
static struct str address_of(struct endpoint *e, const struct target_row *row, struct str scheme,
			     struct error *err)
{
	struct str address = target_label_value(row, "__address__");
	size_t colon = str_rfind(address, ':'), bracket = str_rfind(address, ']');
	bool has_port = colon < address.n && (bracket == address.n || bracket < colon);

	if (!address.n) {
		error_set(err, -EINVAL, "the target has no __address__");
		return STR_NULL;
	}
	for (size_t i = 0; i < address.n; i++)
		if (strchr("/?#@\\ ", address.p[i])) {
			error_set(err, -EINVAL, "\"%.*s\" is not an address; write host:port",
				  STR_FMT(str_first(address, 100)));
			return STR_NULL;
		}
	if (has_port)
		return address;
	return str_of(arena_printf(&e->arena, "%.*s:%d", STR_FMT(address),
				   str_is(scheme, "https") ? 443 : 80));
}

static void put_path(struct buf *out, struct str path)
{
	while (path.n && path.p[0] == '/')
		path = str_skip(path, 1);
	while (path.n && path.p[path.n - 1] == '/')
		path.n--;
	if (path.n) {
		buf_putc(out, '/');
		buf_percent_append(out, path, "/:@!$&'()*+,;=%");
	}
}

static void put_param(struct buf *out, char *separator, struct str name, struct str value)
{
	buf_putc(out, *separator);
	*separator = '&';
	buf_percent_append(out, name, "");
	buf_putc(out, '=');
	buf_percent_append(out, value, "");
}

/* What the target has for a parameter, STR_NULL if nothing. */
static struct str param_of(const struct target_row *row, struct str name)
{
	for (uint32_t i = 0; i < row->n_labels; i++)
		if (str_starts(row->labels[i].name, PARAM) &&
		    str_eq(str_skip(row->labels[i].name, PARAM.n), name))
			return row->labels[i].value;
	return STR_NULL;
}

/* Parameters of the settings, in whose place a label __param_NAME stands for the first value. */
static void put_query(struct buf *out, const struct settings *s, const struct target_row *row,
		      const struct kind *kind)
{
	char separator = '?', seconds[24];

	for (size_t i = 0; i < s->n_params; i++) {
		const struct param *p = &s->params[i];
		bool first = i == 0 || !str_eq(s->params[i - 1].name, p->name);
		struct str value = first ? param_of(row, p->name) : STR_NULL;

		if (kind->timed && str_is(p->name, "seconds"))
			continue;
		put_param(out, &separator, p->name, value.n ? value : p->value);
	}
	for (uint32_t i = 0; i < row->n_labels; i++) {
		struct str param = str_skip(row->labels[i].name, PARAM.n);
		bool known = !str_starts(row->labels[i].name, PARAM) || !param.n ||
			     (kind->timed && str_is(param, "seconds"));

		for (size_t k = 0; !known && k < s->n_params; k++)
			known = str_eq(s->params[k].name, param);
		if (!known)
			put_param(out, &separator, param, row->labels[i].value);
	}
	if (!kind->timed)
		return;
	snprintf(seconds, sizeof(seconds), "%lld", (long long)s->seconds);
	put_param(out, &separator, STR("seconds"), str_of(seconds));
}

static int set_url(struct endpoint *e, const struct settings *s, const struct target_row *row,
		   const struct kind *kind, struct str address, struct error *err)
{
	struct str scheme = label_or(row, "__scheme__", s->scheme);
	struct str path = label_or(row, "__profile_path__", kind->path);
	const char *fault;

	buf_str_append(&e->url, scheme);
	buf_str_append(&e->url, STR("://"));
	buf_str_append(&e->url, address);
	put_path(&e->url, label_or(row, "__profile_path_prefix__", s->path_prefix));
	put_path(&e->url, path);
	if (str_ends(path, STR("/")))
		buf_putc(&e->url, '/');
	put_query(&e->url, s, row, kind);
	if (e->url.failed)
		return -ENOMEM;
	fault = http_url_fault(buf_str(&e->url));
	return fault ? error_set(err, -EINVAL, "the URL \"%.*s\" %s",
				 STR_FMT(str_first(buf_str(&e->url), 200)), fault)
		     : 0;
}

/* With its length, so that no two lists of texts are the same bytes. */
static void digest_add(struct sha256 *digest, struct str s)
{
	uint64_t n = s.n;

	sha256_add(digest, &n, sizeof(n));
	sha256_add(digest, s.p, s.n);
}

void endpoint_identity(const struct endpoint *e, unsigned char ret[SHA256_BYTES])
{
	struct sha256 digest;

	sha256_init(&digest);
	digest_add(&digest, buf_str(&e->url));
	for (uint32_t i = 0; i < e->n_labels; i++) {
		digest_add(&digest, e->labels[i].name);
		digest_add(&digest, e->labels[i].value);
	}
	sha256_finish(&digest, ret);
}

int endpoint_init(struct endpoint *e, const struct settings *s, const struct target_row *row,
		  const struct kind *kind, struct error *err)
{
	struct str address;
	int r;

	e->url = BUF_NULL;
	e->arena = ARENA_NULL;
	e->n_labels = 0;
	address = address_of(e, row, label_or(row, "__scheme__", s->scheme), err);
	if (!address.p)
		return err->code ? err->code : -ENOMEM;
	r = set_url(e, s, row, kind, address, err);
	if (r == 0)
		r = set_labels(e, s, row, kind, address, err);
	return r;
}

void endpoint_fini(struct endpoint *e)
{
	buf_free(&e->url);
	arena_free(&e->arena);
}
