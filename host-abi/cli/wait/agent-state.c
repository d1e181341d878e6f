/* SPDX-License-Identifier: Apache-2.0 */
/* See agent-state.h. Only whole numbers are read: all counts are. */
#include "cli/wait/agent-state.h"

#include <inttypes.h>

struct place {
	const char *name;
	uint64_t *to;
};

static void take(struct agent_state *s, struct str name, uint64_t value)
{
	const struct place places[] = {
		{"andiron_kubernetes_pods", &s->pods},
		{"andiron_kubernetes_targets", &s->targets},
		{"andiron_kubelet_pods", &s->pods},
		{"andiron_kubelet_targets", &s->targets},
		{"andiron_ebpf_matched_targets", &s->matched},
		{"andiron_samples_taken_total", &s->taken},
		{"andiron_samples_delivered_total", &s->delivered},
		{"andiron_samples_in_flight", &s->waiting},
		{"andiron_samples_spooled", &s->waiting},
		{"andiron_samples_uncertain", &s->waiting},
		{"andiron_samples_dropped_total", &s->dropped},
	};

	s->is_andiron |= str_is(name, "andiron_build_info");
	s->has_kubernetes |= str_is(name, "andiron_kubernetes_targets") ||
			     str_is(name, "andiron_kubelet_targets");
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (str_is(name, places[i].name))
			*places[i].to += value;
}

void agent_state_read(struct str metrics, struct agent_state *ret)
{
	struct agent_state s = {0};

	while (metrics.n) {
		struct str line = str_cut(&metrics, '\n');
		size_t labels = str_find(line, '{'), space = str_rfind(line, ' ');
		uint64_t value;

		if (!line.n || line.p[0] == '#' || !str_u64(str_skip(line, space + 1), &value))
			continue;
		take(&s, str_first(line, labels < space ? labels : space), value);
	}
	*ret = s;
}

/* The end of a noun after this number. */
static const char *end_of(uint64_t n)
{
	return n == 1 ? "" : "s";
}

void agent_state_put(const struct agent_state *s, uint64_t before, struct buf *out)
{
	if (!s->is_andiron)
		buf_printf(out, "what answers is no andiron");
	else if (!s->has_kubernetes)
		buf_printf(out, "its configuration has neither discovery.kubernetes nor "
				"discovery.kubelet");
	else if (!s->targets)
		buf_printf(out, "it knows %" PRIu64 " pod%s of its node, and no container there",
			   s->pods, end_of(s->pods));
	else if (!s->matched)
		buf_printf(out, "it knows %" PRIu64 " container%s, and profiles none",
			   s->targets, end_of(s->targets));
	else if (!s->taken)
		buf_printf(out, "it profiles %" PRIu64 " container%s, and none has used a CPU",
			   s->matched, end_of(s->matched));
	else
		buf_printf(out,
			   "it profiles %" PRIu64 " container%s and took %" PRIu64
			   " sample%s: %" PRIu64 " delivered before, none since; %" PRIu64
			   " waiting for the backend, %" PRIu64 " dropped",
			   s->matched, end_of(s->matched), s->taken, end_of(s->taken), before,
			   s->waiting, s->dropped);
}

const char *agent_state_fix(const struct agent_state *s)
{
	if (!s->is_andiron)
		return "name host and port of status.http";
	if (!s->has_kubernetes)
		return "add one, and give its targets to pyroscope.ebpf";
	if (!s->targets)
		return "may its account list and watch pods? its log has what the server says";
	if (!s->matched)
		return "run `andiron targets CONFIG --match` in its pod: it says why a container "
		       "is left out";
	if (!s->taken)
		return "let a pod of its node work, or wait for longer (--timeout)";
	if (s->waiting)
		return "are the backend's address and credentials right, and can it be reached? "
		       "the agent's log has what it says";
	return "wait for longer than collect_interval (--timeout); its log has what fails";
}
