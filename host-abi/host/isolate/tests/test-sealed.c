/* SPDX-License-Identifier: Apache-2.0 */
/* What crosses to the process of an isolated component and back: batches, arguments, metrics and
 * counts; and that what a stranger has made of them is refused. */
#include "host/isolate/batch-memory.h"
#include "host/isolate/message.h"
#include "host/isolate/target-bytes.h"
#include "host/isolate/metric-bytes.h"
#include "host/isolate/value-bytes.h"

#include "abi/batch-build.h"
#include "abi/batch-view.h"
#include "abi/target-feed.h"
#include "abi/target-list.h"
#include "base/cleanup.h"
#include "host/tests/test-support.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* A batch is the same behind sealed memory, which nobody can change any more. */
TEST(a_batch_is_the_same)
{
	const struct andiron_batch *batch = test_batch(10, 0), *copy;
	struct batch_view a, b;
	int fd;

	expect_eq(memory_of_batch(batch, &fd), 0);
	expect(write(fd, "x", 1) < 0 && ftruncate(fd, 0) < 0);
	expect_eq(memory_batch(fd, batch, &copy), 0);
	expect_eq(copy->samples, 10);
	expect_eq(batch_view_init(&a, batch), 0);
	expect_eq(batch_view_init(&b, copy), 0);
	for (uint32_t c = 1; c <= ANDIRON_COL_ENCODED; c++)
		expect_eq(batch_count(&a, c), batch_count(&b, c));
	for (uint32_t i = 0; i < batch_count(&a, ANDIRON_COL_STRING); i++)
		expect(str_eq(batch_str(&a, i), batch_str(&b, i)));
	close(fd);
	batch_release(batch); /* the copy holds it */
	batch_release(copy);
}

/* Every shorter one, and any with a byte that is another, is refused or can be read. */
TEST(a_broken_batch_is_refused)
{
	const struct andiron_batch *batch = test_batch(10, 0), *copy;
	struct buf bytes = BUF_NULL;
	struct batch_view view;
	int fd;

	expect_eq(memory_of_batch(batch, &fd), 0);
	expect_eq(memory_bytes(fd, 1 << 20, &bytes), 0);
	expect_eq(memory_bytes(fd, bytes.n - 1, &bytes), -EBADMSG);
	close(fd);
	for (size_t n = 0; n < bytes.n; n += 1 + n / 16) {
		expect_eq(memory_of_bytes(str_first(buf_str(&bytes), n), &fd), 0);
		expect_eq(memory_batch(fd, NULL, &copy), -EBADMSG);
		close(fd);
	}
	for (size_t n = 0; n < bytes.n; n += 1 + n / 64) {
		bytes.p[n] = (char)~bytes.p[n];
		expect_eq(memory_of_bytes(buf_str(&bytes), &fd), 0);
		if (memory_batch(fd, NULL, &copy) == 0) {
			expect_eq(batch_view_init(&view, copy), 0);
			batch_release(copy);
		}
		close(fd);
		bytes.p[n] = (char)~bytes.p[n];
	}
	buf_free(&bytes);
	batch_release(batch);
}

/* Memory that its maker can still write is none. */
TEST(memory_that_is_not_sealed_is_refused)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct buf bytes = BUF_NULL;

	expect(fd >= 0);
	expect_eq(memory_bytes(fd, 100, &bytes), -EBADMSG);
	expect(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SEAL) == 0);
	expect_eq(memory_bytes(fd, 100, &bytes), -EBADMSG);
	close(fd);
	buf_free(&bytes);
}

/* The bytes of an update of two rows, one of them removed before. */
static struct buf update_bytes(void)
{
	struct target_label label = {STR("name"), STR("value")};
	struct target_list *list = target_list_new(7);
	const struct andiron_targets *update;
	struct buf bytes = BUF_NULL;

