/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron push`: pprof files to a server by hand: what a CI job has measured, what `record` has
 * written, what a server has lost. Each is checked before it is sent, and read back with --verify.
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "cli/cli.h"
#include "cli/push/server.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define VERIFY_MS  10000 /* until what was acknowledged can be read */
#define PAUSE_MS   250
#define READ_SLACK 65536

struct session {
	struct remote remote;
	struct push_server server;
	const char *service, *tenant;
	struct texts labels;
	bool parca, now, force, verify;
	int64_t timeout_ns;
	VEC(uint64_t) sent; /* hashes of series and times */
};

/* A file between being read and being told about. */
struct turn {
	const char *path;
	struct push_file file;
	struct label *labels;
	size_t n_labels;
	struct str name; /* of the profile, __name__ */
};

static int complain(const struct turn *t, const struct error *err)
{
	fprintf(stderr, "andiron push: %s: %s\n", t->path,
		err->code ? err->text : "memory is short");
	return EXIT_FAILED;
}

/* Pyroscope keeps one profile of a series and a time, and drops the others later. */
static int check_once(struct session *s, const struct turn *t, struct error *err)
{
	uint64_t key = hash_u64((uint64_t)t->file.time_ns) ^ hash_str(t->name);

	for (size_t i = 0; i < s->sent.n; i++)
		if (s->sent.p[i] == key && s->server.kind == PUSH_PYROSCOPE)
			return error_set(err, -EINVAL,
					 "a file before it has the same time, and Pyroscope keeps "
					 "one profile of a time: it is not sent; --now, or another "
					 "--label, tells them apart");
	return vec_push(&s->sent, key) ? 0 : -ENOMEM;
}

static int read_turn(struct session *s, struct turn *t, struct error *err)
{
	const struct push_how how = {s->server.kind, s->now, s->force, clock_real()};
	struct buf data = {.limit = PROFILE_MAX_BYTES + READ_SLACK};
	int r = file_read(AT_FDCWD, t->path, &data, PROFILE_MAX_BYTES);

	if (r < 0)
		error_errno(err, r, "cannot read the file");
	else
		r = push_file_make(&t->file, buf_str(&data), &how, err);
	buf_free(&data);
	if (r < 0)
		return r;
	t->labels = calloc(s->labels.n + 2, sizeof(*t->labels));
	if (!t->labels)
		return -ENOMEM;
	r = push_labels(&s->labels, str_of(s->service), push_file_name(t->file.profile), t->labels,
			err);
	if (r < 0)
		return r;
	t->n_labels = (size_t)r;
	check(t->n_labels <= s->labels.n + 2);
	for (size_t i = 0; i < t->n_labels; i++)
		if (str_is(t->labels[i].name, "__name__"))
			t->name = t->labels[i].value;
	return check_once(s, t, err);
}

/* Asks until it is what was sent, or the time is over. */
static int read_back(struct session *s, const struct turn *t, struct str type, int64_t wanted,
		     int64_t *ret, struct error *err)
{
	static const bool never;
	int64_t until = clock_mono() + VERIFY_MS * NS_PER_MSEC;
	struct buf selector = BUF_NULL;
	int r;

	push_put_selector(&selector, t->labels, t->n_labels);
	for (;;) {
		r = selector.failed ? -ENOMEM
				    : push_server_total(&s->server, type, buf_str(&selector),
							t->file.time_ns, ret, err);
		if (r < 0 || *ret == wanted || clock_mono() >= until)
			break;
		http_polled_until(&s->server.wait, &never, PAUSE_MS);
	}
	buf_free(&selector);
	return r;
}

static int verify_type(struct session *s, const struct turn *t, size_t type)
{
	int64_t sent = push_file_total(&t->file, type, s->server.kind), stored = 0;
	struct error err = ERROR_NULL;
	struct buf name = BUF_NULL;
	int r;

	check(type < t->file.profile->n_types);
	push_file_put_type(&name, &t->file, type, t->name, s->server.kind);
	r = name.failed ? -ENOMEM : read_back(s, t, buf_str(&name), sent, &stored, &err);
	if (r == 0)
		printf("  %.*s  sent %" PRId64 "  stored %" PRId64 "%s\n", STR_FMT(buf_str(&name)),
		       sent, stored, sent == stored ? "" : "  DIFFERENT");
	buf_free(&name);
	if (r < 0) {
		error_wrap(&err, r, "sent, but cannot be read back");
		return complain(t, &err);
	}
	if (sent == stored)
		return EXIT_OK;
	fprintf(stderr, "andiron push: %s: the server has %s than was sent%s\n", t->path,
		stored > sent ? "more" : "less",
		stored > sent ? ": there are other profiles of this time and these labels, perhaps "
				"the same one sent before"
			      : ": it says 'accepted' and has left something out; its log may tell "
				"why");
	return EXIT_FAILED;
}

static void tell(const struct turn *t)
{
	time_t seconds = t->file.time_ns / NS_PER_SEC;
	char at[40] = "";
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%SZ", &tm);
	printf("%s: sent, %zu samples in %zu bytes, as %.*s at %s\n", t->path,
	       t->file.profile->n_samples, t->file.packed.n, STR_FMT(t->name), at);
}

static int push_one(struct session *s, struct turn *t)
{
	struct error err = ERROR_NULL;
	int code = EXIT_OK, r = read_turn(s, t, &err);

	if (r < 0)
		return complain(t, &err);
	r = push_server_send(&s->server, &t->file, t->labels, t->n_labels, &err);
	if (r == -ECONNRESET)
		error_wrap(&err, r, "the server may have it, since the answer was lost");
	if (r < 0)
		return complain(t, &err);
	tell(t);
	for (size_t i = 0; s->verify && i < t->file.profile->n_types; i++)
		code = verify_type(s, t, i) != EXIT_OK ? EXIT_FAILED : code;
	fflush(stdout);
	return code;
}

static int push_all(struct session *s, char **files, int n)
{
	struct error err = ERROR_NULL;
	int worst = EXIT_OK;

	if (http_polled_init(&s->server.wait, &err) < 0) {
		fprintf(stderr, "andiron push: %s\n", err.text);
		return EXIT_FAILED;
	}
	for (int i = 0; i < n; i++) {
		struct turn t = {.path = files[i]};

		worst = push_one(s, &t) != EXIT_OK ? EXIT_FAILED : worst;
		push_file_fini(&t.file);
		free(t.labels);
	}
	http_polled_fini(&s->server.wait);
	return worst;
}

static int prepare(struct session *s, int n_files)
{
	struct label *labels = calloc(s->labels.n + 2, sizeof(*labels));
	struct error err = ERROR_NULL;
	int code = OPTIONS_DONE;

	if (n_files == 0)
		code = options_wrong(&verb_push, "which file?");
	else if (!s->service || !s->service[0])
		code = options_wrong(&verb_push, "of which service? --name shop");
	else if (labels &&
		 push_labels(&s->labels, str_of(s->service), STR("profile"), labels, &err) < 0)
		code = options_wrong(&verb_push, "%s", err.text);
	free(labels);
	if (code == OPTIONS_DONE)
		code = remote_prepare(&s->remote, &verb_push, "http://pyroscope:4040");
	if (code != OPTIONS_DONE)
		return code;
	s->server.url = str_of(s->remote.url);
	s->server.kind = s->parca ? PUSH_PARCA : PUSH_PYROSCOPE;
	if (str_starts(s->server.url, STR("parca+"))) {
		s->server.url = str_skip(s->server.url, strlen("parca+"));
		s->server.kind = PUSH_PARCA;
	}
	s->server.remote = &s->remote;
	if (s->tenant) /* remote_prepare leaves room for one more */
		s->remote.headers[s->remote.n_headers++] =
			(struct http_header){STR("X-Scope-OrgID"), str_of(s->tenant)};
	s->server.timeout_ms = s->timeout_ns / NS_PER_MSEC;
	return OPTIONS_DONE;
}

static int run(int argc, char **argv)
{
	struct session s = {.timeout_ns = 30 * NS_PER_SEC};
	int first = 0, code = options_parse(&verb_push, &s, argc, argv, &first);

	if (code == OPTIONS_DONE)
		code = prepare(&s, argc - first);
	if (code == OPTIONS_DONE)
		code = push_all(&s, argv + first, argc - first);
	remote_fini(&s.remote);
	vec_free(&s.labels);
	vec_free(&s.sent);
	return code;
}

static const struct flag flags[] = {
	REMOTE_FLAGS(struct session, remote,
		     "the server: http://pyroscope:4040, parca+http://parca:7070, https://…"),
	{"parca", 0, FLAG_INTO(struct session, parca), NULL, "the server is a Parca"},
	{"tenant", 0, FLAG_INTO(struct session, tenant), "ID", "tenant to send as (X-Scope-OrgID)"},
	{"name", 'n', FLAG_INTO(struct session, service), "NAME",
	 "the service's name, label service_name"},
	{"label", 'l', FLAG_INTO(struct session, labels), "NAME=VALUE",
	 "further label; may be repeated. __name__ is the kind of profile; by default it follows "
	 "from the types in the file"},
	{"now", 0, FLAG_INTO(struct session, now), NULL,
	 "use the present time, not the file's own"},
	{"force", 0, FLAG_INTO(struct session, force), NULL,
	 "also send what exceeds a server's default limits"},
	{"verify", 0, FLAG_INTO(struct session, verify), NULL, "read it back and compare totals"},
	{"timeout", 0, FLAG_INTO(struct session, timeout_ns), "DURATION",
	 "how long one call may take (default 30s)", .min = NS_PER_SEC, .max = 3600 * NS_PER_SEC},
	{0},
};

const struct command verb_push = {
	.verb = "push",
	.run = run,
	.usage = "FILE… --to URL --name SERVICE [OPTIONS]",
	.brief = "send pprof files to a server, and read them back",
	.summary =
		"Sends pprof files to a Pyroscope or a Parca server. What the server would "
		"refuse, or drop without an error, is found before it is sent. Succeeds when the "
		"server has accepted all files, and with --verify when it returns the same "
		"totals.",
	.examples = "andiron push profile.pb.gz --to http://pyroscope:4040 --name shop --verify\n"
		    "andiron push cpu.pprof --to parca+https://parca.example --bearer-token-file "
		    "token --name shop --label branch=main\n",
	.flags = flags,
	.mixed = true,
};
