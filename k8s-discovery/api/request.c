/* SPDX-License-Identifier: Apache-2.0 */
/* URLs and words. Contract in request.h. */
#include "k8s-discovery/api/request.h"

#include "k8s-discovery/api/stream.h"

#include <inttypes.h>

#define PAGE_OBJECTS 500

static void parameter(struct buf *url, const char *name, struct str value)
{
	if (value.n == 0)
		return;
	buf_printf(url, "&%s=", name);
	buf_percent_append(url, value, "");
}

static void resource(struct buf *url, const struct api *api, const struct selection *what)
{
	const struct kind_info *kind = &kinds[what->kind];

	buf_printf(url, "%.*s%s/", STR_FMT(api->server), kind->path);
	if (kind->namespaced && what->namespace_.n) {
		buf_printf(url, "namespaces/");
		buf_percent_append(url, what->namespace_, "");
		buf_putc(url, '/');
	}
	buf_printf(url, "%s?", kind->resource);
}

static void selectors(struct buf *url, const struct selection *what)
{
	parameter(url, "labelSelector", what->label);
	parameter(url, "fieldSelector", what->field);
}

void request_list(struct buf *url, const struct api *api, const struct selection *what,
		  struct str next, bool any_age, bool whole)
{
	resource(url, api, what);
	buf_printf(url, "limit=%d", whole ? 0 : PAGE_OBJECTS);
	parameter(url, "continue", next);
	if (any_age && next.n == 0)
		parameter(url, "resourceVersion", STR("0"));
	selectors(url, what);
}

void request_watch(struct buf *url, const struct api *api, const struct selection *what,
		   struct str version, uint32_t seconds)
{
	resource(url, api, what);
	buf_printf(url, "watch=true&allowWatchBookmarks=true&timeoutSeconds=%" PRIu32, seconds);
	parameter(url, "resourceVersion", version);
	selectors(url, what);
}

void request_initial(struct buf *url, const struct api *api, const struct selection *what,
		     uint32_t seconds)
{
	request_watch(url, api, what, STR_NULL, seconds);
	buf_printf(url, "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
}

void request_describe(char *out, size_t n, const struct api *api, const struct selection *what,
		      const struct http_response *r)
{
	char said[256];

	if (r->status == 0) {
		snprintf(out, n, "%.*s: %s", STR_FMT(api->server), r->error);
		return;
	}
	status_text(r->body, said, sizeof(said));
	if (r->status == 401)
		snprintf(out, n,
			 "%.*s answered 401: %s; the token is not accepted: check "
			 "bearer_token_file or the service account",
			 STR_FMT(api->server), said);
	else if (r->status == 403)
		snprintf(out, n,
			 "%.*s answered 403: %s; the service account needs the verbs list and "
			 "watch on %s",
			 STR_FMT(api->server), said, kinds[what->kind].resource);
	else
		snprintf(out, n, "%.*s answered %d: %s", STR_FMT(api->server), r->status, said);
}
