/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in readable.h. */
#include "http/sender/readable.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "http/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#define MAX_PEM (4u << 20)

/* Of several ways to authenticate the first counts, as in config.c; no other's file is read. */
static int secrets(struct readable *r, struct http_config *c, struct error *err)
{
	struct str *const values[] = {&c->basic_password, &c->bearer_token,
				      &c->authorization_credentials};
	struct str *const paths[] = {&c->basic_password_file, &c->bearer_token_file,
				     &c->authorization_credentials_file};
	size_t at = c->basic_username.p || c->basic_password.p || c->basic_password_file.p ? 0
		    : c->bearer_token.p || c->bearer_token_file.p                          ? 1
											   : 2;
	int rc = config_secret(*values[at], *paths[at], &r->texts[0], values[at], err);

	for (size_t i = 0; i < 3; i++)
		*paths[i] = STR_NULL;
	return rc;
}

/* A file whose text is not given. */
static int pem(struct readable *r, size_t at, struct str *text, struct str *path, bool tls,
	       struct error *err)
{
	_cleanup_(freep) char *name = NULL;
	int rc;

	if (!path->n || text->p)
		return 0;
	name = str_dup(*path);
	if (!name)
		return -ENOMEM;
	rc = file_read(AT_FDCWD, name, &r->texts[at], MAX_PEM);
	if (rc < 0 && rc != -ENOMEM && !tls)
		return 0;
	if (rc < 0)
		return error_errno(err, rc, "TLS: %s of tls_config cannot be read", name);
	*text = r->texts[at].n ? buf_str(&r->texts[at]) : STR("");
	*path = STR_NULL;
	return 0;
}

/* Into the texts from `at` on. */
static int pems(struct readable *r, size_t at, struct http_config *c, bool tls, struct error *err)
{
	int rc = pem(r, at, &c->ca_pem, &c->ca_file, tls, err);

	if (rc == 0)
		rc = pem(r, at + 1, &c->cert_pem, &c->cert_file, tls, err);
	return rc ? rc : pem(r, at + 2, &c->key_pem, &c->key_file, tls, err);
}

static int of_token(struct readable *r, const struct http_oauth2 *oauth2, struct error *err)
{
	struct http_oauth2 *o = &r->oauth2;
	int rc;

	*o = *oauth2;
	r->config.oauth2 = o;
	rc = config_secret(o->client_secret, o->client_secret_file, &r->texts[4], &o->client_secret,
			   err);
	o->client_secret_file = STR_NULL;
	return rc ? rc : pems(r, 5, &o->server, http_is_https(o->token_url), err);
}

int readable_init(struct readable *r, const struct http_config *config, bool tls, struct error *err)
{
	int rc;

	*r = (struct readable){.config = *config};
	rc = secrets(r, &r->config, err);
	if (rc == 0)
		rc = pems(r, 1, &r->config, tls, err);
	return rc || !config->oauth2 ? rc : of_token(r, config->oauth2, err);
}

void readable_fini(struct readable *r)
{
	for (size_t i = 0; i < READABLE_TEXTS; i++)
		buf_free(&r->texts[i]);
}
