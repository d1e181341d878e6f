/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine's API says of containers and networks, as far as targets are made of it. Each has
 * its own memory, so that one can be replaced without the others.
 *
 * Source: the Docker Engine API, GET /containers/json and GET /networks. */
#pragma once

#include "abi/target-list.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"

#define DOCKER_META "__meta_docker_"

/* A container's place in a network. */
struct endpoint {
	struct str name; /* of the network, as the container has it */
	struct str network_id, ip;
};

struct port {
	uint16_t inside, outside; /* outside: on the host; 0: it is not published */
	struct str ip;            /* of the host, that it is published at */
};

/* labels: those that all of its targets have. Endpoints by name, ports as the engine lists them,
 * TCP only. */
struct container {
	struct arena arena;
	struct str id, mode; /* mode: of the network: "bridge", "host", "container:ID" */
	const struct target_label *labels;
	const struct endpoint *endpoints;
	const struct port *ports;
	size_t n_labels, n_endpoints, n_ports;
};

struct network {
	struct arena arena;
	struct str id;
	const struct target_label *labels;
	size_t n_labels;
};

struct container_list {
	VEC(struct container *) all;
};

struct network_list {
	VEC(struct network *) all;
};

void container_free(struct container *c);
void container_list_free(struct container_list *list);
/* O(containers) */
bool container_list_has(const struct container_list *list, struct str id);
void network_list_free(struct network_list *list);

/* Each reads the JSON of an answer: 0, -ENOMEM, or -EINVAL and a text. An entry without an id, and
 * a container without a name, is left out. */
int container_list_parse(struct str json, struct container_list *ret, struct error *err);
int network_list_parse(struct str json, struct network_list *ret, struct error *err);
