/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron debuginfo upload`: what a server needs to name the addresses of a file, sent from where
 * the file was built. Parca asks for it as it asks an agent; what a build throws away
 * need not be on any node then. */
#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/cli.h"
#include "debuginfo-upload/upload.h"
#include "elf/ids.h"
#include "http/polled.h"
#include "cli/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CALL_MS        30000
#define BACKOFF_MS     1000
#define MAX_BACKOFF_MS 30000

struct asked {
	const char *build_id;
	bool force, whole;
	uint64_t retries, rate;
	int64_t timeout_ns;
};

/* One command's run over its files. */
struct session {
	struct asked asked;
	struct remote remote;
	struct http_polled wait;
	struct upload_server server;
	bool done;
	enum upload_outcome outcome;
	char text[400];
};

static void on_done(void *context, enum upload_outcome outcome, const char *text)
{
	struct session *s = context;

	s->done = true;
	s->outcome = outcome;
	snprintf(s->text, sizeof(s->text), "%s", text);
}

/* One try, from the question to the end. */
static void try_once(struct session *s, struct upload *u)
{
	struct error err = ERROR_NULL;

	s->done = false;
	if (upload_run(u, &err) < 0) {
		on_done(s, UPLOAD_REFUSED, err.code ? err.text : "memory is short");
		return;
	}
	if (!http_polled_until(&s->wait, &s->done, s->server.send_ms + 4 * s->server.call_ms)) {
		upload_cancel(u);
		on_done(s, UPLOAD_LOST, "the server took too long (--timeout)");
	}
}

static void try_often(struct session *s, struct upload *u)
{
	static const bool never;
	int64_t wait_ms = BACKOFF_MS;

	try_once(s, u);
	for (uint64_t i = 0; i < s->asked.retries && s->outcome == UPLOAD_LOST; i++) {
		fprintf(stderr, "andiron debuginfo: %s; trying again in %" PRId64 " s\n", s->text,
			wait_ms / 1000);
		http_polled_until(&s->wait, &never, wait_ms);
		wait_ms = wait_ms * 2 < MAX_BACKOFF_MS ? wait_ms * 2 : MAX_BACKOFF_MS;
		try_once(s, u);
	}
}

static const char *contents(uint32_t holds)
{
	if (holds & IMAGE_DWARF)
		return "functions, lines and inlined calls";
	if (holds & IMAGE_GO)
		return "functions and lines, by Go's tables";
	return holds & IMAGE_SYMTAB ? "functions" : "exported functions alone";
}

/* Says what came of a file; the exit code. */
static int tell(const struct session *s, const char *path, const struct upload *u)
{
	const struct elf_image *image = u->file->image;
	struct str id = u->file->build_id;

	switch (s->outcome) {
	case UPLOAD_DONE:
		printf("%s: uploaded, %" PRIu64 " bytes (build id %.*s: %s)\n", path, image->size,
		       STR_FMT(id), contents(image->holds));
		return EXIT_OK;
	case UPLOAD_UNWANTED:
		printf("%s: not needed (build id %.*s): %s\n", path, STR_FMT(id), s->text);
		return EXIT_OK;
	case UPLOAD_BUSY:
		fprintf(stderr,
			"andiron debuginfo: %s: %s\n  Another upload of build id %.*s has "
			"begun and not ended. The server gives it up after a quarter of an hour; "
			"--force does not wait for that.\n",
			path, s->text, STR_FMT(id));
		return EXIT_FAILED;
	case UPLOAD_REFUSED:
	case UPLOAD_LOST:
	default:
		fprintf(stderr, "andiron debuginfo: %s: %s\n", path, s->text);
		return EXIT_FAILED;
	}
}

static int send_image(struct session *s, const char *path, struct upload_file *file)
{
	struct upload u = {.http = s->wait.client,
			   .server = &s->server,
			   .file = file,
			   .done = on_done,
			   .context = s};
	int code;

	try_often(s, &u);
	code = tell(s, path, &u);
	upload_fini(&u);
	return code;
}

/* By what profiles call it. */
static int identify(struct session *s, const struct elf_ids *ids, struct upload_file *file,
		    struct error *err)
{
	file->hash = str_of(ids->file_id);
	file->build_id = str_of(s->asked.build_id);
	if (!file->build_id.n)
		file->build_id =
			str_of(ids->gnu_build_id[0] ? ids->gnu_build_id : ids->go_build_id);
	if (file->build_id.n)
		return 0;
	return error_set(err, -ENOENT,
			 "it has no build id, so no profile can name it; link it with "
			 "-Wl,--build-id, or give the id by --build-id");
}

static int upload_path(struct session *s, const char *path, struct error *err)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct elf_image image = ELF_IMAGE_NULL;
	struct elf_file f = ELF_FILE_NULL;
	struct upload_file file = {.image = &image};
	struct elf_ids ids;
	int r, code = EXIT_FAILED;

	if (fd < 0)
		return error_errno(err, -errno, "cannot be opened");
	r = elf_file_open(&f, fd, err);
	if (r == 0) {
		r = elf_ids_read(&f, &ids);
		if (r < 0)
			error_errno(err, r, "cannot be read");
	}
	if (r == 0)
		r = identify(s, &ids, &file, err);
	if (r == 0)
		r = elf_image_make(&image, &f, s->asked.whole, err);
	elf_file_close(&f);
	if (r == 0)
		code = send_image(s, path, &file);
	elf_image_free(&image);
	return r < 0 ? r : code;
}

static int prepare(struct session *s)
{
	const struct asked *a = &s->asked;
	int code = remote_prepare(&s->remote, &verb_debuginfo, "http://parca:7070");

	s->server = (struct upload_server){.url = str_of(s->remote.url),
					   .config = &s->remote.config,
					   .headers = s->remote.headers,
					   .n_headers = s->remote.n_headers,
					   .call_ms = CALL_MS,
					   .send_ms = a->timeout_ns / NS_PER_MSEC,
					   .bytes_per_second = (int64_t)a->rate,
					   .force = a->force};
	return code;
}

static int check_asked(const struct asked *a, int n_files)
{
	if (n_files == 0)
		return options_wrong(&verb_debuginfo, "which file?");
	if (a->build_id && n_files > 1)
		return options_wrong(&verb_debuginfo, "--build-id goes with one file");
	return OPTIONS_DONE;
}

static int upload_all(struct session *s, char **files, int n)
{
	int code = prepare(s), worst = EXIT_OK;
	struct error err = ERROR_NULL;

	if (code != OPTIONS_DONE)
		return code;
	if (http_polled_init(&s->wait, &err) < 0) {
		fprintf(stderr, "andiron debuginfo: %s\n", err.text);
		return EXIT_FAILED;
	}
	for (int i = 0; i < n; i++) {
		err = ERROR_NULL;
		code = upload_path(s, files[i], &err);
		if (code < 0)
			fprintf(stderr, "andiron debuginfo: %s: %s\n", files[i], err.text);
		worst = code != EXIT_OK ? EXIT_FAILED : worst;
		fflush(stdout);
	}
	http_polled_fini(&s->wait);
	return worst;
}

static int run(int argc, char **argv)
{
	struct session s = {.asked = {.retries = 5, .timeout_ns = 900 * NS_PER_SEC}};
	int first, code = options_parse(&verb_debuginfo, &s, argc, argv, &first);

	if (code == OPTIONS_DONE && first == argc)
		code = options_wrong(&verb_debuginfo, "what is to be done? It is `upload`");
	if (code == OPTIONS_DONE && strcmp(argv[first], "upload") != 0)
		code = options_wrong(&verb_debuginfo, "there is no \"%s\"; it is `upload`",
				     argv[first]);
	first++;
	if (code == OPTIONS_DONE)
		code = check_asked(&s.asked, argc - first);
	if (code == OPTIONS_DONE)
		code = upload_all(&s, argv + first, argc - first);
	remote_fini(&s.remote);
	return code;
}

static const struct flag flags[] = {
	REMOTE_FLAGS(struct session, remote,
		     "the server: http://parca:7070, https://…, or host:port"),
	{"build-id", 0, FLAG_INTO(struct session, asked.build_id), "ID",
	 "what profiles call the file, if not its own build id"},
	{"no-strip", 0, FLAG_INTO(struct session, asked.whole), NULL,
	 "send the file as it is, code and data included"},
	{"force", 0, FLAG_INTO(struct session, asked.force), NULL,
	 "also what the server has, or is just being sent"},
	{"retries", 0, FLAG_INTO(struct session, asked.retries), "N",
	 "further tries where the server cannot be reached (default 5)", .max = 1000},
	{"rate", 0, FLAG_INTO(struct session, asked.rate), "BYTES",
	 "at most so many bytes a second (default 0: no limit)", .max = INT64_C(1) << 40},
	{"timeout", 0, FLAG_INTO(struct session, asked.timeout_ns), "DURATION",
	 "how long sending one file may take (default 15m)", .min = NS_PER_SEC,
	 .max = 86400 * NS_PER_SEC},
	{0},
};

const struct command verb_debuginfo = {
	.verb = "debuginfo",
	.run = run,
	.usage = "upload FILE… --to URL [OPTIONS]",
	.brief = "send a server what it needs to name a file's addresses",
	.summary =
		"Sends to a Parca server what it needs to name the addresses of these ELF files: "
		"symbols and debug information, without code and data. What the server has is "
		"not sent again. Succeeds when the server has all of them.",
	.examples = "andiron debuginfo upload build/shop --to https://parca.example "
		    "--bearer-token-file token\n"
		    "andiron debuginfo upload *.debug --to parca:7070 --insecure\n",
	.flags = flags,
	.mixed = true,
};
