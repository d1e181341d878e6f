/* SPDX-License-Identifier: Apache-2.0 */
/* From an http_config to curl's options. Whoever names a CA means that one alone, so the system's
 * folder is switched off with it. A server_name other than the URL's host is had by asking curl for
 * that name and sending it to the real address (CONNECT_TO), since it has no option for the name in
 * TLS. */
#include "http/transfer.h"

#include "base/ascii.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_SECRET_FILE (64u << 10)

int config_failed(CURLcode code, const char *what, struct error *err)
{
	if (code == CURLE_OUT_OF_MEMORY)
		return -ENOMEM;
	return error_set(err, -EINVAL, "%s cannot be used: %s", what, curl_easy_strerror(code));
}

int config_str(CURL *easy, CURLoption option, struct str value, struct error *err)
{
	char *text;
	CURLcode code;

	if (!value.p)
		return 0;
	if (memchr(value.p, '\0', value.n))
		return error_set(err, -EINVAL, "a setting holds a NUL byte");
	text = str_dup(value);
	if (!text)
		return -ENOMEM;
	code = curl_easy_setopt(easy, option, text);
	free(text);
	return code == CURLE_OK ? 0 : config_failed(code, "a setting", err);
}

static bool is_token(struct str s)
{
	static const char others[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (!(ascii_is_alnum(c) || (c && strchr(others, c))))
			return false;
	}
	return s.n > 0;
}

/* Line ends and NUL would let a value become other headers. */
static bool is_field(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (((unsigned char)s.p[i] < 0x20 && s.p[i] != '\t') || s.p[i] == 0x7f)
			return false;
	return true;
}

int config_header(struct curl_slist **list, struct str name, struct str value, struct error *err)
{
	_cleanup_(buf_free) struct buf line = BUF_NULL;
	struct curl_slist *grown;

	if (!is_token(name))
		return error_set(err, -EINVAL, "\"%.*s\" is not the name of a header",
				 STR_FMT(name));
	if (!is_field(value))
		return error_set(err, -EINVAL, "the value of header %.*s holds a control character",
				 STR_FMT(name));
	/* Without a value: "Name:" keeps curl from sending it at all, "Name;" sends it empty. */
	if (!value.p)
		buf_printf(&line, "%.*s:", STR_FMT(name));
	else if (value.n == 0)
		buf_printf(&line, "%.*s;", STR_FMT(name));
	else
		buf_printf(&line, "%.*s: %.*s", STR_FMT(name), STR_FMT(value));
	buf_putc(&line, '\0');
	grown = line.failed ? NULL : curl_slist_append(*list, line.p);
	if (!grown)
		return -ENOMEM;
	*list = grown;
	return 0;
}

int config_secret(struct str value, struct str path, struct buf *scratch, struct str *ret,
		  struct error *err)
{
	_cleanup_(freep) char *name = NULL;
	int rc;

	*ret = value;
	if (!path.p)
		return 0;
	name = str_dup(path);
	if (!name)
		return -ENOMEM;
	rc = file_read(AT_FDCWD, name, scratch, MAX_SECRET_FILE);
	if (rc == -EACCES)
		return error_set(err, rc,
				 "user %u may not read the secret in %s; let this user or a group "
				 "of its read the file",
				 geteuid(), name);
	if (rc)
		return error_errno(err, rc, "cannot read the secret in %s", name);
	*ret = str_trim(buf_str(scratch));
	if (ret->n == 0)
		return error_set(err, -ENODATA, "the secret file %s is empty", name);
	return 0;
}

static int set_authorization(struct transfer *t, struct str type, struct str value,
			     struct error *err)
{
	_cleanup_(buf_free) struct buf line = BUF_NULL;

	buf_printf(&line, "%.*s %.*s", STR_FMT(type), STR_FMT(value));
	return line.failed ? -ENOMEM
			   : config_header(&t->headers, STR("Authorization"), buf_str(&line), err);
}

