/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks among Alloy's HTTP client arguments. */
#include "client/options.h"

static const struct andiron_option authorization[] = {
	OPTION(STRING, "type", "\"Bearer\"", "First word of the Authorization header."),
	OPTION(SECRET, "credentials", NULL, "The rest of the header."),
	OPTION(STRING, "credentials_file", NULL,
	       "File with the credentials, read again for every request."),
};
const struct andiron_options client_options_authorization = ANDIRON_OPTIONS(authorization);

static const struct andiron_option basic_auth[] = {
	OPTION(STRING, "username", NULL, "User name."),
	OPTION(SECRET, "password", NULL, "Password."),
	OPTION(STRING, "password_file", NULL,
	       "File with the password, read again for every request."),
};
const struct andiron_options client_options_basic_auth = ANDIRON_OPTIONS(basic_auth);

static const char *const tls_versions[] = {"TLS10", "TLS11", "TLS12", "TLS13", NULL};

static const struct andiron_option tls_config[] = {
	OPTION(STRING, "ca_pem", NULL,
	       "Certificates of the authorities to trust instead of the system's, as PEM."),
	OPTION(STRING, "ca_file", NULL, "File with the certificates of the authorities to trust."),
	OPTION(STRING, "cert_pem", NULL, "Client certificate as PEM."),
	OPTION(STRING, "cert_file", NULL, "File with the client certificate."),
	OPTION(SECRET, "key_pem", NULL, "Key of the client certificate as PEM."),
	OPTION(STRING, "key_file", NULL, "File with the key of the client certificate."),
	OPTION(STRING, "server_name", NULL,
	       "Name to ask for and to expect in the server's certificate, if not the URL's."),
	OPTION(BOOL, "insecure_skip_verify", "false", "Whether any certificate is accepted."),
	OPTION(STRING, "min_version", "\"TLS12\"", "Oldest version of TLS to speak.",
	       .choices = tls_versions),
};
const struct andiron_options client_options_tls_config = ANDIRON_OPTIONS(tls_config);

static const struct andiron_option oauth2[] = {
	OPTION(STRING, "client_id", NULL, "Client id."),
	OPTION(SECRET, "client_secret", NULL, "Client secret."),
	OPTION(STRING, "client_secret_file", NULL, "File with the secret."),
	OPTION(STRING, "token_url", NULL, "Where tokens are fetched: an http or https URL."),
	OPTION(STRINGS, "scopes", NULL, "Scopes to ask for."),
	OPTION(MAP, "endpoint_params", NULL, "Further parameters of the request for a token."),
	OPTION(STRING, "proxy_url", NULL, "Proxy to fetch tokens through."),
	OPTION(STRING, "no_proxy", NULL, "Hosts reached without it."),
	OPTION(BOOL, "proxy_from_environment", NULL,
	       "Whether the proxy is taken from the environment."),
	OPTION(SECRETS, "proxy_connect_header", NULL, "Headers for the proxy."),
	OPTION(BLOCK, "tls_config", NULL, "TLS of the token server.",
	       .block = &client_options_tls_config),
};
const struct andiron_options client_options_oauth2 = ANDIRON_OPTIONS(oauth2);
