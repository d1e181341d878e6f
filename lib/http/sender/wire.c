/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in wire.h. Fields follow each other without names. A text is its length and its bytes;
 * one that is absent has the length ABSENT. */
#include "http/sender/wire.h"

#include "base/check.h"

#include <errno.h>

#define ABSENT      UINT32_MAX
#define MAX_HEADERS 4096u

#define CONFIG_INSECURE  1u
#define CONFIG_ENV_PROXY 2u
#define CONFIG_REDIRECTS 4u
#define CONFIG_HTTP2     8u

#define REQUEST_HTTP2        1u
#define REQUEST_UNCOMPRESSED 2u
#define REQUEST_SMALL        4u
#define REQUEST_OWN          8u

/* --- Writing --- */

static void put(struct buf *b, uint64_t n)
{
	buf_append(b, &n, sizeof(n));
}

static void put_text(struct buf *b, struct str s)
{
	uint32_t n = s.p ? (uint32_t)s.n : ABSENT;

	if (s.p && s.n >= WIRE_MAX_REQUEST)
		b->failed = true;
	buf_append(b, &n, sizeof(n));
	if (s.p && !b->failed)
		buf_append(b, s.p, s.n);
}

/* Of a server, which may hold anything: what is no line becomes one. */
static void put_line(struct buf *b, struct str s)
{
	size_t at;

	put_text(b, s);
	at = b->n - (b->failed || !s.p ? 0 : s.n);
	for (; at < b->n; at++)
		if ((unsigned char)b->p[at] < ' ' || b->p[at] == 0x7f)
			b->p[at] = ' ';
}

static void put_headers(struct buf *b, const struct http_header *headers, size_t n)
{
	b->failed |= n >= MAX_HEADERS;
	put(b, n);
	for (size_t i = 0; i < n; i++) {
		put_text(b, headers[i].name);
		put_text(b, headers[i].value);
	}
}

static uint64_t config_flags(const struct http_config *c)
{
	return (c->insecure_skip_verify ? CONFIG_INSECURE : 0) |
	       (c->proxy_from_environment ? CONFIG_ENV_PROXY : 0) |
	       (c->follow_redirects ? CONFIG_REDIRECTS : 0) | (c->enable_http2 ? CONFIG_HTTP2 : 0);
}

static uint64_t request_flags(const struct http_request *q)
{
	return (q->http2 ? REQUEST_HTTP2 : 0) | (q->uncompressed ? REQUEST_UNCOMPRESSED : 0) |
	       (q->small ? REQUEST_SMALL : 0) | (q->own_connection ? REQUEST_OWN : 0);
}

static uint64_t calls_of(const struct http_request *q)
{
	return (q->left ? WIRE_CALLS_LEFT : 0) | (q->begun ? WIRE_CALLS_BEGUN : 0) |
	       (q->data ? WIRE_CALLS_DATA : 0) | (q->read ? WIRE_CALLS_READ : 0);
}

#define CONFIG_TEXTS 16
#define OAUTH2_TEXTS 4

/* In the order in which they cross. */
static void config_texts(struct http_config *c, struct str *texts[CONFIG_TEXTS])
{
	struct str *const all[CONFIG_TEXTS] = {
		&c->bearer_token,
		&c->basic_username,
		&c->basic_password,
		&c->authorization_type,
		&c->authorization_credentials,
		&c->proxy_url,
		&c->no_proxy,
		&c->ca_pem,
		&c->ca_file,
		&c->cert_pem,
		&c->cert_file,
		&c->key_pem,
		&c->key_file,
		&c->server_name,
		&c->min_version,
		&c->unix_socket,
	};

	memcpy(texts, all, sizeof(all));
}

static void oauth2_texts(struct http_oauth2 *o, struct str *texts[OAUTH2_TEXTS])
{
	texts[0] = &o->token_url;
	texts[1] = &o->client_id;
	texts[2] = &o->client_secret;
	texts[3] = &o->form;
}

static void put_config(struct buf *b, const struct http_config *config)
{
	struct http_config c = *config;
	struct str *texts[CONFIG_TEXTS];

	config_texts(&c, texts);
	put(b, config_flags(config));
	for (size_t i = 0; i < CONFIG_TEXTS; i++)
		put_text(b, *texts[i]);
	put_headers(b, config->headers, config->n_headers);
	put_headers(b, config->proxy_headers, config->n_proxy_headers);
}

static void put_oauth2(struct buf *b, const struct http_oauth2 *oauth2)
{
	struct http_oauth2 o;
	struct str *texts[OAUTH2_TEXTS];

	put(b, oauth2 != NULL);
	if (!oauth2)
		return;
	o = *oauth2;
	oauth2_texts(&o, texts);
	put_config(b, &o.server);
	for (size_t i = 0; i < OAUTH2_TEXTS; i++)
		put_text(b, *texts[i]);
}