	for (uint64_t row = 1; row <= 3; row++)
		expect_eq(target_list_set(list, row, row, &label, 1), 0);
	expect_eq(target_list_flush(list, &update), 0);
	update->release(update->owner);
	target_list_remove(list, 1);
	label.value = STR("other");
	expect_eq(target_list_set(list, 2, 2, &label, 1), 0);
	expect_eq(target_list_flush(list, &update), 0);
	target_bytes_put(&bytes, "port", update);
	target_bytes_put(&bytes, "", update);
	update->release(update->owner);
	target_list_free(list);
	expect(!bytes.failed);
	return bytes;
}

/* Targets are the same, one update behind the other; what is cut is refused, and what has another
 * byte is refused or can be read. */
TEST(targets_are_the_same)
{
	struct buf bytes = update_bytes(), copy = BUF_NULL;
	struct str rest = buf_str(&bytes);
	const struct andiron_targets *u = target_bytes_get(&rest);

	expect(u && u->n_rows == 1 && u->n_added == 0 && u->n_removed == 1);
	expect(u->removed[0] == 1 && u->rows[0].row == 2 && target_update_sound(u));
	expect(memcmp(u->strings[u->labels[0].value].ptr, "other", 5) == 0);
	expect(strcmp(rest.p, "port") == 0);
	rest = target_bytes_next(rest);
	expect(rest.n == bytes.n / 2 && target_bytes_get(&rest) && strcmp(rest.p, "") == 0);
	buf_free(&bytes);
	bytes = update_bytes();
	for (size_t n = 0; n < bytes.n / 2 - 8; n++) { /* whose end is zeros */
		rest = str_first(buf_str(&bytes), n);
		expect(!target_bytes_get(&rest));
	}
	for (size_t n = 0; n < bytes.n / 2; n++) {
		buf_clear(&copy);
		buf_str_append(&copy, buf_str(&bytes));
		copy.p[n] = (char)~copy.p[n];
		rest = buf_str(&copy);
		u = target_bytes_get(&rest);
		for (uint64_t i = 0; u && target_update_sound(u) && i < u->n_labels; i++)
			expect(u->strings[u->labels[i].name].len <= copy.n);
	}
	buf_free(&copy);
	buf_free(&bytes);
}

/* Arguments are the same; each that is cut is refused. */
TEST(arguments_are_the_same)
{
	struct andiron_str key = {"key", 3};
	struct andiron_value item = {
		.kind = ANDIRON_VALUE_STRING, .flags = ANDIRON_VALUE_SECRET, .string = {"text", 4}};
	struct andiron_value map = {.kind = ANDIRON_VALUE_MAP,
				    .keys = &key,
				    .items = &item,
				    .n_items = 1,
				    .file = "f.alloy",
				    .line = 7};
	struct andiron_value got;
	struct arena arena = ARENA_NULL;
	struct buf bytes = BUF_NULL;

	value_bytes_put(&bytes, &map);
	expect(!bytes.failed);
	expect_eq(value_bytes_get(buf_str(&bytes), &arena, &got), 0);
	expect_eq(got.n_items, 1);
	expect_eq(got.line, 7);
	expect(strcmp(got.file, "f.alloy") == 0 && strcmp(got.keys[0].ptr, "key") == 0);
	expect(strcmp(got.items[0].string.ptr, "text") == 0);
	expect_eq(got.items[0].flags, ANDIRON_VALUE_SECRET);
	for (size_t n = 0; n < bytes.n; n++)
		expect_eq(value_bytes_get(str_first(buf_str(&bytes), n), &arena, &got), -EBADMSG);
	buf_free(&bytes);
	arena_free(&arena);
}

static void count(void *self, const struct andiron_metric *metric)
{
	*(int *)self += metric->value > 1 && metric->n_labels == 1 &&
			strcmp(metric->labels[0].value.ptr, "v") == 0;
}

