/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks among Alloy's HTTP client arguments. */
#include "client/options.h"

static const struct andiron_option authorization[] = {
	{
		.name = "type",
		.type = ANDIRON_TYPE_STRING,
		.default_text = "\"Bearer\"",
		.doc = "First word of the Authorization header.",
	},
	{
		.name = "credentials",
		.type = ANDIRON_TYPE_SECRET,
		.doc = "The rest of the header.",
	},
	{
		.name = "credentials_file",
		.type = ANDIRON_TYPE_STRING,
		.doc = "File with the credentials, read again for every request.",
	},
};
const struct andiron_options client_options_authorization = ANDIRON_OPTIONS(authorization);

static const struct andiron_option basic_auth[] = {
	{
		.name = "username",
		.type = ANDIRON_TYPE_STRING,
		.doc = "User name.",
	},
	{
		.name = "password",
		.type = ANDIRON_TYPE_SECRET,
		.doc = "Password.",
	},
	{
		.name = "password_file",
		.type = ANDIRON_TYPE_STRING,
		.doc = "File with the password, read again for every request.",
	},
};
const struct andiron_options client_options_basic_auth = ANDIRON_OPTIONS(basic_auth);

static const char *const tls_versions[] = {"TLS10", "TLS11", "TLS12", "TLS13", NULL};

static const struct andiron_option tls_config[] = {
	{
		.name = "ca_pem",
		.type = ANDIRON_TYPE_STRING,
		.doc = "Certificates of the authorities to trust instead of the system's, as PEM.",
	},
	{
		.name = "ca_file",
		.type = ANDIRON_TYPE_STRING,
		.doc = "File with the certificates of the authorities to trust.",
	},
	{
		.name = "cert_pem",
		.type = ANDIRON_TYPE_STRING,
		.doc = "Client certificate as PEM.",
	},
	{
		.name = "cert_file",
		.type = ANDIRON_TYPE_STRING,
		.doc = "File with the client certificate.",
	},
	{
		.name = "key_pem",
		.type = ANDIRON_TYPE_SECRET,
		.doc = "Key of the client certificate as PEM.",
	},
	{
		.name = "key_file",
		.type = ANDIRON_TYPE_STRING,
		.doc = "File with the key of the client certificate.",
	},
	{
		.name = "server_name",
		.type = ANDIRON_TYPE_STRING,
		.doc = "Name to ask for and to expect in the server's certificate, if not the "
		       "URL's.",
	},
	{
		.name = "insecure_skip_verify",
		.type = ANDIRON_TYPE_BOOL,
		.default_text = "false",
		.doc = "Whether any certificate is accepted.",
	},
	{
		.name = "min_version",
		.type = ANDIRON_TYPE_STRING,
		.default_text = "\"TLS12\"",
		.choices = tls_versions,
		.doc = "Oldest version of TLS to speak.",
	},
};
const struct andiron_options client_options_tls_config = ANDIRON_OPTIONS(tls_config);

/* Known so that the refusal can name the block and not its first attribute. */
static const struct andiron_option oauth2[] = {
	{.name = "client_id", .type = ANDIRON_TYPE_STRING, .doc = "Client id."},
	{.name = "client_secret", .type = ANDIRON_TYPE_SECRET, .doc = "Client secret."},
	{.name = "client_secret_file", .type = ANDIRON_TYPE_STRING, .doc = "File with the secret."},
	{.name = "token_url", .type = ANDIRON_TYPE_STRING, .doc = "Where tokens are fetched."},
	{.name = "scopes", .type = ANDIRON_TYPE_STRINGS, .doc = "Scopes to ask for."},
	{.name = "endpoint_params", .type = ANDIRON_TYPE_MAP, .doc = "Parameters of the URL."},
	{.name = "proxy_url", .type = ANDIRON_TYPE_STRING, .doc = "Proxy to fetch tokens through."},
	{.name = "no_proxy", .type = ANDIRON_TYPE_STRING, .doc = "Hosts reached without it."},
	{
		.name = "proxy_from_environment",
		.type = ANDIRON_TYPE_BOOL,
		.doc = "Whether the proxy is taken from the environment.",
	},
	{
		.name = "proxy_connect_header",
		.type = ANDIRON_TYPE_SECRETS,
		.doc = "Headers for the proxy.",
	},
	{
		.name = "tls_config",
		.type = ANDIRON_TYPE_BLOCK,
		.doc = "TLS of the token server.",
		.block = &client_options_tls_config,
	},
};
const struct andiron_options client_options_oauth2 = ANDIRON_OPTIONS(oauth2);
