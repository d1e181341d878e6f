/* SPDX-License-Identifier: Apache-2.0 */
/* URLs and labels of targets, as Alloy makes them. */
#include "scrape/endpoint.h"

#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>

static struct settings plain(void)
{
	return (struct settings){.scheme = STR("http"),
				 .path_prefix = STR(""),
				 .job_name = STR(""),
				 .seconds = 14};
}

static const struct kind memory = {STR("memory"), STR("/debug/pprof/allocs"), false, TOTALS_ALLOC};
static const struct kind cpu = {STR("process_cpu"), STR("/debug/pprof/profile"), true, TOTALS_NONE};

/* "name=value name=value", sorted here. */
static struct target_row row_of(const char *text, struct target_label *labels)
{
	struct str rest = str_of(text);
	uint32_t n = 0;

	while (rest.n) {
		struct str value = str_cut(&rest, ' '), name = str_cut(&value, '=');

		labels[n++] = (struct target_label){name, value};
	}
	qsort(labels, n, sizeof(*labels), target_label_compare);
	return (struct target_row){.labels = labels, .n_labels = n};
}

static void expect_endpoint(const struct settings *s, const struct kind *kind, const char *target,
			    const char *url, const char *labels)
{
	struct target_label of_row[16];
	struct target_row row = row_of(target, of_row);
	struct error err = ERROR_NULL;
	struct buf text = BUF_NULL;
	struct endpoint e;

	expect_eq(endpoint_init(&e, s, &row, kind, &err), 0);
	expect_str(buf_str(&e.url), url);
	for (uint32_t i = 0; i < e.n_labels; i++)
		buf_printf(&text, "%s%.*s=%.*s", i ? " " : "", STR_FMT(e.labels[i].name),
			   STR_FMT(e.labels[i].value));
	expect_str(buf_str(&text), labels);
	buf_free(&text);
	endpoint_fini(&e);
}

/* Each label that Alloy reads changes what it changes there. */
TEST(labels_say_what_is_asked)
{
	struct settings s = plain();

	expect_endpoint(&s, &memory, "__address__=a:6060", "http://a:6060/debug/pprof/allocs",
			"__name__=memory instance=a:6060 service_name=unspecified");
	expect_endpoint(&s, &cpu, "__address__=a __scheme__=https service_name=s",
			"https://a:443/debug/pprof/profile?seconds=14",
			"__name__=process_cpu instance=a:443 service_name=s");
	expect_endpoint(&s, &memory,
			"__address__=[::1] __profile_path__=/heap __profile_path_prefix__=/x/ "
			"__name__=heap instance=i __internal=1",
			"http://[::1]:80/x/heap",
			"__name__=heap instance=i service_name=unspecified");
	expect_endpoint(&s, &memory, "__address__=a:1 __profile_path__=/prof//",
			"http://a:1/prof/",
			"__name__=memory instance=a:1 service_name=unspecified");
	expect_endpoint(&s, &memory, "__address__=a:1 __profile_path__=/",
			"http://a:1/",
			"__name__=memory instance=a:1 service_name=unspecified");
	s.job_name = STR("j");
	s.path_prefix = STR("p");
	expect_endpoint(&s, &memory, "__address__=a:1 __meta_docker_container_name=web zone=z",
			"http://a:1/p/debug/pprof/allocs",
			"__name__=memory instance=a:1 job=j service_name=web zone=z");
	expect_endpoint(&s, &memory,
			"__address__=a:1 job=own __meta_kubernetes_namespace=n "
			"__meta_kubernetes_pod_container_name=c",
			"http://a:1/p/debug/pprof/allocs",
			"__name__=memory instance=a:1 job=own service_name=n/c");
}

/* Parameters come from the settings; a label stands in for the first value of its name, or adds
 * one. What is no letter is encoded. */
TEST(parameters_come_from_settings_and_labels)
{
	static const struct param params[] = {
		{STR("a"), STR("1")}, {STR("a"), STR("2")}, {STR("seconds"), STR("99")}};
	struct settings s = plain();

	s.params = params;
	s.n_params = 3;
	expect_endpoint(&s, &memory, "__address__=h:1 __param_a=x&y __param_b=3",
			"http://h:1/debug/pprof/allocs?a=x%26y&a=2&seconds=99&b=3",
			"__name__=memory instance=h:1 service_name=unspecified");
	expect_endpoint(&s, &cpu, "__address__=h:1",
			"http://h:1/debug/pprof/profile?a=1&a=2&seconds=14",
			"__name__=process_cpu instance=h:1 service_name=unspecified");
}

/* A parameter's name may be long. */
TEST(a_long_parameter_is_whole)
{
	static const char name[] = "a_name_of_one_hundred_and_thirty_letters_that_a_target_and_the_"
				   "settings_give_a_value_each_of_which_that_of_the_target_is_"
				   "the_one";
	const struct param param = {str_of(name), STR("settings")};
	struct settings s = plain();
	char target[256], url[256];

	s.params = &param;
	s.n_params = 1;
	snprintf(target, sizeof(target), "__address__=h:1 __param_%s=target", name);
	snprintf(url, sizeof(url), "http://h:1/debug/pprof/allocs?%s=target", name);
	expect(sizeof(name) > 128);
	expect_endpoint(&s, &memory, target, url,
			"__name__=memory instance=h:1 service_name=unspecified");
}

/* No choice of labels makes two targets one. */
TEST(other_labels_are_another_identity)
{
	static const char *const texts[] = {"__address__=h:1 a=b c=d",
					    "__address__=h:1 a=b\xff" "c\xff" "d",
					    "__address__=h:1 a=b c=e"};
	struct settings s = plain();
	unsigned char identity[3][SHA256_BYTES];

	for (size_t i = 0; i < 3; i++) {
		struct target_label of_row[16];
		struct target_row row = row_of(texts[i], of_row);
		struct error err = ERROR_NULL;
		struct endpoint e;

		expect_eq(endpoint_init(&e, &s, &row, &memory, &err), 0);
		endpoint_identity(&e, identity[i]);
		endpoint_fini(&e);
		for (size_t k = 0; k < i; k++)
			expect(memcmp(identity[i], identity[k], SHA256_BYTES) != 0);
	}
}

/* What cannot be asked says why. */
TEST(a_target_that_cannot_be_asked_says_why)
{
	static const char *const bad[][2] = {{"job=x", "no __address__"},
					     {"__address__=http://h", "write host:port"},
					     {"__address__=h:1 __scheme__=ftp", "must begin with"}};
	struct settings s = plain();

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct target_label of_row[16];
		struct target_row row = row_of(bad[i][0], of_row);
		struct error err = ERROR_NULL;
		struct endpoint e;

		expect_eq(endpoint_init(&e, &s, &row, &memory, &err), -EINVAL);
		expect(strstr(err.text, bad[i][1]) != NULL);
		endpoint_fini(&e);
	}
}

/* Metadata that nothing here reads is not kept, whatever else is. */
TEST(only_metadata_is_left_out)
{
	expect(endpoint_keeps(STR("job")));
	expect(endpoint_keeps(STR("__param_x")));
	expect(endpoint_keeps(STR("__meta_kubernetes_namespace")));
	expect(!endpoint_keeps(STR("__meta_kubernetes_pod_label_x")));
}
