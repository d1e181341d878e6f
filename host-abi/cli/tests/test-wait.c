/* SPDX-License-Identifier: Apache-2.0 */
/* What `andiron wait` makes of an agent's metrics. */
#include "cli/wait/agent-state.h"
#include "testing/test.h"

static void expect_said(const char *metrics, const char *sentence, const char *fix)
{
	struct agent_state s;
	struct buf text = BUF_NULL;

	agent_state_read(str_of(metrics), &s);
	agent_state_put(&s, 0, &text);
	buf_putc(&text, '\0');
	if (!strstr(text.p, sentence) || !strstr(agent_state_fix(&s), fix))
		test_fail(__FILE__, __LINE__, "\"%s\" and \"%s\" do not say \"%s\" and \"%s\"",
			  text.p, agent_state_fix(&s), sentence, fix);
	buf_free(&text);
}

#define IS   "# TYPE andiron_build_info gauge\nandiron_build_info{version=\"0 1\"} 1\n"
#define PODS "andiron_kubernetes_pods{component_id=\"a\"} 3\n"
#define POD  "andiron_kubernetes_pods{component_id=\"a\"} 1\n"
#define NONE "andiron_kubernetes_targets{component_id=\"a\"} 0\n"
#define SOME "andiron_kubernetes_targets{component_id=\"a\"} 4\n"
#define HAVE "andiron_ebpf_matched_targets{component_id=\"e\"} 2\n"
#define TOOK "andiron_samples_taken_total 70\n"

/* The first step that is missing is named, with what to do about that one. */
TEST(the_first_missing_step_is_said)
{
	expect_said("", "no andiron", "status.http");
	expect_said("up 1\nnginx_connections 70", "no andiron", "status.http");
	expect_said(IS, "neither discovery.kubernetes nor discovery.kubelet", "pyroscope.ebpf");
	expect_said(IS "andiron_kubelet_pods{component_id=\"a\"} 3\n"
		       "andiron_kubelet_targets{component_id=\"a\"} 4\n",
		    "knows 4 containers, and profiles none", "--match");
	expect_said(IS PODS NONE, "knows 3 pods", "list and watch");
	expect_said(IS POD NONE, "knows 1 pod of its node", "list and watch");
	expect_said(IS PODS SOME, "knows 4 containers, and profiles none", "--match");
	expect_said(IS PODS SOME HAVE, "none has used a CPU", "let a pod");
	expect_said(IS PODS SOME HAVE TOOK "andiron_samples_spooled{writer=\"w\"} 60\n"
					   "andiron_samples_in_flight{writer=\"w\"} 5\n",
		    "took 70 samples: 0 delivered before, none since; 65 waiting", "credentials");
	expect_said(IS PODS SOME HAVE TOOK "andiron_samples_dropped_total{reason=\"x{ y\"} 70\n",
		    "70 dropped", "log");
}

/* Writers are added up, and what is no whole number counts for nothing. */
TEST(figures_are_added_up)
{
	struct agent_state s;

	agent_state_read(STR("andiron_samples_delivered_total{writer=\"a\"} 7\n"
			     "andiron_samples_delivered_total{writer=\"b} \"} 5\n"
			     "andiron_samples_delivered_total NaN\n"
			     "andiron_samples_delivered_total\n"
			     "andiron_samples_delivered_total_more 9\n"
			     "# andiron_samples_delivered_total 9\n\n \n{ 1\n"
			     "andiron_samples_delivered_total 100"),
			 &s);
	expect_eq(s.delivered, 112);
	expect(!s.is_andiron && !s.has_kubernetes);
}
