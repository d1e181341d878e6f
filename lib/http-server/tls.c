/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in tls.h. */
#include "http-server/tls.h"

#include "abi/option.h"
#include "abi/value.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#define MAX_PEM ((size_t)256 << 10)
#define CHOSEN  "GnuTLS chooses versions and ciphers, as the machine is set up"

static const struct andiron_option tls[] = {
	OPTION(STRING, "cert_pem", NULL, "Certificate as PEM, with those between it and the root."),
	OPTION(STRING, "cert_file", NULL,
	       "File with the certificate; read at the start and at a reload."),
	OPTION(SECRET, "key_pem", NULL, "Key of the certificate as PEM."),
	OPTION(STRING, "key_file", NULL, "File with the key; read likewise."),
	OPTION(STRING, "client_ca_pem", NULL, "Refused: clients are not asked for certificates."),
	OPTION(STRING, "client_ca_file", NULL, "Refused likewise."),
	OPTION(STRING, "client_auth_type", "\"NoClientCert\"",
	       "Whether clients must show a certificate; only \"NoClientCert\" is done here."),
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

const char *server_tls_fault(const struct andiron_value *t)
{
	bool cert = text_of(t, "cert_pem").n, cert_file = text_of(t, "cert_file").n;
	bool key = text_of(t, "key_pem").n, key_file = text_of(t, "key_file").n;
	struct str auth = text_of(t, "client_auth_type");

	if (!t)
		return NULL;
	if (!(cert || cert_file) || !(key || key_file))
		return "needs a certificate (cert_file or cert_pem) and its key (key_file or "
		       "key_pem)";
	if ((cert && cert_file) || (key && key_file))
		return "has both a text and a file of one thing; leave one out";
	if (text_of(t, "client_ca_pem").n || text_of(t, "client_ca_file").n ||
	    (auth.n && !str_is(auth, "NoClientCert")))
		return "cannot ask clients for certificates; put a proxy in front that does";
	return NULL;
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

int server_tls_read(const struct andiron_value *t, struct server_options *options,
		    struct error *err)
{
	int rc = t ? read_pem(t, "cert_pem", "cert_file", &options->cert, err) : 0;

	if (t && !rc)
		rc = read_pem(t, "key_pem", "key_file", &options->key, err);
	return rc;
}
