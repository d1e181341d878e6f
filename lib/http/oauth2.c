/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in oauth2.h. A server is not trusted with more than the token: what else its answer
 * holds is told in one line, and not read further than that takes. */
#include "http/oauth2.h"

#include "base/clock.h"
#include "base/cleanup.h"
#include "http/transfer.h"

#include <errno.h>
#include <jansson.h>
#include <strings.h>

#define ANSWER_BYTES (64u << 10)
#define ASK_MS       (HTTP_TOKEN_MS / 2) /* in one style and in the other */
#define EARLY_NS     (10 * NS_PER_SEC) /* a token that is about to expire serves no more */

/* --- Asking --- */

static void add(struct sha256 *digest, struct str s)
{
	uint64_t n = s.p ? s.n : UINT64_MAX;

	sha256_add(digest, &n, sizeof(n));
	if (s.p)
		sha256_add(digest, s.p, s.n);
}

void oauth2_identity(const struct http_oauth2 *o, unsigned char ret[SHA256_BYTES])
{
	const struct http_config *c = &o->server;
	const struct str texts[] = {
		o->token_url,     o->client_id,  o->client_secret, o->client_secret_file,
		o->form,          c->proxy_url,  c->no_proxy,      c->ca_pem,
		c->ca_file,       c->cert_pem,   c->cert_file,     c->key_pem,
		c->key_file,      c->server_name, c->min_version,
	};
	struct sha256 digest;

	sha256_init(&digest);
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		add(&digest, texts[i]);
	for (size_t i = 0; i < c->n_proxy_headers; i++) {
		add(&digest, c->proxy_headers[i].name);
		add(&digest, c->proxy_headers[i].value);
	}
	sha256_add(&digest, &c->insecure_skip_verify, sizeof(c->insecure_skip_verify));
	sha256_add(&digest, &c->proxy_from_environment, sizeof(c->proxy_from_environment));
	sha256_finish(&digest, ret);
}

static void put_credentials(struct oauth2_question *q, struct str id, struct str secret,
			    enum oauth2_style style)
{
	struct buf both = BUF_NULL;

	if (style == OAUTH2_IN_FORM) {
		buf_str_append(&q->form, STR("&client_id="));
		buf_percent_append(&q->form, id, "");
		buf_str_append(&q->form, STR("&client_secret="));
		buf_percent_append(&q->form, secret, "");
		return;
	}
	/* Each encoded, and so without a colon (section 2.3.1). */
	buf_percent_append(&both, id, "");
	buf_putc(&both, ':');
	buf_percent_append(&both, secret, "");
	buf_str_append(&q->authorization, STR("Basic "));
	buf_base64_append(&q->authorization, buf_str(&both), BUF_BASE64);
	q->authorization.failed |= both.failed;
	buf_free(&both);
}

int oauth2_question_init(struct oauth2_question *q, const struct http_oauth2 *o,
			 enum oauth2_style style, struct error *err)
{
	_cleanup_(buf_free) struct buf scratch = BUF_NULL;
	struct str secret;
	int r;

	*q = (struct oauth2_question){.request = {.method = "POST", .url = o->token_url}};
	r = config_secret(o->client_secret, o->client_secret_file, &scratch, &secret, err);
	if (r < 0)
		return r;
	buf_str_append(&q->form, STR("grant_type=client_credentials"));
	buf_str_append(&q->form, o->form);
	put_credentials(q, o->client_id, secret, style);
	if (q->form.failed || q->authorization.failed)
		return -ENOMEM;
	q->headers[0] = (struct http_header){STR("Content-Type"),
					     STR("application/x-www-form-urlencoded")};
	q->headers[1] = (struct http_header){STR("Accept"), STR("application/json")};
	q->headers[2] = (struct http_header){STR("Authorization"), buf_str(&q->authorization)};
	q->request.headers = q->headers;
	q->request.n_headers = style == OAUTH2_IN_HEADER ? 3 : 2;
	q->request.body = buf_str(&q->form);
	q->request.timeout_ms = ASK_MS;
	q->request.max_response = ANSWER_BYTES;
	return 0;
}

