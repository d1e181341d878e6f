/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in tls.h. */
#include "http-server/tls.h"

#include "abi/option.h"
#include "abi/value.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/x509.h>
#include <stdlib.h>

#define MAX_PEM ((size_t)256 << 10)
#define CHOSEN  "GnuTLS chooses versions and ciphers, as the machine is set up"

static const struct andiron_option tls[] = {
	OPTION(STRING, "cert_pem", NULL, "Certificate as PEM, with those between it and the root."),
	OPTION(STRING, "cert_file", NULL,
	       "File with the certificate; read at the start and at a reload."),
	OPTION(SECRET, "key_pem", NULL, "Key of the certificate as PEM."),
	OPTION(STRING, "key_file", NULL, "File with the key; read likewise."),
	OPTION(STRING, "client_ca_pem", NULL,
	       "Authorities, as PEM, that certificates of clients must come from."),
	OPTION(STRING, "client_ca_file", NULL, "File with them; read likewise."),
	OPTION(STRING, "client_auth_type", "\"NoClientCert\"",
	       "What clients must show: NoClientCert, RequestClientCert, RequireAnyClientCert, "
	       "VerifyClientCertIfGiven or RequireAndVerifyClientCert."),
	/* A text in the servers of Alloy's components, a list in its block http. */
	OPTION(STRINGS, "cipher_suites", NULL, "Accepted for Alloy's files.",
	       .flags = ANDIRON_OPTION_IGNORED | ANDIRON_OPTION_LENIENT, .effect = CHOSEN),
	OPTION(STRINGS, "curve_preferences", NULL, "Accepted for Alloy's files.",
	       .flags = ANDIRON_OPTION_IGNORED, .effect = CHOSEN),
	OPTION(STRING, "min_version", NULL, "Accepted for Alloy's files.",
	       .flags = ANDIRON_OPTION_IGNORED, .effect = CHOSEN),
	OPTION(STRING, "max_version", NULL, "Accepted for Alloy's files.",
	       .flags = ANDIRON_OPTION_IGNORED, .effect = CHOSEN),
};
const struct andiron_options server_tls_options = ANDIRON_OPTIONS(tls);

static struct str text_of(const struct andiron_value *map, const char *name)
{
	return map ? value_str(map, name, STR_NULL) : STR_NULL;
}

#define ASKED	 SERVER_CLIENTS_ASKED
#define NEEDED	 (ASKED | SERVER_CLIENTS_NEEDED)
#define VERIFIED SERVER_CLIENTS_VERIFIED

static const struct {
	const char *name;
	unsigned int clients;
} auth_types[] = {
	{"", 0},
	{"NoClientCert", 0},
	{"RequestClientCert", ASKED},
	{"RequireAnyClientCert", NEEDED},
	{"RequireClientCert", NEEDED}, /* an older name, which Alloy's components take */
	{"VerifyClientCertIfGiven", ASKED | VERIFIED},
	{"RequireAndVerifyClientCert", NEEDED | VERIFIED},
};

/* Whether the type is one of them. */
static bool clients_of(const struct andiron_value *t, unsigned int *ret)
{
	struct str auth = text_of(t, "client_auth_type");

	for (size_t i = 0; i < sizeof(auth_types) / sizeof(*auth_types); i++)
		if (str_is(auth, auth_types[i].name)) {
			*ret = auth_types[i].clients;
			return true;
		}
	return false;
}

static const char *clients_fault(const struct andiron_value *t)
{
	bool ca = text_of(t, "client_ca_pem").n, ca_file = text_of(t, "client_ca_file").n;
	unsigned int clients;

	if (!clients_of(t, &clients))
		return "has an unknown client_auth_type; write NoClientCert, "
		       "RequestClientCert, RequireAnyClientCert, VerifyClientCertIfGiven or "
		       "RequireAndVerifyClientCert";
	if (ca && ca_file)
		return "has both client_ca_pem and client_ca_file; leave one out";
	if ((ca || ca_file) && !clients)
		return "names an authority for certificates of clients and asks for none; write "
		       "client_auth_type = \"RequireAndVerifyClientCert\"";
	/* Alloy would take the certificate of everybody who has one of a public authority. */
	if ((clients & VERIFIED) && !ca && !ca_file)
		return "cannot verify clients without an authority; name client_ca_file or "
		       "client_ca_pem";
	return NULL;
}

const char *server_tls_fault(const struct andiron_value *t)
{
	bool cert = text_of(t, "cert_pem").n, cert_file = text_of(t, "cert_file").n;
	bool key = text_of(t, "key_pem").n, key_file = text_of(t, "key_file").n;

	if (!t)
		return NULL;
	if (!(cert || cert_file) || !(key || key_file))
		return "needs a certificate (cert_file or cert_pem) and its key (key_file or "
		       "key_pem)";
	if ((cert && cert_file) || (key && key_file))
		return "has both a text and a file of one thing; leave one out";
	return clients_fault(t);
}

/* A PEM from its text or its file. */
static int read_pem(const struct andiron_value *t, const char *pem, const char *file,
		    const char **ret, struct error *err)
{
	struct str text = text_of(t, pem);
	char *path, *copy;
	struct buf b = BUF_NULL;
	int rc;

	if (text.n) {
		copy = str_dup(text);
	} else {
		path = str_dup(text_of(t, file));
		rc = path ? file_read(AT_FDCWD, path, &b, MAX_PEM) : -ENOMEM;
		if (rc) {
			error_errno(err, rc, "tls: cannot read %s %s", file, path ? path : "");
			free(path);
			buf_free(&b);
			return rc;
		}
		free(path);
		copy = buf_take(&b);
	}
	*ret = copy;
	return copy ? 0 : -ENOMEM;
}

/* libmicrohttpd takes a text without any, and then nobody is taken. */
static int check_authorities(const char *pem, struct error *err)
{
	gnutls_datum_t text = {(unsigned char *)(uintptr_t)pem, (unsigned int)strlen(pem)};
	gnutls_x509_crt_t *all = NULL;
	unsigned int n = 0;
	int rc = gnutls_x509_crt_list_import2(&all, &n, &text, GNUTLS_X509_FMT_PEM, 0);

	if (rc == GNUTLS_E_MEMORY_ERROR)
		return -ENOMEM;
	if (rc < 0)
		return error_set(err, -EINVAL,
				 "tls: client_ca_file or client_ca_pem has no certificates that "
				 "can be read (%s); name those of the authority",
				 gnutls_strerror(rc));
	while (n)
		gnutls_x509_crt_deinit(all[--n]);
	gnutls_free(all);
	return 0;
}

int server_tls_read(const struct andiron_value *t, struct server_options *options,
		    struct error *err)
{
	int rc;

	if (!t)
		return 0;
	if (!clients_of(t, &options->clients))
		return error_set(err, -EINVAL, "tls: the client_auth_type is unknown");
	rc = read_pem(t, "cert_pem", "cert_file", &options->cert, err);
	if (!rc)
		rc = read_pem(t, "key_pem", "key_file", &options->key, err);
	if (rc || !(text_of(t, "client_ca_pem").n || text_of(t, "client_ca_file").n))
		return rc;
	rc = read_pem(t, "client_ca_pem", "client_ca_file", &options->client_ca, err);
	return rc ? rc : check_authorities(options->client_ca, err);
}