void wire_put_request(struct buf *b, const struct http_config *config, const struct http_request *q)
{
	put_config(b, config);
	put_oauth2(b, config->oauth2);
	put(b, request_flags(q));
	put(b, calls_of(q));
	put(b, q->read ? q->read_bytes : q->body.n);
	put(b, (uint64_t)q->max_send);
	put(b, (uint64_t)q->timeout_ms);
	put(b, (uint64_t)q->connect_timeout_ms);
	put(b, (uint64_t)q->stall_ms);
	put(b, q->max_response);
	put_text(b, str_of(q->method));
	put_text(b, q->url);
	put_text(b, str_of(q->path));
	put_headers(b, q->headers, q->n_headers);
	put_headers(b, q->more_headers, q->n_more_headers);
	for (size_t i = 0; i < HTTP_WANTED; i++)
		put_text(b, str_of(q->wanted[i]));
}

void wire_put_answer(struct buf *b, const struct http_response *a)
{
	put(b, (uint64_t)a->result);
	put(b, (uint64_t)a->status);
	put(b, a->sent);
	put(b, a->token_refused);
	put(b, (uint64_t)a->retry_after_ms);
	put(b, (uint64_t)a->elapsed_ns);
	put_line(b, str_first(str_of(a->error ? a->error : ""), WIRE_MAX_ERROR - 1));
	put_line(b, a->content_type);
	for (size_t i = 0; i < HTTP_WANTED; i++)
		put_line(b, a->wanted[i]);
}

struct str wire_number(const uint64_t *value)
{
	return (struct str){(const char *)value, sizeof(*value)};
}

/* --- Reading --- */

struct reader {
	struct str rest;
	struct arena *arena;
	int error; /* the first; what is read after it is nothing */
};

static bool take(struct reader *r, void *to, size_t n)
{
	if (r->error == 0 && r->rest.n < n)
		r->error = -EBADMSG;
	if (r->error) {
		memset(to, 0, n);
		return false;
	}
	memcpy(to, r->rest.p, n);
	r->rest = str_skip(r->rest, n);
	return true;
}

static uint64_t get(struct reader *r)
{
	uint64_t n;

	take(r, &n, sizeof(n));
	return n;
}

static uint64_t get_below(struct reader *r, uint64_t end)
{
	uint64_t n = get(r);

	if (n < end)
		return n;
	r->error = r->error ? r->error : -EBADMSG;
	return 0;
}

static struct str get_text(struct reader *r)
{
	struct str s;
	uint32_t n;

	if (!take(r, &n, sizeof(n)) || n == ABSENT)
		return STR_NULL;
	if (n > r->rest.n) {
		r->error = -EBADMSG;
		return STR_NULL;
	}
	s = n ? str_first(r->rest, n) : STR("");
	r->rest = str_skip(r->rest, n);
	return s;
}

/* With its NUL, in the arena; NULL where it is absent. */
static const char *get_word(struct reader *r)
{
	struct str s = get_text(r), copy;

	if (!s.p || r->error)
		return NULL;
	if (memchr(s.p, '\0', s.n)) {
		r->error = -EBADMSG;
		return NULL;
	}
	copy = arena_str(r->arena, s);
	r->error = copy.p ? 0 : -ENOMEM;
	return copy.p;
}

static void get_headers(struct reader *r, const struct http_header **ret, size_t *ret_n)
{
	size_t n = (size_t)get_below(r, MAX_HEADERS);
	struct http_header *headers = n ? arena_array(r->arena, struct http_header, n) : NULL;

	if (n && !headers)
		r->error = r->error ? r->error : -ENOMEM;
	for (size_t i = 0; i < n && !r->error; i++) {
		headers[i].name = get_text(r);
		headers[i].value = get_text(r);
	}
	*ret = headers;
	*ret_n = r->error ? 0 : n;
}

static void get_config(struct reader *r, struct http_config *c)
{
	struct str *texts[CONFIG_TEXTS];
	uint64_t flags = get_below(r, 2 * CONFIG_HTTP2);

	c->insecure_skip_verify = flags & CONFIG_INSECURE;
	c->proxy_from_environment = flags & CONFIG_ENV_PROXY;
	c->follow_redirects = flags & CONFIG_REDIRECTS;
	c->enable_http2 = flags & CONFIG_HTTP2;
	config_texts(c, texts);
	for (size_t i = 0; i < CONFIG_TEXTS; i++)
		*texts[i] = get_text(r);
	get_headers(r, &c->headers, &c->n_headers);
	get_headers(r, &c->proxy_headers, &c->n_proxy_headers);
}

