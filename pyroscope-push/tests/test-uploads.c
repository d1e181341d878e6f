/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads while memory fails and while arguments change under them. What every test protects: a
 * file is sent, or its refusal counted; nothing is left held; and what the arguments forbid is not
 * sent. */
#include "abi/batch-build.h"
#include "testing/test.h"
#include "client/loop.h"
#include "elf/ids.h"
#include "pyroscope-push/tests/test-bench.h"
#include "pyroscope-push/tests/test-debuginfo.h"
#include "pyroscope-push/tests/test-directory.h"
#include "pyroscope-push/uploads/node-bandwidth.h"
#include "pyroscope-push/uploads/uploads.h"

#include <andiron/object.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define OBJECT 7

static int references, opened;

/* The one object is this program. It has no debug file beside it. */
static int32_t open_object(void *self, uint64_t object, uint32_t what, int32_t *ret_fd)
{
	expect(references > 0 && object == OBJECT);
	if (what != ANDIRON_OPEN_FILE)
		return -ENOENT;
	opened++;
	*ret_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

static void retain_object(void *self, uint64_t object)
{
	references++;
}

static void release_object(void *self, uint64_t object)
{
	references--;
}

static const struct andiron_objects objects = {.size = sizeof(objects),
					       .open = open_object,
					       .retain = retain_object,
					       .release = release_object};

struct fixture {
	struct test_debuginfo parca;
	struct test_server *server;
	struct arguments args;
	struct test_host *host;
	struct client_loop *loop;
	struct push_config *config;
	const struct andiron_batch *batch;
	struct batch_view view;
	struct uploads *uploads;
	char directory[64]; /* of the node's budget */
};

/* A batch with one frame of this program that nobody could name. */
static const struct andiron_batch *make_batch(void)
{
	struct batch_builder *b = batch_builder_new();
	struct andiron_mapping mapping = {.object = OBJECT};
	struct andiron_location at = {.kind = ANDIRON_FRAME_NATIVE, .address = 4096};
	struct elf_file f = ELF_FILE_NULL;
	struct batch_head head = {0};
	const struct andiron_batch *batch;
	struct error err = ERROR_NULL;
	struct elf_ids ids;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	expect(b && fd >= 0);
	expect_eq(elf_file_open(&f, fd, &err), 0);
	expect_eq(elf_ids_read(&f, &ids), 0);
	elf_file_close(&f);
	close(fd);
	expect(ids.gnu_build_id[0]);
	mapping.gnu_build_id = batch_add_string(b, str_of(ids.gnu_build_id));
	at.mapping = batch_add_mapping(b, &mapping);
	batch_add_location(b, &at);
	expect_eq(batch_finish(b, &head, &batch), 0);
	return batch;
}

static struct push_config *make_config(struct fixture *f)
{
	struct push_config *config;
	struct error err = ERROR_NULL;

	expect_eq(push_config_new(&protocol_parca, arguments(&f->args), &config, &err), 0);
	config->uploads.bytes_per_second = 0;
	config->uploads.share = f->directory;
	return config;
}

static void begin(struct fixture *f)
{
	struct abi_context context;
	struct error err = ERROR_NULL;

	test_directory_make(f->directory, sizeof(f->directory));
	f->server = test_server_new(test_debuginfo_serve, &f->parca);
	f->args.n = 1;
	f->args.backoff_ms = 1;
	f->args.timeout_ms = 5000;
	f->args.queue_bytes = 32 << 20;
	set_url(&f->args, 0, test_server_port(f->server));
	set_url(&f->args, 1, test_unused_port());
	f->host = test_host_new();
	f->host->objects = &objects;
	context = test_host_context();
	expect_eq(client_loop_new(&context, &f->loop, &err), 0);
	f->config = make_config(f);
	f->batch = make_batch();
	expect_eq(batch_view_init(&f->view, f->batch), 0);
	f->uploads = uploads_new(&context, client_loop_http(f->loop), f->config);
	expect(f->uploads);
}

static void end(struct fixture *f)
{
	uploads_free(f->uploads);
	push_config_release(f->config);
	batch_release(f->batch);
	client_loop_free(f->loop);
	test_host_free();
	test_server_free(f->server);
	test_directory_clear(f->directory);
	rmdir(f->directory);
	expect_eq(references, 0);
}

static void see(struct fixture *f)
{
	uploads_see(f->uploads, &f->view);
}

static void turn(void)
{
	test_host_until(&(const bool){false}, 1);
}

static void until_called(const struct fixture *f, enum test_call call, uint32_t times)
{
	while (f->parca.calls[call] < times)
		turn();
}

static const struct uploads_counts *until_settled(const struct fixture *f)
{
	while (uploads_counts(f->uploads)->waiting)
		turn();
	return uploads_counts(f->uploads);
}

static uint64_t refused(const struct fixture *f, const char *word)
{
	const struct uploads_counts *c = uploads_counts(f->uploads);

	for (size_t i = 0; i < UPLOADS_REASONS && c->refused[i].word; i++)
		if (strcmp(c->refused[i].word, word) == 0)
			return c->refused[i].files;
	return 0;
}

/* A reload: from now on these are the arguments. */
static void configure(struct fixture *f, struct push_config *config)
{
	uploads_configure(f->uploads, config);
	push_config_release(f->config);
	f->config = config;
}

TEST(a_file_is_sent_once)
{
	static struct fixture f;

	begin(&f);
	see(&f);
	expect_eq(until_settled(&f)->uploaded, 1);
	expect(uploads_counts(f.uploads)->bytes > 4096);
	see(&f);
	expect_eq(uploads_counts(f.uploads)->waiting, 0);
	expect_eq(f.parca.calls[CALL_FINISH], 1);
	expect(f.parca.bytes > uploads_counts(f.uploads)->bytes);
	end(&f);
}

/* One run with an allocation that fails. The batch comes twice, as batches do: what there was no
 * memory for at first can be done then. */
static int upload(void *context)
{
	struct fixture *f = context;
	struct abi_context host = test_host_context();
	const struct uploads_counts *c;
	uint64_t no_memory;
	bool sent;

	f->uploads = uploads_new(&host, client_loop_http(f->loop), f->config);
	if (!f->uploads)
		return -ENOMEM;
	see(f);
	until_settled(f);
	see(f);
	c = until_settled(f);
	no_memory = refused(f, "no_memory");
	sent = c->uploaded == 1;
	for (size_t i = 0; i < UPLOADS_REASONS && c->refused[i].word; i++)
		expect(strcmp(c->refused[i].word, "no_memory") == 0);
	uploads_free(f->uploads);
	expect_eq(references, 0);
	if (!sent && no_memory == 0)
		test_fail(__FILE__, __LINE__, "a file was neither sent nor refused");
	return sent && no_memory == 0 ? 0 : -ENOMEM;
}

TEST(a_failing_allocation_costs_a_try_or_is_counted)
{
	static struct fixture f;

	begin(&f);
	f.config->uploads.bytes_per_second = 1 << 30;
	uploads_free(f.uploads);
	test_each_failing_allocation(upload, &f);
	f.uploads = NULL;
	end(&f);
}

#define STORED  "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
#define EXPIRED "HTTP/1.1 403 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
#define BROKEN  "HTTP/1.1 500 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

static struct test_server *begin_signed(struct fixture *f, struct test_storage *storage)
{
	struct test_server *server = test_server_new(test_storage_serve, storage);

	begin(f);
	snprintf(f->parca.signed_url, sizeof(f->parca.signed_url), "http://127.0.0.1:%u/f?s=%%2F",
		 test_server_port(server));
	return server;
}

/* A server that signs has the file put to its URL as that is, with nothing beside that would break
 * the signature or give our secrets away; and is told that it is there. */
TEST(a_signed_url_is_written_to)
{
	static struct fixture f;
	static const char *const answers[] = {STORED, NULL};
	static struct test_storage storage = {.answers = answers};
	struct test_server *server = begin_signed(&f, &storage);
	struct http_header secret = {STR("X-Scope-OrgID"), STR("secret")};

	f.config->endpoints[0].headers = &secret;
	f.config->endpoints[0].n_headers = 1;
	f.config->endpoints[0].client.http.bearer_token = STR("secret");
	see(&f);
	expect_eq(until_settled(&f)->uploaded, 1);
	expect_eq(storage.bytes, uploads_counts(f.uploads)->bytes);
	expect(strncmp(storage.head, "PUT /f?s=%2F HTTP/1.1\r\n", 23) == 0);
	expect(!strcasestr(storage.head, "content-type") && !strstr(storage.head, "secret"));
	expect_eq(f.parca.calls[CALL_UPLOAD], 0);
	expect_eq(f.parca.calls[CALL_FINISH], 1);
	end(&f);
	test_server_free(server);
}

/* Storage that breaks down gets the file again under the same URL, which is signed for a while;
 * once it is refused, another is asked for. */
TEST(a_signed_url_is_used_while_it_lasts)
{
	static struct fixture f;
	static const char *const answers[] = {BROKEN, EXPIRED, STORED, NULL};
	static struct test_storage storage = {.answers = answers};
	struct test_server *server = begin_signed(&f, &storage);

	see(&f);
	expect_eq(until_settled(&f)->uploaded, 1);
	expect_eq(storage.files, 3);
	expect_eq(uploads_counts(f.uploads)->retries, 2);
	expect_eq(f.parca.calls[CALL_INITIATE], 2);
	end(&f);
	test_server_free(server);
}

TEST(a_failing_allocation_costs_a_signed_url_a_try)
{
	static struct fixture f;
	static const char *const answers[] = {STORED, NULL};
	static struct test_storage storage = {.answers = answers};
	struct test_server *server = begin_signed(&f, &storage);

	uploads_free(f.uploads);
	test_each_failing_allocation(upload, &f);
	f.uploads = NULL;
	end(&f);
	test_server_free(server);
}

/* Whom the new arguments leave alone goes on; the old ones live as long as that. */
TEST(an_upload_goes_on_over_a_reload)
{
	static struct fixture f;

	begin(&f);
	f.parca.mute = 1 << CALL_SHOULD;
	see(&f);
	until_called(&f, CALL_SHOULD, 1);
	f.args.timeout_ms = 4000;
	f.args.n = 2;
	configure(&f, make_config(&f));
	expect_eq(uploads_counts(f.uploads)->waiting, 1);
	expect_eq(uploads_counts(f.uploads)->retries, 0);
	end(&f);
}

TEST(an_upload_ends_with_its_endpoint)
{
	static struct fixture f;

	begin(&f);
	f.parca.mute = 1 << CALL_UPLOAD;
	see(&f);
	until_called(&f, CALL_UPLOAD, 1);
	memcpy(f.args.urls[0], f.args.urls[1], sizeof(f.args.urls[0]));
	configure(&f, make_config(&f));
	expect_eq(uploads_counts(f.uploads)->waiting, 0);
	expect_eq(references, 0);
	expect(uploads_counts(f.uploads)->bytes > 4096); /* which were sent all the same */
	f.parca.mute = 0;
	set_url(&f.args, 0, test_server_port(f.server));
	configure(&f, make_config(&f));
	see(&f);
	expect_eq(until_settled(&f)->uploaded, 1);
	end(&f);
}

/* Whatever an upload has come to when it is forbidden. */
TEST(nothing_is_sent_once_uploads_are_off)
{
	static struct fixture f;

	for (int running = 0; running < 2; running++) {
		struct push_config *off;

		f = (struct fixture){0};
		begin(&f);
		f.parca.mute = running ? 1 << CALL_SHOULD : 0;
		see(&f);
		if (running)
			until_called(&f, CALL_SHOULD, 1);
		off = make_config(&f);
		off->uploads.on = false;
		configure(&f, off);
		expect_eq(until_settled(&f)->uploaded, 0);
		expect_eq(f.parca.calls[CALL_SHOULD], (uint32_t)running);
		see(&f);
		expect_eq(uploads_counts(f.uploads)->waiting, 0);
		configure(&f, make_config(&f));
		f.parca.mute = 0;
		see(&f);
		expect_eq(until_settled(&f)->uploaded, 1);
		end(&f);
	}
}

/* What was opened to be sent whole is not, once that is not wanted any more. */
TEST(a_reload_strips_what_waits)
{
	static struct fixture f;
	struct push_config *whole;
	uint64_t bytes;

	begin(&f);
	whole = make_config(&f);
	whole->uploads.strip = false;
	configure(&f, whole);
	see(&f);
	configure(&f, make_config(&f)); /* it is being opened */
	expect_eq(until_settled(&f)->uploaded, 0);
	expect_eq(f.parca.calls[CALL_SHOULD], 0);
	see(&f);
	expect_eq(until_settled(&f)->uploaded, 1);
	bytes = uploads_counts(f.uploads)->bytes;
	end(&f);
	f = (struct fixture){0};
	begin(&f);
	f.config->uploads.strip = false;
	see(&f);
	expect(until_settled(&f)->bytes > bytes);
	end(&f);
}

/* What was over a limit is offered again when limits change. */
TEST(a_reload_raises_limits)
{
	static struct fixture f;

	begin(&f);
	f.config->uploads.max_file_bytes = 1000;
	see(&f);
	until_settled(&f);
	see(&f);
	expect_eq(refused(&f, "too_large"), 1);
	configure(&f, make_config(&f));
	f.config->uploads.max_total_bytes = 1000;
	see(&f);
	until_settled(&f);
	expect_eq(refused(&f, "budget"), 1);
	configure(&f, make_config(&f));
	see(&f);
	expect_eq(until_settled(&f)->uploaded, 1);
	end(&f);
}

/* The budget is that of all that are under way together. */
TEST(uploads_at_once_share_the_budget)
{
	static struct fixture f;
	uint64_t bytes;

	begin(&f);
	see(&f);
	bytes = until_settled(&f)->bytes;
	end(&f);
	f = (struct fixture){0};
	begin(&f);
	f.args.n = 2;
	snprintf(f.args.urls[1], sizeof(f.args.urls[1]), "http://localhost:%u",
		 test_server_port(f.server));
	configure(&f, make_config(&f));
	f.config->uploads.max_total_bytes = bytes + bytes / 2;
	see(&f);
	expect_eq(until_settled(&f)->uploaded, 1);
	expect_eq(refused(&f, "budget"), 1);
	expect(uploads_counts(f.uploads)->bytes <= bytes + bytes / 2);
	end(&f);
}

/* A budget for one upload at a time. */
static void limit(struct fixture *f)
{
	f->config->uploads.bytes_per_second = 1 << 30;
	f->config->uploads.max_parallel = 1;
}

static bool take_budget(const struct fixture *f, int *ret_part)
{
	struct upload_share s = {.context = test_host_context()};

	return upload_share_take(&s, &f->config->uploads, ret_part);
}

/* What another has is waited for until that gives it back. */
static void wait_for_budget(struct fixture *f, int *part)
{
	int before = opened;

	see(f);
	while (opened == before)
		turn();
	for (int i = 0; i < 400; i++) /* it asks four times a second */
		turn();
	expect_eq(f->parca.calls[CALL_SHOULD], 0);
	expect_eq(uploads_counts(f->uploads)->waiting, 1);
	upload_share_give(part);
	expect_eq(until_settled(f)->uploaded, 1);
	expect_eq(uploads_counts(f->uploads)->retries, 0);
}

/* Two blocks have one budget: one begins when another has ended, and has it until its own end. */
TEST(blocks_share_the_budget_of_the_node)
{
	static struct fixture f;
	struct abi_context context;
	struct uploads *other;
	int part = -1;

	begin(&f);
	limit(&f);
	expect(take_budget(&f, &part));
	wait_for_budget(&f, &part);
	context = test_host_context();
	other = uploads_new(&context, client_loop_http(f.loop), f.config);
	f.parca.mute = 1 << CALL_UPLOAD;
	uploads_see(other, &f.view);
	until_called(&f, CALL_UPLOAD, 2);
	expect(!take_budget(&f, &part));
	uploads_free(other);
	expect(take_budget(&f, &part));
	upload_share_give(&part);
	end(&f);
}

/* What a worker has under way outlives the uploads. */
TEST(an_end_while_a_file_is_opened)
{
	static struct fixture f;

	begin(&f);
	see(&f);
	expect_eq(references, 1);
	end(&f);
}