static int set_basic(struct transfer *t, const struct http_config *c, struct error *err)
{
	_cleanup_(buf_free) struct buf scratch = BUF_NULL;
	struct str password;
	int rc;

	rc = config_secret(c->basic_password, c->basic_password_file, &scratch, &password, err);
	if (rc)
		return rc;
	if (curl_easy_setopt(t->easy, CURLOPT_HTTPAUTH, CURLAUTH_BASIC) != CURLE_OK)
		return error_set(err, -ENOTSUP, "this libcurl has no basic authentication");
	rc = config_str(t->easy, CURLOPT_USERNAME,
			c->basic_username.p ? c->basic_username : STR(""), err);
	return rc ? rc : config_str(t->easy, CURLOPT_PASSWORD, password, err);
}

static int set_auth(struct transfer *t, const struct http_config *c, struct error *err)
{
	_cleanup_(buf_free) struct buf scratch = BUF_NULL;
	struct str type = STR("Bearer"), secret = STR_NULL;
	int rc = 0;

	if (c->basic_username.p || c->basic_password.p || c->basic_password_file.p)
		return set_basic(t, c, err);
	if (c->bearer_token.p || c->bearer_token_file.p) {
		rc = config_secret(c->bearer_token, c->bearer_token_file, &scratch, &secret, err);
	} else if (c->authorization_credentials.p || c->authorization_credentials_file.p) {
		if (c->authorization_type.n)
			type = c->authorization_type;
		rc = config_secret(c->authorization_credentials, c->authorization_credentials_file,
				   &scratch, &secret, err);
	}
	if (rc == 0 && secret.p)
		rc = set_authorization(t, type, secret, err);
	return rc;
}

static int set_blob(CURL *easy, CURLoption option, struct str pem, struct error *err)
{
	struct curl_blob blob = {(void *)(uintptr_t)pem.p, pem.n, CURL_BLOB_COPY};
	CURLcode code;

	if (!pem.p)
		return 0;
	code = curl_easy_setopt(easy, option, &blob);
	return code == CURLE_OK ? 0 : config_failed(code, "a PEM text of tls_config", err);
}

static const struct {
	const char *name;
	long version;
} tls_versions[] = {
	{"TLS10", CURL_SSLVERSION_TLSv1_0},
	{"TLS11", CURL_SSLVERSION_TLSv1_1},
	{"TLS12", CURL_SSLVERSION_TLSv1_2},
	{"TLS13", CURL_SSLVERSION_TLSv1_3},
};

static int set_min_version(struct transfer *t, struct str name, struct error *err)
{
	long version = name.p ? 0 : CURL_SSLVERSION_TLSv1_2;
	CURLcode code;

	for (size_t i = 0; i < sizeof(tls_versions) / sizeof(tls_versions[0]); i++)
		if (str_is(name, tls_versions[i].name))
			version = tls_versions[i].version;
	if (!version)
		return error_set(err, -EINVAL,
				 "\"%.*s\" is no TLS version; TLS10, TLS11, TLS12 and TLS13 are",
				 STR_FMT(name));
	code = curl_easy_setopt(t->easy, CURLOPT_SSLVERSION, version);
	return code == CURLE_OK ? 0 : config_failed(code, "min_version", err);
}

/* Asks for https://server_name and connects to the URL's own host. */
static int set_server_name(struct transfer *t, struct str server_name, struct error *err)
{
	_cleanup_(freep) char *name = str_dup(server_name), *target = NULL;
	struct buf line = BUF_NULL;
	char *url = NULL, *rewritten = NULL;
	CURLU *parts = curl_url();
	struct str port;
	CURLcode code;
	int rc = -ENOMEM;

	if (!parts || !name || curl_easy_getinfo(t->easy, CURLINFO_EFFECTIVE_URL, &url) != CURLE_OK)
		goto out;
	port = str_skip(str_of(t->peer), str_rfind(str_of(t->peer), ':') + 1);
	buf_printf(&line, "%s:%.*s:%s", name, STR_FMT(port), t->peer);
	target = buf_take(&line);
	t->connect_to = target ? curl_slist_append(NULL, target) : NULL;
	if (!t->connect_to)
		goto out;
	if (curl_url_set(parts, CURLUPART_URL, url, 0) != CURLUE_OK ||
	    curl_url_set(parts, CURLUPART_HOST, name, 0) != CURLUE_OK ||
	    curl_url_get(parts, CURLUPART_URL, &rewritten, 0) != CURLUE_OK) {
		rc = error_set(err, -EINVAL, "server_name \"%s\" is not a host name", name);
		goto out;
	}
	rc = config_header(&t->headers, STR("Host"), str_of(t->peer), err);
	if (rc)
		goto out;
	code = curl_easy_setopt(t->easy, CURLOPT_URL, rewritten);
	if (code == CURLE_OK)
		code = curl_easy_setopt(t->easy, CURLOPT_CONNECT_TO, t->connect_to);
	rc = code == CURLE_OK ? 0 : config_failed(code, "server_name", err);
out:
	curl_free(rewritten);
	curl_url_cleanup(parts);
	return rc;
}

