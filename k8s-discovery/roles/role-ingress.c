/* SPDX-License-Identifier: Apache-2.0 */
/* Role ingress: one target per rule and path, at the rule's host. */
#include "k8s-discovery/roles/role.h"

static const struct meta_names names = META_NAMES("ingress");

/* Equal, or the pattern's first label is "*" and all others are equal. */
static bool matches(struct str pattern, struct str host)
{
	struct str rest = pattern;

	if (str_eq(pattern, host))
		return true;
	if (!str_is(str_cut(&rest, '.'), "*"))
		return false;
	str_cut(&host, '.');
	return str_eq(rest, host);
}

static const char *scheme_of(struct str spec, struct str host)
{
	struct proto_field tls, pattern;

	proto_each (spec, INGRESS_TLS, &tls) {
		struct proto in = proto_of(tls.bytes);

		while (proto_find(&in, TLS_HOSTS, &pattern))
			if (matches(pattern.bytes, host))
				return "https";
	}
	return "http";
}

static void add_path(const struct builder *b, struct str spec, struct str host, struct str path)
{
	label_rows_add(b->rows, "__address__", host);
	label_rows_add(b->rows, META "ingress_scheme", str_of(scheme_of(spec, host)));
	label_rows_add(b->rows, META "ingress_host", host);
	label_rows_add(b->rows, META "ingress_path", path.n ? path : STR("/"));
	label_rows_finish(b->rows);
}

/* A rule without HTTP is one for the path "/". One with HTTP and no paths has no target. */
static void build_rule(const struct builder *b, struct str spec, struct str rule)
{
	struct str host = proto_bytes(rule, RULE_HOST);
	struct str http = proto_bytes(proto_bytes(rule, RULE_VALUE), RULE_VALUE_HTTP);
	struct proto_field f;

	if (!http.p)
		add_path(b, spec, host, STR("/"));
	proto_each (http, HTTP_PATHS, &f)
		add_path(b, spec, host, proto_bytes(f.bytes, PATH_PATH));
}

static void build(const struct builder *b, const struct stored *ingress)
{
	struct str spec = spec_of(ingress);
	struct proto_field f;

	label_rows_add(b->rows, META "namespace", stored_namespace(ingress));
	label_rows_add(b->rows, META "ingress_class_name", proto_bytes(spec, INGRESS_CLASS));
	role_add_meta(b->rows, ingress, &names);
	role_attach_namespace(b, stored_namespace(ingress));
	label_rows_share(b->rows);
	proto_each (spec, INGRESS_RULES, &f)
		build_rule(b, spec, f.bytes);
}

const struct role role_ingress = {
	.name = "ingress",
	.primary = KIND_INGRESS,
	.kinds = 1u << KIND_INGRESS,
	.build = build,
};
