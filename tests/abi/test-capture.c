/* SPDX-License-Identifier: Apache-2.0 */
/* An agent that exports what it is made of, as Fluent Bit does: its own JSON, YAML, HTTP and BPF
 * libraries, all of other versions. Every function of them ends the test. */
#include "host/registry.h"
#include "testing/test.h"

#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 4

#define POISONED(name)                                                                             \
	void name(void);                                                                           \
	__attribute__((visibility("default"), noreturn)) void name(void)                           \
	{                                                                                          \
		test_fail(__FILE__, __LINE__, "%s was called", #name);                             \
	}

POISONED(MHD_get_daemon_info)
POISONED(bpf_object__load_skeleton)
POISONED(curl_easy_setopt)
POISONED(json_object_get)
POISONED(json_loadb)
POISONED(lzma_code)
POISONED(protobuf_c_message_descriptor_get_field)
POISONED(protobuf_c_message_free_unpacked)
POISONED(protobuf_c_message_get_packed_size)
POISONED(protobuf_c_message_pack)
POISONED(protobuf_c_message_pack_to_buffer)
POISONED(protobuf_c_message_unpack)
POISONED(ring_buffer__new)
POISONED(yaml_parser_load)

/* Which of the names a plugin is refused for; NULL: for none, since it calls none. */
static const struct {
	const char *plugin, *names[NAMES_MAX];
} expected[] = {
	{"andiron-discovery.so",
	 {"curl_easy_setopt", "json_loadb", "json_object_get", "yaml_parser_load"}},
	{"andiron-docker.so", {"curl_easy_setopt", "json_loadb", "json_object_get"}},
	{"andiron-ebpf.so", {"bpf_object__load_skeleton", "lzma_code", "ring_buffer__new"}},
	{"andiron-file.so", {"protobuf_c_message_pack"}},
	{"andiron-jvm.so", {"ring_buffer__new"}},
	{"andiron-kubernetes.so",
	 {"curl_easy_setopt", "json_loadb", "json_object_get", "yaml_parser_load"}},
	{"andiron-profile-labels.so", {NULL}},
	{"andiron-process.so", {"bpf_object__load_skeleton", "ring_buffer__new"}},
	{"andiron-pyroscope.so", {"curl_easy_setopt", "lzma_code", "protobuf_c_message_pack"}},
	{"andiron-python.so", {"ring_buffer__new"}},
	{"andiron-receive-http.so",
	 {"MHD_add_response_header", "json_loadb", "protobuf_c_message_pack"}},
	{"andiron-relabel.so", {NULL}},
	{"andiron-scrape.so", {"curl_easy_setopt"}},
	{"andiron-self.so", {"lzma_code"}},
	{"andiron-status-http.so", {"MHD_get_daemon_info", "protobuf_c_message_pack"}},
	{"andiron-symbolize.so", {"lzma_code"}},
	{"andiron-v8.so", {"ring_buffer__new"}},
};

static void expect_named(const char *path, const char *const names[NAMES_MAX])
{
	const struct andiron_plugin *plugin;
	struct error err = ERROR_NULL;
	int r = registry_load(path, &plugin, NULL, &err);
	bool named = !names[0] && r == 0;

	for (int i = 0; i < NAMES_MAX; i++)
		named |= r < 0 && names[i] && strstr(err.text, names[i]);
	if (!named)
		test_fail(__FILE__, __LINE__, "%s: %d, %s", path, r, err.text);
}

/* A plugin is refused with the name before it is opened, or works. */
TEST(no_plugin_calls_the_agents_libraries)
{
	const char *list = getenv("TEST_PLUGIN_FILES");
	struct str rest = str_of(list);
	int n = 0;

	if (!list)
		test_skip("TEST_PLUGIN_FILES is not set: run it by `meson test`");
	while (rest.n > 0) {
		struct str file = str_cut(&rest, ':');

		for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
			char path[4096];

			if (!str_ends(file, str_of(expected[i].plugin)))
				continue;
			snprintf(path, sizeof(path), "%.*s", STR_FMT(file));
			expect_named(path, expected[i].names);
			n++;
		}
	}
	expect(n > 0);
}