/* Metrics are the same; what is cut ends the list. */
TEST(metrics_are_the_same)
{
	struct andiron_kv label = {{"k", 1}, {"v", 1}};
	struct andiron_metric m = {"a_total", "Help.", ANDIRON_METRIC_COUNTER, 1, &label, 2};
	int n = 0;
	struct andiron_metric_sink sink = {.size = sizeof(sink), .self = &n, .add = count};
	struct buf bytes = BUF_NULL;

	metric_bytes_put(&bytes, &m);
	metric_bytes_put(&bytes, &m);
	metric_bytes_each(buf_str(&bytes), &sink);
	expect_eq(n, 2);
	for (size_t cut = 0; cut < bytes.n; cut++)
		metric_bytes_each(str_first(buf_str(&bytes), cut), &sink);
	expect_eq(n, 2 + (int)(bytes.n / 2));
	buf_free(&bytes);
}

/* Counts have words that end, and no more than fit. */
TEST(counts_are_checked)
{
	struct isolate_counts c = {.delivered = 1, .n_reasons = 1}, got;
	struct str text;

	memcpy(c.dropped[0].word, "word", 4);
	text = isolate_counts_text(&c);
	expect(isolate_counts_get(text, &got) && got.delivered == 1);
	expect(!isolate_counts_get(str_first(text, text.n - 1), &got));
	c.n_reasons = ISOLATE_REASONS + 1;
	expect(!isolate_counts_get(text, &got));
	c.n_reasons = 1;
	memset(c.dropped[0].word, 'x', ISOLATE_REASON_BYTES);
	expect(!isolate_counts_get(text, &got));
	c.dropped[0].word[0] = 0;
	expect(!isolate_counts_get(text, &got));
}

static void send_two(int socket, int fd)
{
	struct isolate_packet head = {.type = ISOLATE_SEND};
	struct iovec part = {&head, 16};
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control = {0};
	struct msghdr h = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};

	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(2 * sizeof(int));
	memcpy(CMSG_DATA(&control.head), (int[]){fd, fd}, 2 * sizeof(int));
	expect_eq(sendmsg(socket, &h, 0), 16);
}

/* Descriptors that are too many are closed, and one that finds no room is missed. */
TEST(descriptors_are_counted)
{
	static struct isolate_packet packet;
	struct isolate_message m = {.type = ISOLATE_SEND};
	struct rlimit former, none = {0};
	int fds[2], fd, next;

	expect(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
	next = dup(fds[0]);
	close(next);
	send_two(fds[0], fds[0]);
	expect_eq(isolate_take(fds[1], &packet, &m, &fd), -EBADMSG);
	expect_eq(dup(fds[0]), next);
	close(next);
	expect_eq(isolate_put(fds[0], &m, fds[0], false), 0);
	expect_eq(getrlimit(RLIMIT_NOFILE, &former), 0);
	none.rlim_max = former.rlim_max;
	expect_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	expect_eq(isolate_take(fds[1], &packet, &m, &fd), 1);
	expect_eq(setrlimit(RLIMIT_NOFILE, &former), 0);
	expect(m.fd_lost && fd == -1);
	close(fds[0]);
	close(fds[1]);
}

/* A message is one packet, with one descriptor at most; what is none is said to be none. */
TEST(messages_are_checked)
{
	static struct isolate_packet packet;
	struct isolate_message m = {.type = ISOLATE_LOG, .number = 3, .text = STR("text")};
	int fds[2], fd;

	expect(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
	expect_eq(isolate_take(fds[1], &packet, &m, &fd), 0);
	expect_eq(isolate_put(fds[0], &m, fds[0], false), 0);
	m = (struct isolate_message){0};
	expect_eq(isolate_take(fds[1], &packet, &m, &fd), 1);
	expect(m.type == ISOLATE_LOG && m.number == 3 && str_is(m.text, "text") && fd >= 0);
	close(fd);
	expect_eq(send(fds[0], "short", 5, 0), 5);
	expect_eq(isolate_take(fds[1], &packet, &m, &fd), -EBADMSG);
	m.text.n = ISOLATE_MAX_TEXT + 1;
	expect_eq(isolate_put(fds[0], &m, -1, false), -E2BIG);
	close(fds[0]);
	expect_eq(isolate_take(fds[1], &packet, &m, &fd), -EPIPE);
	close(fds[1]);
}
