/* SPDX-License-Identifier: Apache-2.0 */
/* Rules between arguments. Contract in arguments.h. */
#include "k8s-discovery/arguments.h"

#include "abi/log.h"
#include "abi/value.h"
#include "client/options.h"
#include "http/http.h"
#include "k8s-discovery/roles/role.h"
#include "k8s-discovery/roles/selector.h"

#include <stdlib.h>

struct reporter {
	const struct andiron_host *host;
	struct andiron_report *report;
};

static void refuse(const struct reporter *r, const struct andiron_value *at, const char *text)
{
	abi_report(r->host, r->report, ANDIRON_REPORT_ERROR, at, "%s", text);
}

/* Whether it stands in the file, and not empty. */
static const struct andiron_value *given(const struct andiron_value *args, const char *name)
{
	const struct andiron_value *value = value_get(args, name);

	if (!value || (value->flags & ANDIRON_VALUE_DEFAULTED))
		return NULL;
	return value->kind == ANDIRON_VALUE_STRING && value->string.len == 0 ? NULL : value;
}

/* An HTTP client argument that is not as it would be anyway. */
static const struct andiron_value *custom_client(const struct andiron_value *args)
{
	static const struct {
		const char *name;
		int usual; /* of a bool; -1: any value is unusual */
	} rows[] = {
		{"bearer_token", -1},
		{"bearer_token_file", -1},
		{"authorization", -1},
		{"basic_auth", -1},
		{"oauth2", -1},
		{"tls_config", -1},
		{"http_headers", -1},
		{"proxy_url", -1},
		{"no_proxy", -1},
		{"proxy_connect_header", -1},
		{"proxy_from_environment", 0},
		{"follow_redirects", 1},
		{"enable_http2", 1},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct andiron_value *value = given(args, rows[i].name);

		if (value && (rows[i].usual < 0 || value->integer != rows[i].usual))
			return value;
	}
	return NULL;
}

/* Why paths cannot be put behind a URL, or NULL. */
static const char *bad_server(struct str url)
{
	const char *fault = http_url_fault(url);
	struct str authority = http_authority(url);

	if (fault)
		return fault;
	if (str_find(authority, '@') < authority.n)
		return "holds a user, whom the log would show; basic_auth takes user and password";
	if (str_find(url, '?') < url.n || str_find(url, '#') < url.n)
		return "holds a query, behind which no path can follow";
	return NULL;
}

static void check_url(const struct reporter *r, const struct andiron_value *server)
{
	const char *why = server ? bad_server(abi_str(server->string)) : NULL;

	if (why)
		abi_report(r->host, r->report, ANDIRON_REPORT_ERROR, server, "api_server %s", why);
}

static void check_server(const struct reporter *r, const struct andiron_value *args)
{
	const struct andiron_value *server = given(args, "api_server");
	const struct andiron_value *file = given(args, "kubeconfig_file");
	const struct andiron_value *spaces = value_get(args, "namespaces");
	const struct andiron_value *custom = custom_client(args);
	bool own = spaces && value_bool(spaces, "own_namespace", false);

	check_url(r, server);
	if (server && file)
		refuse(r, file, "kubeconfig_file and api_server exclude each other");
	if (custom && file)
		refuse(r, custom,
		       "a kubeconfig file says how to reach the server; HTTP client arguments "
		       "cannot stand beside kubeconfig_file");
	else if (custom && !server)
		refuse(r, custom,
		       "HTTP client arguments need api_server: the service account's are used "
		       "without it");
	if (own && (server || file))
		refuse(r, spaces,
		       "own_namespace works in the cluster only, without api_server and "
		       "kubeconfig_file");
}

static const struct {
	const char *role, *allowed[4];
} selectors_of[] = {
	{"pod", {"pod", "node"}},
	{"node", {"node"}},
	{"service", {"service"}},
	{"endpoints", {"pod", "service", "endpoints"}},
	{"endpointslice", {"pod", "service", "endpointslice"}},
	{"ingress", {"ingress"}},
};

static void check_allowed(const struct reporter *r, struct str role, const struct andiron_value *at)
{
	for (size_t i = 0; i < sizeof(selectors_of) / sizeof(*selectors_of); i++) {
		const char *const *allowed = selectors_of[i].allowed;
		char text[160] = "";
		size_t n = 0;

		if (!str_is(role, selectors_of[i].role))
			continue;
		for (; *allowed; allowed++) {
			if (str_is(abi_str(at->string), *allowed))
				return;
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? ", " : "",
					      *allowed);
		}
		abi_report(r->host, r->report, ANDIRON_REPORT_ERROR, at,
			   "the role %.*s takes selectors of these roles only: %s", STR_FMT(role),
			   text);
		return;
	}
}

static void check_syntax(const struct reporter *r, const struct andiron_value *block)
{
	const struct andiron_value *label = given(block, "label"), *field = given(block, "field");
	struct error err = ERROR_NULL;

	if (label && selector_check_labels(abi_str(label->string), &err) < 0)
		abi_report(r->host, r->report, ANDIRON_REPORT_ERROR, label,
			   "this is no label selector: %s", err.text);
	if (field && selector_check_fields(abi_str(field->string), &err) < 0)
		abi_report(r->host, r->report, ANDIRON_REPORT_ERROR, field,
			   "this is no field selector: %s", err.text);
}

static bool stands_before(const struct andiron_value *blocks, uint64_t i, struct str role)
{
	for (uint64_t k = 0; k < i; k++)
		if (str_eq(value_str(&blocks->items[k], "role", STR_NULL), role))
			return true;
	return false;
}

static void check_selectors(const struct reporter *r, const struct andiron_value *args)
{
	const struct andiron_value *blocks = value_get(args, "selectors");
	const struct andiron_value *attach = value_get(args, "attach_metadata");
	struct str role = value_str(args, "role", STR_NULL);

	for (uint64_t i = 0; blocks && i < blocks->n_items; i++) {
		const struct andiron_value *block = &blocks->items[i];
		const struct andiron_value *of = value_get(block, "role");

		check_syntax(r, block);
		if (!of)
			continue;
		check_allowed(r, role, of);
		if (stands_before(blocks, i, abi_str(of->string)))
			refuse(r, block,
			       "there may be one selectors block per role; join them by a comma");
		if (str_is(role, "pod") && str_is(abi_str(of->string), "node") &&
		    !(attach && value_bool(attach, "node", false)))
			refuse(r, block,
			       "a selector of nodes selects pods by their node's labels, and needs "
			       "node = true in attach_metadata");
	}
}

static void check_pods_only(const struct reporter *r, const struct andiron_value *args)
{
	static const char *const names[] = {"scope", "ephemeral_containers", "pods_without_ip"};

	if (str_is(value_str(args, "role", STR_NULL), "pod"))
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const struct andiron_value *value = given(args, names[i]);

		if (value && (value->kind != ANDIRON_VALUE_BOOL || value->integer))
			refuse(r, value, "this has a meaning for the role pod only");
	}
}

void arguments_check_server(const struct andiron_host *host, const struct andiron_value *args,
			    struct andiron_report *report)
{
	check_server(&(struct reporter){host, report}, args);
	client_check(host, args, report);
}

int32_t arguments_check(const struct andiron_host *host, const struct andiron_value *args,
			struct andiron_report *report)
{
	struct reporter r = {host, report};

	arguments_check_server(host, args, report);
	check_selectors(&r, args);
	check_pods_only(&r, args);
	return 0;
}
