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

int readable_init(struct readable *r, const struct http_config *config, bool tls, struct error *err)
{
	struct http_config *c = &r->config;
	int rc;

	*r = (struct readable){.config = *config};
	rc = secrets(r, c, err);
	if (rc == 0)
		rc = pem(r, 1, &c->ca_pem, &c->ca_file, tls, err);
	if (rc == 0)
		rc = pem(r, 2, &c->cert_pem, &c->cert_file, tls, err);
	return rc ? rc : pem(r, 3, &c->key_pem, &c->key_file, tls, err);
}

void readable_fini(struct readable *r)
{
	for (size_t i = 0; i < READABLE_TEXTS; i++)
		buf_free(&r->texts[i]);
}