void oauth2_question_fini(struct oauth2_question *q)
{
	buf_free(&q->form);
	buf_free(&q->authorization);
}

/* --- The answer --- */

static const char *word(const json_t *root, const char *name)
{
	return json_string_value(json_object_get(root, name));
}

/* Whoever does not know the client may not have seen its secret. Of another fault the first answer
 * tells. */
bool oauth2_refuses_style(const struct http_response *answer)
{
	json_t *root;
	struct str fault;
	bool refuses;

	if (answer->status != 400)
		return answer->status == 401;
	root = json_loadb(answer->body.p ? answer->body.p : "", answer->body.n, 0, NULL);
	fault = str_of(word(root, "error"));
	refuses = !fault.n || str_is(fault, "invalid_client") || str_is(fault, "invalid_request");
	json_decref(root);
	return refuses;
}

/* What a server says of itself, in one line. */
static void put_line(struct buf *b, const char *text)
{
	for (size_t i = 0; text && text[i] && i < 200; i++)
		buf_putc(b, (unsigned char)text[i] < ' ' || text[i] == 0x7f ? ' ' : text[i]);
}

static int refusal(const struct http_response *answer, const json_t *root, struct str peer,
		   struct error *err)
{
	_cleanup_(buf_free) struct buf said = BUF_NULL;

	put_line(&said, word(root, "error"));
	if (word(root, "error_description")) {
		buf_str_append(&said, STR(": "));
		put_line(&said, word(root, "error_description"));
	}
	return error_set(err, -EACCES,
			 "%.*s gives no token (status %d%s%.*s); are client_id, client_secret and "
			 "scopes of oauth2 right?",
			 STR_FMT(str_first(peer, 200)), answer->status, said.n ? ", " : "",
			 STR_FMT(buf_str(&said)));
}

/* Seconds, which some servers write as a text. */
static int64_t serves(const json_t *root)
{
	const json_t *in = json_object_get(root, "expires_in");
	struct str text = str_of(json_string_value(in));
	uint64_t s = json_is_number(in) && json_number_value(in) > 0
			     ? (uint64_t)(json_number_value(in) < 1e9 ? json_number_value(in) : 1e9)
			     : 0;

	if (s == 0 && !str_u64(text, &s))
		return INT64_MAX;
	s = s < 1000000000 ? s : 1000000000;
	return (int64_t)s * NS_PER_SEC - EARLY_NS;
}

static int token(const json_t *root, struct str peer, struct buf *ret, struct error *err)
{
	const char *type = word(root, "token_type"), *value = word(root, "access_token");

	if (!value || !*value)
		return error_set(err, -EPROTO,
				 "%.*s answers without an access_token; is token_url of oauth2 "
				 "right?",
				 STR_FMT(str_first(peer, 200)));
	buf_clear(ret);
	for (const char *c = value; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return error_set(err, -EPROTO,
					 "%.*s answers with an access_token that no header can "
					 "hold",
					 STR_FMT(str_first(peer, 200)));
	buf_printf(ret, "%s %s", !type || strcasecmp(type, "bearer") == 0 ? "Bearer" : type, value);
	return ret->failed ? -ENOMEM : 0;
}

int oauth2_answer(const struct http_response *answer, struct str peer, struct buf *ret_header,
		  int64_t *ret_serves_ns, struct error *err)
{
	json_t *root;
	int r;

	if (answer->status == 0)
		return error_set(err, answer->result, "no token: %.400s", answer->error);
	root = json_loadb(answer->body.p ? answer->body.p : "", answer->body.n, 0, NULL);
	if (answer->status < 200 || answer->status > 299)
		r = refusal(answer, root, peer, err);
	else
		r = token(root, peer, ret_header, err);
	if (r == 0)
		*ret_serves_ns = serves(root);
	json_decref(root);
	return r;
}