static const struct http_oauth2 *get_oauth2(struct reader *r)
{
	struct str *texts[OAUTH2_TEXTS];
	struct http_oauth2 *o;

	if (!get_below(r, 2))
		return NULL;
	o = arena_array(r->arena, struct http_oauth2, 1);
	if (!o) {
		r->error = -ENOMEM;
		return NULL;
	}
	*o = (struct http_oauth2){.server = {.follow_redirects = false}};
	get_config(r, &o->server);
	oauth2_texts(o, texts);
	for (size_t i = 0; i < OAUTH2_TEXTS; i++)
		*texts[i] = get_text(r);
	return o;
}

static void get_fields(struct reader *r, struct wire_request *ret)
{
	struct http_request *q = &ret->request;
	uint64_t flags = get_below(r, 2 * REQUEST_OWN);

	q->http2 = flags & REQUEST_HTTP2;
	q->uncompressed = flags & REQUEST_UNCOMPRESSED;
	q->small = flags & REQUEST_SMALL;
	q->own_connection = flags & REQUEST_OWN;
	ret->calls = (uint32_t)get_below(r, 2 * WIRE_CALLS_READ);
	ret->body_bytes = get_below(r, INT64_MAX);
	q->max_send = (int64_t)get_below(r, INT64_MAX);
	q->timeout_ms = (int64_t)get_below(r, INT64_MAX);
	q->connect_timeout_ms = (int64_t)get_below(r, INT64_MAX);
	q->stall_ms = (int64_t)get_below(r, INT64_MAX);
	q->max_response = get(r);
	q->method = get_word(r);
	q->url = get_text(r);
	q->path = get_word(r);
	get_headers(r, &q->headers, &q->n_headers);
	get_headers(r, &q->more_headers, &q->n_more_headers);
	for (size_t i = 0; i < HTTP_WANTED; i++)
		q->wanted[i] = get_word(r);
}

int wire_get_request(struct str message, struct wire_request *ret)
{
	struct wire_request q = {.arena = ARENA_NULL};
	struct reader r = {.rest = arena_str(&q.arena, message), .arena = &q.arena};

	if (!r.rest.p)
		return -ENOMEM;
	get_config(&r, &q.config);
	q.config.oauth2 = get_oauth2(&r);
	get_fields(&r, &q);
	if (r.error == 0 && (r.rest.n || !q.request.method || !q.request.url.p))
		r.error = -EBADMSG;
	if (r.error) {
		arena_free(&q.arena);
		return r.error;
	}
	*ret = q;
	return 0;
}

void wire_request_fini(struct wire_request *q)
{
	arena_free(&q->arena);
}

static bool is_line(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
			return false;
	return true;
}

static struct str get_line(struct reader *r)
{
	struct str s = get_text(r);

	if (!is_line(s))
		r->error = r->error ? r->error : -EBADMSG;
	return s;
}

int wire_get_answer(struct str message, struct http_response *ret, char text[WIRE_MAX_ERROR])
{
	struct reader r = {.rest = message};
	struct http_response a = {0};
	int64_t result = (int64_t)get(&r);
	struct str error;

	a.status = (int)get_below(&r, 1000);
	a.sent = get_below(&r, 2);
	a.token_refused = get_below(&r, 2);
	a.retry_after_ms = (int64_t)get(&r);
	a.elapsed_ns = (int64_t)get_below(&r, INT64_MAX);
	error = get_line(&r);
	a.content_type = get_line(&r);
	for (size_t i = 0; i < HTTP_WANTED; i++)
		a.wanted[i] = get_line(&r);
	/* An answer has a status, and what is none a cause. */
	if (r.error == 0 && (r.rest.n || error.n >= WIRE_MAX_ERROR || result > 0 ||
			     result < -4095 || (a.status == 0) != (result < 0) ||
			     a.retry_after_ms < -1 || a.retry_after_ms > HTTP_MAX_RETRY_AFTER_MS))
		r.error = -EBADMSG;
	if (r.error)
		return r.error;
	if (error.n)
		memcpy(text, error.p, error.n);
	text[error.n] = '\0';
	a.result = (int)result;
	a.error = text;
	*ret = a;
	return 0;
}

bool wire_get_number(struct str message, uint64_t *ret)
{
	if (message.n != sizeof(*ret))
		return false;
	memcpy(ret, message.p, sizeof(*ret));
	return true;
}

bool wire_split(struct str message, struct str *ret_piece, struct str *ret_answer)
{
	struct str rest = str_skip(message, sizeof(uint64_t));
	uint64_t n;

	if (!wire_get_number(str_first(message, sizeof(n)), &n) || n > rest.n)
		return false;
	*ret_piece = str_first(rest, (size_t)n);
	*ret_answer = str_skip(rest, (size_t)n);
	return true;
}
