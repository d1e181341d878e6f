/* SPDX-License-Identifier: Apache-2.0 */
/* From arguments to a config, and the rules between arguments. */
#include "abi/value.h"
#include "testing/test.h"
#include "client/options.h"

#include <errno.h>
#include <stdlib.h>

/* Argument trees, written by hand: what the host would hand over. */
#define TEXT(s)                                                                                    \
	{                                                                                          \
		.kind = ANDIRON_VALUE_STRING, .string = { s, sizeof(s) - 1 }                       \
	}
#define TRUE_VALUE                                                                                 \
	{                                                                                          \
		.kind = ANDIRON_VALUE_BOOL, .integer = 1                                           \
	}
#define KEY(s)                                                                                     \
	{                                                                                          \
		s, sizeof(s) - 1                                                                   \
	}
#define MAP(k, v)                                                                                  \
	{                                                                                          \
		.kind = ANDIRON_VALUE_MAP, .keys = (k), .items = (v),                              \
		.n_items = sizeof(v) / sizeof((v)[0])                                              \
	}

static const struct andiron_str password_key[] = {KEY("username"), KEY("password")};
static const struct andiron_value password_value[] = {TEXT("me"), TEXT("secret")};
static const struct andiron_str ca_key[] = {KEY("ca_file"), KEY("insecure_skip_verify")};
static const struct andiron_value ca_value[] = {TEXT("/ca"), TRUE_VALUE};
static const struct andiron_value header_list[] = {TEXT("b"), TEXT("c")};
static const struct andiron_str header_key[] = {KEY("X-One"), KEY("X-Two")};
static const struct andiron_value header_value[] = {
	TEXT("a"), {.kind = ANDIRON_VALUE_LIST, .items = header_list, .n_items = 2}};
static const struct andiron_value basic_block = MAP(password_key, password_value);
static const struct andiron_value tls_block = MAP(ca_key, ca_value);
static const struct andiron_value headers = MAP(header_key, header_value);
static const struct andiron_value empty_block = {.kind = ANDIRON_VALUE_MAP};

static int init_and_free(void *context)
{
	const struct andiron_str keys[] = {KEY("basic_auth"), KEY("tls_config"),
					   KEY("http_headers"), KEY("proxy_url"), KEY("no_proxy")};
	const struct andiron_value values[] = {basic_block, tls_block, headers,
					       TEXT("http://proxy"), TEXT("localhost")};
	const struct andiron_value args = MAP(keys, values);
	struct client_config c;
	struct error err = ERROR_NULL;
	int rc = client_config_init(&c, &args, &err);

	if (rc)
		return rc;
	expect_str(c.http.basic_username, "me");
	expect_str(c.http.basic_password, "secret");
	expect_str(c.http.ca_file, "/ca");
	expect_str(c.http.proxy_url, "http://proxy");
	expect(c.http.insecure_skip_verify && c.http.follow_redirects && c.http.enable_http2);
	expect(!c.http.bearer_token.p && !c.http.proxy_from_environment);
	expect_eq(c.http.n_headers, 3);
	expect_str(c.http.headers[0].name, "X-One");
	expect_str(c.http.headers[2].name, "X-Two");
	expect_str(c.http.headers[2].value, "c");
	client_config_fini(&c);
	return 0;
}

/* Everything is copied, under memory that fails as under memory that does not. */
TEST(arguments_become_a_config)
{
	test_each_failing_allocation(init_and_free, NULL);
}

static void on_report(struct andiron_report *report, uint32_t severity,
		      const struct andiron_value *at, const char *text, uint64_t len)
{
	expect(severity == ANDIRON_REPORT_ERROR && at && len > 10);
	++*(int *)(void *)report;
}

static const struct andiron_str oauth2_keys[] = {KEY("client_id"), KEY("token_url"),
						 KEY("client_secret")};
static const struct andiron_value oauth2_values[] = {TEXT("me"), TEXT("http://b/token"),
						     TEXT("secret")};
static const struct andiron_value oauth2_wrong[] = {TEXT("me"), TEXT("b/token"), TEXT("secret")};

