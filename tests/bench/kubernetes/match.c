/* SPDX-License-Identifier: Apache-2.0 */
/* match TARGETS: what a sampler pays for targets of a whole cluster that arrive as
 * discovery.kubernetes sends them, and for one that changes later. Two containers a pod, labels as
 * of the usual relabeling. Lines are "name value unit", for discovery.py to print. */
#include "base/clock.h"
#include "ebpf/processes/target-match.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#define UPDATE_ROWS 1024u /* as k8s-discovery/publish.h */
#define CHANGES     100u

struct bench {
	struct target_list *list;
	struct matcher *matcher;
	int64_t ns;
};

static size_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static bool set(struct bench *b, uint32_t i, uint32_t round)
{
	char pod[64], node[32], id[96];
	int n_pod = snprintf(pod, sizeof(pod), "web-5d9c7b8f6-%06u", i / 2);
	int n_node = snprintf(node, sizeof(node), "node-%05u", i / 200);
	int n_id = snprintf(id, sizeof(id), "containerd://%064x", i);
	struct target_label labels[] = {
		{STR("__address__"), STR("10.2.3.4:8080")},
		{STR("__meta_kubernetes_namespace"), STR("shop")},
		{STR("__meta_kubernetes_pod_container_id"), {id, (size_t)n_id}},
		{STR("__meta_kubernetes_pod_container_name"), i % 2 ? STR("proxy") : STR("app")},
		{STR("__meta_kubernetes_pod_node_name"), {node, (size_t)n_node}},
		{STR("__meta_kubernetes_pod_phase"), STR("Running")},
		{STR("container"), i % 2 ? STR("proxy") : STR("app")},
		{STR("namespace"), STR("shop")},
		{STR("node"), {node, (size_t)n_node}},
		{STR("pod"), {pod, (size_t)n_pod}},
		{STR("service_name"), round ? STR("web2") : STR("web")},
	};

	return target_list_set(b->list, i, i, labels, sizeof(labels) / sizeof(*labels)) == 0;
}

/* Sends what has changed; only the matcher's time counts. */
static bool send(struct bench *b)
{
	const struct andiron_targets *u = NULL;
	int64_t begun;
	bool good;

	if (target_list_flush(b->list, &u) < 0 || !u)
		return false;
	begun = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	good = matcher_apply(b->matcher, u) == 0 && matcher_rebuild(b->matcher) == 0;
	matcher_prune(b->matcher);
	b->ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun;
	u->release(u->owner);
	return good;
}

/* What the matcher alone has of the heap: what is left of it when it has gone. */
static size_t own_bytes(struct bench *b)
{
	size_t all = heap_bytes();

	matcher_free(b->matcher);
	b->matcher = NULL;
	return all - heap_bytes();
}

int main(int argc, char **argv)
{
	uint32_t n = argc == 2 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
	struct bench b = {target_list_new(1), matcher_new(), 0};
	bool good = b.list && b.matcher && n;
	double arrival;

	for (uint32_t i = 0; i < n && good; i++)
		good = set(&b, i, 0) && ((i + 1) % UPDATE_ROWS || send(&b));
	if (good && n % UPDATE_ROWS)
		good = send(&b);
	arrival = (double)b.ns;
	b.ns = 0;
	for (uint32_t i = 0; i < CHANGES && good; i++)
		good = set(&b, (uint32_t)(UINT64_C(7919) * i % n), 1) && send(&b);
	if (!good)
		return 2;
	printf("arrival %.1f ms\nchange %.1f us\n", arrival / 1e6, (double)b.ns / 1e3 / CHANGES);
	printf("memory %.0f B\n", (double)own_bytes(&b) / n);
	target_list_free(b.list);
	return 0;
}
