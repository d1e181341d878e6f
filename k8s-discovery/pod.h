/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod of the Kubernetes API as targets: one per declared container port, one
 * per container without ports, none while the pod has no address.
 *
 * Labels and their quirks are Prometheus's (role `pod` of its Kubernetes
 * discovery). One difference: two names that sanitize to the same label give a
 * random winner there; here the one that sorts last wins.
 */
#ifndef K8S_POD_H
#define K8S_POD_H

#include "abi/target-list.h"
#include "base/arena.h"
#include "base/vec.h"

#include <jansson.h>

struct pod_target {
	const struct target_label *labels;
	size_t n_labels;
};

/* Everything borrowed from `arena`. */
struct pod {
	struct arena arena;
	struct str key; /* namespace/name */
	struct str resource_version;
	VEC(struct pod_target) targets;
};

/* Reads a pod object. 0, -ENOMEM, or -EINVAL for what is no pod (it has no
 * name). Members of a wrong type count as absent. `ret` is to be freed after
 * success only. */
int pod_parse(const json_t *object, struct pod *ret);
void pod_fini(struct pod *pod);

#endif