/* validate reports what creation refuses, and nothing else. */
TEST(validate_and_creation_agree)
{
	static const struct andiron_host host = {.size = sizeof(host), .report_add = on_report};
	static const struct {
		struct andiron_str keys[3];
		struct andiron_value values[3];
		uint64_t n;
		int findings;
	} rows[] = {
		{{KEY("bearer_token")}, {TEXT("a")}, 1, 0},
		{{KEY("bearer_token"), KEY("bearer_token_file")}, {TEXT("a"), TEXT("b")}, 2, 1},
		{{KEY("bearer_token"), KEY("basic_auth")},
		 {TEXT("a"), MAP(password_key, password_value)},
		 2,
		 1},
		{{KEY("oauth2")}, {{.kind = ANDIRON_VALUE_MAP}}, 1, 1},
		{{KEY("oauth2")}, {MAP(oauth2_keys, oauth2_values)}, 1, 0},
		{{KEY("oauth2")}, {MAP(oauth2_keys, oauth2_wrong)}, 1, 1},
		{{KEY("oauth2"), KEY("authorization")},
		 {{.kind = ANDIRON_VALUE_MAP}, {.kind = ANDIRON_VALUE_MAP}},
		 2,
		 2},
		{{KEY("no_proxy")}, {TEXT("a")}, 1, 1},
		{{KEY("no_proxy"), KEY("proxy_from_environment")}, {TEXT("a"), TRUE_VALUE}, 2, 0},
		{{KEY("proxy_url"), KEY("proxy_from_environment")}, {TEXT("a"), TRUE_VALUE}, 2, 1},
		{{KEY("tls_config")}, {MAP(ca_key, ca_value)}, 1, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct andiron_value args = {.kind = ANDIRON_VALUE_MAP,
						   .keys = rows[i].keys,
						   .items = rows[i].values,
						   .n_items = rows[i].n};
		struct client_config c;
		struct error err = ERROR_NULL;
		int n = 0, rc;

		client_check(&host, &args, (struct andiron_report *)(void *)&n);
		expect_eq(n, rows[i].findings);
		rc = client_config_init(&c, &args, &err);
		expect_eq(rc, n ? -EINVAL : 0);
		if (rc == 0)
			client_config_fini(&c);
	}
}

static int init_oauth2(void *context)
{
	static const struct andiron_value scope[] = {TEXT("a b"), TEXT("c")};
	static const struct andiron_str param_keys[] = {KEY("audience")};
	static const struct andiron_value params[] = {TEXT("x&y")};
	static const struct andiron_str keys[] = {KEY("client_id"),	   KEY("token_url"),
						  KEY("client_secret"),	   KEY("scopes"),
						  KEY("endpoint_params"),  KEY("tls_config")};
	const struct andiron_value values[] = {
		TEXT("me"),
		TEXT("https://b/token"),
		TEXT("secret"),
		{.kind = ANDIRON_VALUE_LIST, .items = scope, .n_items = 2},
		MAP(param_keys, params),
		MAP(ca_key, ca_value),
	};
	static const struct andiron_str key[] = {KEY("oauth2")};
	const struct andiron_value block = MAP(keys, values);
	const struct andiron_value args = {
		.kind = ANDIRON_VALUE_MAP, .keys = key, .items = &block, .n_items = 1};
	struct error err = ERROR_NULL;
	struct client_config c;
	int r = client_config_init(&c, &args, &err);

	if (r < 0)
		return r;
	expect_str(c.http.oauth2->token_url, "https://b/token");
	expect_str(c.http.oauth2->client_id, "me");
	expect_str(c.http.oauth2->client_secret, "secret");
	expect_str(c.http.oauth2->form, "&scope=a%20b%20c&audience=x%26y");
	expect(c.http.oauth2->server.ca_file.p && !c.http.ca_file.p);
	client_config_fini(&c);
	return 0;
}

TEST(a_token_server_has_a_config_of_its_own)
{
	test_each_failing_allocation(init_oauth2, NULL);
}

/* A certificate without its key is an error wherever each of them stands. */
TEST(a_certificate_needs_its_key)
{
	static const struct andiron_str cert_key[] = {KEY("cert_file"), KEY("key_pem")};
	static const struct andiron_value cert_value[] = {TEXT("/c"), TEXT("k")};
	static const struct andiron_str tls_key[] = {KEY("tls_config")};
	struct error err = ERROR_NULL;
	struct client_config c;

	for (uint64_t n = 0; n <= 2; n++) {
		struct andiron_value block = MAP(cert_key, cert_value);
		struct andiron_value args = {
			.kind = ANDIRON_VALUE_MAP, .keys = tls_key, .items = &block, .n_items = 1};

		block.n_items = n;
		expect_eq(client_config_init(&c, &args, &err), n == 1 ? -EINVAL : 0);
		if (n != 1)
			client_config_fini(&c);
	}
	expect_eq(client_config_init(&c, &empty_block, &err), 0);
	client_config_fini(&c);
}
