/* SPDX-License-Identifier: Apache-2.0 */
/* What the roles share. Contracts in role.h. */
#include "k8s-discovery/roles/role.h"

const struct meta_names meta_pod = META_NAMES("pod");
const struct meta_names meta_node = META_NAMES("node");
/* A namespace's name is a label by itself. */
const struct meta_names meta_namespace = {
	NULL, META "namespace_label_", META "namespace_labelpresent_", META "namespace_annotation_",
	META "namespace_annotationpresent_"};

static const struct role *const roles[] = {&role_pod,       &role_node,  &role_service,
					   &role_endpoints, &role_slice, &role_ingress};

const struct role *role_find(struct str name)
{
	for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++)
		if (str_is(name, roles[i]->name))
			return roles[i];
	return NULL;
}

unsigned int role_kinds(const struct role *role, const struct role_options *options)
{
	unsigned int kinds_ = role->kinds;

	if (options->attach_node && role->takes_node)
		kinds_ |= 1u << KIND_NODE;
	if (options->attach_namespace && role->primary != KIND_NODE)
		kinds_ |= 1u << KIND_NAMESPACE;
	return kinds_;
}

void role_references(const struct role *role, const struct builder *b, const struct stored *object,
		     reference_fn fn, void *context)
{
	if (role->references)
		role->references(b, object, fn, context);
	if (b->options.attach_namespace && kinds[role->primary].namespaced)
		fn(context, KIND_NAMESPACE, STR_NULL, stored_namespace(object));
}

void role_add_meta(struct label_rows *rows, const struct stored *object,
		   const struct meta_names *names)
{
	struct str metadata = metadata_of(object);

	if (names->name)
		label_rows_add(rows, names->name, stored_name(object));
	label_rows_add_map(rows, metadata, META_LABELS, names->label, names->label_present);
	label_rows_add_map(rows, metadata, META_ANNOTATIONS, names->annotation,
			   names->annotation_present);
}

void role_attach_namespace(const struct builder *b, struct str namespace_)
{
	const struct stored *found = NULL;

	if (b->options.attach_namespace)
		found = store_find(b->store, KIND_NAMESPACE, STR_NULL, namespace_);
	if (found)
		role_add_meta(b->rows, found, &meta_namespace);
}

void role_attach_node(const struct builder *b, struct str node)
{
	const struct stored *found = NULL;

	if (b->options.attach_node && node.n)
		found = store_find(b->store, KIND_NODE, STR_NULL, node);
	if (found)
		role_add_meta(b->rows, found, &meta_node);
}

struct str role_own_label(const struct stored *object, const char *key)
{
	struct proto_field f;

	proto_each (metadata_of(object), META_LABELS, &f)
		if (str_is(proto_bytes(f.bytes, 1), key))
			return proto_bytes(f.bytes, 2);
	return STR_NULL;
}