/* Whom to trust. */
static int set_trust(struct transfer *t, const struct http_config *c, struct error *err)
{
	CURLcode code;
	int rc;

	if (c->insecure_skip_verify) {
		code = curl_easy_setopt(t->easy, CURLOPT_SSL_VERIFYPEER, 0L);
		if (code == CURLE_OK)
			code = curl_easy_setopt(t->easy, CURLOPT_SSL_VERIFYHOST, 0L);
		if (code != CURLE_OK)
			return config_failed(code, "tls_config", err);
	}
	/* curl would go on for a day with what the file once said. */
	code = curl_easy_setopt(t->easy, CURLOPT_CA_CACHE_TIMEOUT, 0L);
	if (code == CURLE_OK && (c->ca_pem.p || c->ca_file.p))
		code = curl_easy_setopt(t->easy, CURLOPT_CAPATH, NULL);
	if (code != CURLE_OK)
		return config_failed(code, "tls_config", err);
	rc = config_str(t->easy, CURLOPT_CAINFO, c->ca_file, err);
	return rc ? rc : set_blob(t->easy, CURLOPT_CAINFO_BLOB, c->ca_pem, err);
}

static int set_tls(struct transfer *t, const struct http_config *c, struct error *err)
{
	int rc = set_trust(t, c, err);

	if (rc == 0)
		rc = set_min_version(t, c->min_version, err);
	if (rc == 0)
		rc = config_str(t->easy, CURLOPT_SSLCERT, c->cert_file, err);
	if (rc == 0)
		rc = set_blob(t->easy, CURLOPT_SSLCERT_BLOB, c->cert_pem, err);
	if (rc == 0)
		rc = config_str(t->easy, CURLOPT_SSLKEY, c->key_file, err);
	if (rc == 0)
		rc = set_blob(t->easy, CURLOPT_SSLKEY_BLOB, c->key_pem, err);
	if (rc == 0 && c->server_name.n)
		rc = set_server_name(t, c->server_name, err);
	return rc;
}

/* An empty CURLOPT_PROXY keeps curl from looking into the environment. */
static int set_proxy(struct transfer *t, const struct http_config *c, struct error *err)
{
	int rc = 0;

	t->proxied = c->proxy_url.n > 0;
	for (size_t i = 0; rc == 0 && i < c->n_proxy_headers; i++)
		rc = config_header(&t->proxy_headers, c->proxy_headers[i].name,
				   c->proxy_headers[i].value, err);
	if (rc || c->proxy_from_environment)
		return rc;
	rc = config_str(t->easy, CURLOPT_PROXY, c->proxy_url.n ? c->proxy_url : STR(""), err);
	return rc ? rc : config_str(t->easy, CURLOPT_NOPROXY, c->no_proxy, err);
}

int config_apply(struct transfer *t, const struct http_config *c, struct error *err)
{
	CURLcode code;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < c->n_headers; i++)
		rc = config_header(&t->headers, c->headers[i].name, c->headers[i].value, err);
	if (rc == 0)
		rc = set_auth(t, c, err);
	if (rc == 0)
		rc = set_proxy(t, c, err);
	if (rc == 0)
		rc = set_tls(t, c, err);
	if (rc == 0)
		rc = config_str(t->easy, CURLOPT_UNIX_SOCKET_PATH, c->unix_socket, err);
	if (rc)
		return rc;
	code = curl_easy_setopt(t->easy, CURLOPT_FOLLOWLOCATION, c->follow_redirects ? 1L : 0L);
	if (code == CURLE_OK)
		code = curl_easy_setopt(t->easy, CURLOPT_HTTP_VERSION,
					c->enable_http2 ? (long)CURL_HTTP_VERSION_2TLS
							: (long)CURL_HTTP_VERSION_1_1);
	return code == CURLE_OK ? 0 : config_failed(code, "the configuration", err);
}
