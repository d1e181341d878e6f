/* SPDX-License-Identifier: Apache-2.0 */
/* Roles: what kinds of objects become targets, and how. Labels, their quirks and the order of
 * targets are those of Prometheus's Kubernetes discovery (discovery/kubernetes of Prometheus 3.15);
 * docs/kubernetes.md lists them.
 *
 * A role has one primary kind, whose objects become targets, and others that these are looked up
 * in. An object is built anew when it or one that it refers to has changed. */
#pragma once

#include "k8s-discovery/objects/kinds.h"
#include "k8s-discovery/objects/proto.h"
#include "k8s-discovery/roles/label-rows.h"
#include "k8s-discovery/objects/store.h"

/* What the arguments ask for beyond the role. */
struct role_options {
	bool attach_node, attach_namespace;
	bool ephemeral;  /* ephemeral containers are targets, too */
	bool without_ip; /* pods without an address have targets, without one */
};

struct builder {
	const struct store *store;
	struct role_options options;
	struct label_rows *rows;
};

typedef void (*reference_fn)(void *context, enum kind kind, struct str namespace_, struct str name);

struct role {
	const char *name;
	enum kind primary;
	unsigned int kinds; /* 1 << kind of all that are watched without options */
	bool takes_node;    /* whether attach_metadata's node has a meaning */
	/* Adds the object's targets to b->rows, which has begun. */
	void (*build)(const struct builder *b, const struct stored *object);
	/* Calls fn with each object that `build` would look up, besides the namespace. NULL: there
	 * is none. */
	void (*references)(const struct builder *b, const struct stored *object, reference_fn fn,
			   void *context);
};

/* By its name in a configuration, NULL if there is none. */
const struct role *role_find(struct str name);
/* The kinds that must be watched, as bits. */
unsigned int role_kinds(const struct role *role, const struct role_options *options);

/* Calls fn with each object that the role would look up for this one. */
void role_references(const struct role *role, const struct builder *b, const struct stored *object,
		     reference_fn fn, void *context);

extern const struct role role_pod, role_node, role_service, role_endpoints, role_slice,
	role_ingress;

/* What the roles share. */

/* Names of the labels that every object's metadata gives. */
struct meta_names {
	const char *name, *label, *label_present, *annotation, *annotation_present;
};

#define META_NAMES(role)                                                                           \
	{                                                                                          \
		META role "_name", META role "_label_", META role "_labelpresent_",                \
			META role "_annotation_", META role "_annotationpresent_"                  \
	}

extern const struct meta_names meta_pod, meta_node, meta_namespace;

void role_add_meta(struct label_rows *rows, const struct stored *object,
		   const struct meta_names *names);
/* The labels of the namespace and of a node, where these are asked for. */
void role_attach_namespace(const struct builder *b, struct str namespace_);
void role_attach_node(const struct builder *b, struct str node);
/* The labels of a pod as such, without its namespace. */
void role_add_pod(struct label_rows *rows, const struct stored *pod);

/* The metadata, spec and status of an object. */
static inline struct str metadata_of(const struct stored *o)
{
	return proto_bytes(stored_kept(o), OBJECT_METADATA);
}

static inline struct str spec_of(const struct stored *o)
{
	return proto_bytes(stored_kept(o), OBJECT_SPEC);
}

static inline struct str status_of(const struct stored *o)
{
	return proto_bytes(stored_kept(o), OBJECT_STATUS);
}

/* The value of a label of the object itself. */
struct str role_own_label(const struct stored *object, const char *key);

/* The labels of a service, which its endpoints carry, too. */
void service_add(struct label_rows *rows, const struct stored *service);

/* Pods behind the targets of an object, and the ports that these were made for; a pod's other ports
 * become targets of their own at the end. */
struct endpoint_pods {
	VEC(struct endpoint_pod) list;
};

struct endpoint_pod {
	const struct stored *pod;
	VEC(uint64_t) ports;
};

/* The pod that an ObjectReference means, NULL if it means none. */
const struct stored *endpoint_pod_find(const struct builder *b, struct str reference);
/* Adds the pod's labels and those of its container with this port (none: has_port is false), and
 * notes that it was seen. */
void endpoint_pods_add(const struct builder *b, struct endpoint_pods *backends,
		       const struct stored *pod, const uint64_t *port, struct str protocol);
/* A target for every port of a pod in the list that none was made for; ends the list. */
void endpoint_pods_finish(const struct builder *b, struct endpoint_pods *backends);
void endpoint_pod_reference(struct str reference, reference_fn fn, void *context);
