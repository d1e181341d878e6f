/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of a Kubernetes object: its own protobuf encoding with every field cut out that no
 * label is made of. Unwanted fields are skipped by their length, so nothing is ever made of them,
 * and more than half of a pod (managedFields) costs two varints. The same form is made of JSON, so
 * that all that follows knows one form only.
 *
 * Which fields are kept is data: a table per message, indexed by field number.
 *
 * Source: generated.proto of k8s.io/api (core, discovery, networking) and of k8s.io/apimachinery
 * (meta/v1). */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <jansson.h>

/* Field numbers of kept messages, by what they stand in. */
#define OBJECT_METADATA 1u
#define OBJECT_SPEC     2u
#define OBJECT_STATUS   3u

#define META_UID         5u
#define META_LABELS      11u
#define META_ANNOTATIONS 12u
#define META_OWNERS      13u

/* Kinds of objects. */
enum kind {
	KIND_POD,
	KIND_NODE,
	KIND_SERVICE,
	KIND_ENDPOINTS,
	KIND_SLICE,
	KIND_INGRESS,
	KIND_NAMESPACE,
	N_KINDS
};

struct part;

struct kind_info {
	const char *path;     /* "/api/v1" */
	const char *resource; /* "pods" */
	const char *role;     /* "pod": the role of which it is the primary kind */
	bool namespaced;
	const struct part *part;
};

extern const struct kind_info kinds[N_KINDS];

/* The annotations to keep: few, so searched one by one. */
struct annotations {
	const struct str *names;
	size_t n;
};

/* An object as it was just read. Slices point into the input; `kept` belongs to the object and is
 * used again by the next read. */
struct object {
	const struct annotations *wanted; /* NULL: all; the reader's to set */
	struct str namespace_, name, version;
	bool initial_end;          /* a bookmark that ends the initial events */
	uint32_t annotation_bytes; /* of kept.n, what annotations take */
	struct buf kept;
};

void object_fini(struct object *o);
/* Whether an annotation of this name is to be kept. */
bool object_wants(const struct object *o, struct str annotation);

/* Reads an object of this kind from its protobuf encoding. 0, -ENOMEM, or
 * -EPROTO for what is malformed. O(fields), plus the bytes kept. */
int object_read(enum kind kind, struct str wire, struct object *o);

/* The same from JSON. Members of a wrong type count as absent. -EPROTO if it is no object. Slices
 * point into `json`. */
int object_read_json(enum kind kind, const json_t *json, struct object *o);

/* How a field is kept. */
enum keep {
	KEEP_NOT,
	KEEP_TEXT,   /* a string */
	KEEP_NUMBER, /* a varint; a number or a bool in JSON */
	KEEP_PART,   /* a message, or a list of them */
	KEEP_LABELS, /* map<string, string> */
	KEEP_ANNOTATIONS,
	KEEP_NAMESPACE, /* these three go into struct object */
	KEEP_NAME,
	KEEP_VERSION,
};

struct keep_field {
	enum keep how;
	const char *json; /* member; "" where JSON has its members in place */
	const struct part *part;
	/* Whether a part is worth keeping, given what was kept of it. */
	bool (*wanted)(struct str kept);
};

struct part {
	uint32_t n;
	const struct keep_field *fields; /* by field number */
};

#define INITIAL_EVENTS_END "k8s.io/initial-events-end"
