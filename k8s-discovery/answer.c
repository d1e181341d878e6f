/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and watch events. Contracts in answer.h. */
#include "answer.h"

#include <errno.h>
#include <stdlib.h>

static void printable(struct str s, char *out, size_t n)
{
	size_t used = 0;

	for (size_t i = 0; i < s.n && used + 1 < n; i++)
		out[used++] = s.p[i] >= ' ' && s.p[i] != 0x7f ? s.p[i] : ' ';
	out[used] = '\0';
}

void status_text(struct str body, char *out, size_t n)
{
	json_auto_t *root = json_loadb(body.p ? body.p : "", body.n, 0, NULL);
	const json_t *message = json_object_get(root, "message");

	if (message && json_is_string(message))
		printable((struct str){json_string_value(message), json_string_length(message)}, out,
			  n);
	else
		printable(str_trim(str_first(body, 160)), out, n);
}

static int not_ours(struct str body, struct error *err)
{
	char quote[161];

	printable(str_trim(str_first(body, 160)), quote, sizeof(quote));
	return error_set(err, -EPROTO,
			 "the answer is not what a Kubernetes API server sends (is api_server right, "
			 "or a proxy between?): it begins with \"%s\"",
			 quote);
}

static char *copy_string(const json_t *object, const char *name)
{
	const json_t *s = json_object_get(object, name);

	return str_dup(s && json_is_string(s)
			       ? (struct str){json_string_value(s), json_string_length(s)}
			       : STR(""));
}

int page_parse(struct str body, struct page *ret, struct error *err)
{
	json_auto_t *root = json_loadb(body.p ? body.p : "", body.n, 0, NULL);
	const json_t *items = json_object_get(root, "items"), *item, *metadata;
	struct page page = {0};
	size_t i;
	int r = 0;

	metadata = json_object_get(root, "metadata");
	/* An empty list is "items": null with some servers. */
	if (!metadata || (!json_is_array(items) && !json_is_null(items)))
		return not_ours(body, err);
	page.resource_version = copy_string(metadata, "resourceVersion");
	page.next = copy_string(metadata, "continue");
	if (!page.resource_version || !page.next)
		r = -ENOMEM;
	json_array_foreach(items, i, item)
	{
		struct pod pod;
		int parsed = r == 0 ? pod_parse(item, &pod) : -EINVAL;

		if (parsed == -ENOMEM)
			r = parsed;
		if (parsed == 0 && !vec_push(&page.pods, pod)) {
			pod_fini(&pod);
			r = -ENOMEM;
		}
	}
	if (r < 0)
		page_fini(&page);
	else
		*ret = page;
	return r;
}

void page_fini(struct page *page)
{
	vec_each(&page->pods, pod)
		pod_fini(pod);
	vec_free(&page->pods);
	free(page->resource_version);
	free(page->next);
}

static void read_version(const json_t *object, struct event *e)
{
	const json_t *v = json_object_get(json_object_get(object, "metadata"), "resourceVersion");

	if (v && json_is_string(v) && json_string_length(v) < sizeof(e->resource_version))
		memcpy(e->resource_version, json_string_value(v), json_string_length(v) + 1);
}

int event_parse(struct str line, struct event *ret, struct error *err)
{
	json_auto_t *root = json_loadb(line.p ? line.p : "", line.n, 0, NULL);
	const json_t *type = json_object_get(root, "type"), *object = json_object_get(root, "object");
	struct str word = str_of(type ? json_string_value(type) : NULL);
	struct event e = {0};
	int r = 0;

	if (!word.n || !json_is_object(object))
		return not_ours(line, err);
	read_version(object, &e);
	if (str_is(word, "ADDED") || str_is(word, "MODIFIED")) {
		e.kind = EVENT_SET;
		r = pod_parse(object, &e.pod);
	} else if (str_is(word, "DELETED")) {
		e.kind = EVENT_DELETED;
		r = pod_parse(object, &e.pod);
	} else if (str_is(word, "BOOKMARK")) {
		e.kind = EVENT_BOOKMARK;
	} else {
		const json_t *message = json_object_get(object, "message");

		e.kind = EVENT_ERROR;
		e.code = (int)json_integer_value(json_object_get(object, "code"));
		printable(str_of(message ? json_string_value(message) : "no message"), e.text,
			  sizeof(e.text));
	}
	if (r == -EINVAL)
		return not_ours(line, err);
	if (r == 0)
		*ret = e;
	return r;
}

void event_fini(struct event *event)
{
	pod_fini(&event->pod);
}
