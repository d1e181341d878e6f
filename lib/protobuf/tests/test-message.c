/* SPDX-License-Identifier: Apache-2.0 */
/* Messages within bounds, whatever a server answers. */
#include "protobuf/message.h"
#include "protobuf/otlp.pb-c.h"
#include "protobuf/parca.pb-c.h"
#include "protobuf/wire.h"
#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>

static int unpack(struct str in, const struct message_bounds *bounds)
{
	struct arena arena = ARENA_NULL;
	const void *message = NULL;
	int r = message_unpack(&otlp__export_profiles_service_request__descriptor, in, bounds,
			       &arena, &message);

	expect((r == 0) == (message != NULL));
	arena_free(&arena);
	return r;
}

/* A request with n scopes, each with a name. */
static void make(size_t n, struct buf *out)
{
	Otlp__InstrumentationScope name = OTLP__INSTRUMENTATION_SCOPE__INIT;
	Otlp__ScopeProfiles scope = OTLP__SCOPE_PROFILES__INIT;
	Otlp__ResourceProfiles resource = OTLP__RESOURCE_PROFILES__INIT;
	Otlp__ExportProfilesServiceRequest request = OTLP__EXPORT_PROFILES_SERVICE_REQUEST__INIT;
	Otlp__ScopeProfiles **scopes = calloc(n + 1, sizeof(*scopes));
	Otlp__ResourceProfiles *resources = &resource;

	name.name = message_bytes(STR("scope"));
	scope.scope = &name;
	for (size_t i = 0; i < n; i++)
		scopes[i] = &scope;
	resource.n_scope_profiles = n;
	resource.scope_profiles = scopes;
	request.n_resource_profiles = 1;
	request.resource_profiles = &resources;
	message_pack(&request, out);
	free(scopes);
}

/* What is packed is unpacked as it was. */
TEST(a_message_survives)
{
	Parca__WriteRawRequest request = PARCA__WRITE_RAW_REQUEST__INIT;
	ProtobufCBinaryData series = message_bytes(STR("a\0b"));
	const Parca__WriteRawRequest *read;
	struct arena arena = ARENA_NULL;
	struct buf bytes = BUF_NULL;
	const void *message;

	request.n_series = 1;
	request.series = &series;
	request.normalized = true;
	message_pack(&request, &bytes);
	expect_eq(message_unpack(&parca__write_raw_request__descriptor, buf_str(&bytes),
				 &MESSAGE_ANSWER, &arena, &message),
		  0);
	read = message;
	expect_eq(read->n_series, 1);
	expect(str_eq(message_str(read->series[0]), STR("a\0b")));
	expect(read->normalized);
	arena_free(&arena);
	buf_free(&bytes);
}

/* Each bound refuses what is just above it, and takes what is just within. */
TEST(each_bound_holds)
{
	struct buf bytes = BUF_NULL;
	struct message_bounds b = MESSAGE_ANSWER;

	make(10, &bytes); /* 1 resource, 10 scopes, 10 inner messages, 10 names */
	b.fields = 31;
	expect_eq(unpack(buf_str(&bytes), &b), 0);
	b.fields = 30;
	expect_eq(unpack(buf_str(&bytes), &b), -EBADMSG);
	b = MESSAGE_ANSWER;
	b.bytes = bytes.n - 1;
	expect_eq(unpack(buf_str(&bytes), &b), -E2BIG);
	b = MESSAGE_ANSWER;
	b.memory = 256;
	expect_eq(unpack(buf_str(&bytes), &b), -E2BIG);
	buf_free(&bytes);
}

/* Fields without a name in the .proto are copied; many of them are refused before. */
TEST(many_unknown_fields_are_refused)
{
	struct buf bytes = BUF_NULL;

	for (int i = 0; i < 4096; i++)
		wire_put_field(&bytes, 99, 1);
	expect_eq(unpack(buf_str(&bytes), &MESSAGE_ANSWER), 0);
	wire_put_field(&bytes, 99, 1);
	expect_eq(unpack(buf_str(&bytes), &MESSAGE_ANSWER), -EBADMSG);
	buf_free(&bytes);
}

/* Bytes changed by chance, and cut, never reach beyond their memory. */
TEST(damaged_messages_are_refused_or_read)
{
	struct buf clean = BUF_NULL;
	uint64_t seed = 7, taken = 0;

	make(8, &clean);
	for (int run = 0; run < 50000; run++) {
		char *copy = malloc(clean.n);
		size_t n = clean.n;

		memcpy(copy, clean.p, n);
		for (int k = run % 4; k >= 0; k--) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			copy[(seed >> 33) % n] = (char)(seed >> 25);
		}
		n = run % 5 ? n : (size_t)(seed >> 40) % n;
		taken += unpack((struct str){copy, n}, &MESSAGE_ANSWER) == 0;
		free(copy);
	}
	printf("# %llu of 50000 are read\n", (unsigned long long)taken);
	expect(taken > 0);
	buf_free(&clean);
}

static int with_memory(void *context)
{
	const struct buf *bytes = context;

	return unpack(buf_str(bytes), &MESSAGE_ANSWER);
}

/* Each allocation of an unpacking can fail. */
TEST(survives_out_of_memory)
{
	struct buf bytes = BUF_NULL;

	make(100, &bytes);
	test_each_failing_allocation(with_memory, &bytes);
	buf_free(&bytes);
}
