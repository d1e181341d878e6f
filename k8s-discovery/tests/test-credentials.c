/* SPDX-License-Identifier: Apache-2.0 */
/* Kubeconfig files, and what programs that give out credentials print. */
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "testing/test.h"
#include "k8s-discovery/api/exec.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define FILE_HEAD                                                                                  \
	"apiVersion: v1\nkind: Config\ncurrent-context: here\n"                                    \
	"contexts:\n- name: there\n  context: {cluster: b, user: b}\n"                             \
	"- name: here\n  context: {cluster: a, user: a, namespace: shop}\n"                        \
	"clusters:\n- name: a\n  cluster:\n    server: https://127.0.0.1:6443/\n"                  \
	"    certificate-authority-data: Q0EK\n    tls-server-name: kubernetes\nusers:\n"          \
	"- name: a\n  user:\n"

struct fixture {
	char path[64];
	struct arena arena;
	struct kubeconfig config;
	struct error err;
};

static int load(struct fixture *f, const char *text)
{
	int fd;

	snprintf(f->path, sizeof(f->path), "/tmp/test-kubeconfig-XXXXXX");
	fd = mkstemp(f->path);
	expect(fd >= 0);
	expect_eq(file_write_fd(fd, text, strlen(text)), 0);
	close(fd);
	f->arena = ARENA_NULL;
	f->err = ERROR_NULL;
	return kubeconfig_load(&f->arena, f->path, &f->config, &f->err);
}

static void end(struct fixture *f)
{
	unlink(f->path);
	arena_free(&f->arena);
}

TEST(the_current_context_is_read)
{
	struct fixture f;

	expect_eq(load(&f, FILE_HEAD "    token: secret\n    client-certificate: certs/c.pem\n"
				     "    client-key: /abs/k.pem\n"),
		  0);
	expect_str(f.config.server, "https://127.0.0.1:6443");
	expect_str(f.config.http.ca_pem, "CA\n");
	expect_str(f.config.http.server_name, "kubernetes");
	expect_str(f.config.http.bearer_token, "secret");
	expect_str(f.config.http.cert_file, "/tmp/certs/c.pem");
	expect_str(f.config.http.key_file, "/abs/k.pem");
	expect(!f.config.exec && f.config.http.proxy_from_environment);
	end(&f);
}

static struct str header(const struct fixture *f, size_t i)
{
	static char line[256];
	const struct http_header *h = &f->config.http.headers[i];

	expect(i < f->config.http.n_headers);
	snprintf(line, sizeof(line), "%.*s: %.*s", STR_FMT(h->name), STR_FMT(h->value));
	return str_of(line);
}

/* Whom to act as goes into headers, and keys into what a header's name may hold. */
TEST(acting_as_another)
{
	struct fixture f;

	expect_eq(load(&f, FILE_HEAD
		       "    token: t\n    as: jane\n    as-uid: 'u 1'\n"
		       "    as-groups: [devs, ops]\n"
		       "    as-user-extra:\n      scopes/A%b: [x, y]\n      plain: [z]\n"),
		  0);
	expect_eq(f.config.http.n_headers, 7);
	expect_str(header(&f, 0), "Impersonate-User: jane");
	expect_str(header(&f, 1), "Impersonate-Uid: u 1");
	expect_str(header(&f, 2), "Impersonate-Group: devs");
	expect_str(header(&f, 3), "Impersonate-Group: ops");
	expect_str(header(&f, 4), "Impersonate-Extra-scopes%2FA%25b: x");
	expect_str(header(&f, 5), "Impersonate-Extra-scopes%2FA%25b: y");
	expect_str(header(&f, 6), "Impersonate-Extra-plain: z");
	end(&f);
}

TEST(json_is_yaml)
{
	struct fixture f;

	expect_eq(load(&f,
		       "{\"current-context\": \"c\", \"contexts\": [{\"name\": \"c\", \"context\": "
		       "{\"cluster\": \"k\"}}], \"clusters\": [{\"name\": \"k\", \"cluster\": "
		       "{\"server\": \"http://h\", \"insecure-skip-tls-verify\": true}}]}"),
		  0);
	expect_str(f.config.server, "http://h");
	expect(f.config.http.insecure_skip_verify && !f.config.http.bearer_token.p);
	end(&f);
}

TEST(a_program_is_found_in_path)
{
	struct fixture f;

	expect_eq(load(&f,
		       FILE_HEAD "    exec:\n      apiVersion: client.authentication.k8s.io/v1\n"
				 "      command: sh\n      args: [-c, 'echo x']\n"
				 "      env: [{name: A, value: b}]\n"
				 "      provideClusterInfo: true\n"),
		  0);
	expect(f.config.exec && f.config.exec->command[0] == '/' &&
	       f.config.exec->provide_cluster_info);
	expect(strcmp(f.config.exec->argv[2], "echo x") == 0 && !f.config.exec->argv[3]);
	expect(strcmp(f.config.exec->env[0], "A=b") == 0 && !f.config.exec->env[1]);
	expect_str(f.config.exec->ca_data, "Q0EK");
	end(&f);
}

/* What is wrong is named, with the file. */
TEST(files_are_refused_with_the_reason)
{
	static const struct {
		const char *text, *words;
	} rows[] = {
		{"", "no current-context"},
		{"a: [", "is not YAML: line 2"},
		{"current-context: x\n", "no \"x\" among its contexts"},
		{"current-context: x\ncontexts: [{name: x}]\n", "among its clusters"},
		{"current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"
		 "clusters: [{name: c}]\n",
		 "has no server"},
		{"current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"
		 "clusters: [{name: c, cluster: {server: 'https://u:hush@h'}}]\n",
		 "server holds a user"},
		{FILE_HEAD "    as-groups: [admins]\n", "name the user to act as"},
		{FILE_HEAD "    as-user-extra: {a: [b]}\n", "name the user to act as"},
		{FILE_HEAD "    auth-provider: {name: gcp}\n", "auth-provider"},
		{FILE_HEAD "    client-certificate: a\n", "certificate and a key"},
		{FILE_HEAD "    client-key-data: '%'\n    client-certificate: a\n", "not base64"},
		{FILE_HEAD "    exec: {command: x}\n", "apiVersion"},
		{FILE_HEAD "    exec: {command: no-such-program-here, apiVersion: "
			   "client.authentication.k8s.io/v1}\n",
		 "not in PATH"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct fixture f;

		expect_eq(load(&f, rows[i].text), -EINVAL);
		if (!strstr(f.err.text, rows[i].words) || !strstr(f.err.text, f.path) ||
		    strstr(f.err.text, "hush"))
			test_fail(__FILE__, __LINE__, "%s: %s", rows[i].words, f.err.text);
		end(&f);
	}
}

TEST(a_file_that_is_not_there_is_told_apart)
{
	struct arena arena = ARENA_NULL;
	struct kubeconfig config;
	struct error err = ERROR_NULL;

	expect_eq(kubeconfig_load(&arena, "/nowhere/config", &config, &err), -ENOENT);
	expect(strstr(err.text, "/nowhere/config"));
	arena_free(&arena);
}

/* References that go round in circles, and ones that would be a terabyte if they were copied, cost
 * what they weigh. */
TEST(aliases_are_not_copied)
{
	struct fixture f;

	load(&f, "a: &a [*a]\ncurrent-context: c\ncontexts: &c [{name: c, context: *c}]\n");
	expect(f.err.code == -EINVAL);
	end(&f);
	load(&f, "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\n"
		 "c: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\n"
		 "e: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e]\n");
	expect(strstr(f.err.text, "no current-context"));
	end(&f);
	load(&f, FILE_HEAD
	     "    as: x\n    as-groups: &a "
	     "[a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,A,B,C,D,E,F,G]\n"
	     "    as-user-extra: {a: *a,b: *a,c: *a,d: *a,e: *a,f: *a,g: *a,h: *a,i: *a,j: *a,k: "
	     "*a,l: *a,m: *a,"
	     "n: *a,o: *a,p: *a,q: *a,r: *a,s: *a,t: *a,u: *a,v: *a,w: *a,x: *a,y: *a,z: *a,A: "
	     "*a,B: *a,C: *a,D: *a}\n");
	expect(strstr(f.err.text, "1000 are possible"));
	end(&f);
}

static int load_all(void *context)
{
	struct arena arena = ARENA_NULL;
	struct kubeconfig config;
	int r = kubeconfig_load(&arena, context, &config, NULL);

	arena_free(&arena);
	return r;
}

TEST(files_survive_failing_allocations)
{
	struct fixture f;

	expect_eq(load(&f, FILE_HEAD
		       "    token: secret\n    as: a\n    as-groups: [b]\n"
		       "    as-user-extra: {c: [d]}\n    exec: {command: sh, args: [a], env: "
		       "[{name: A}], apiVersion: client.authentication.k8s.io/v1}\n"),
		  0);
	test_each_failing_allocation(load_all, f.path);
	end(&f);
}

TEST(damaged_files_are_taken_or_refused)
{
	static const char good[] = FILE_HEAD
		"    token: &t secret\n    exec: {command: sh, args: [*t]}\n";
	uint64_t state = 3;

	for (int round = 0; round < 1000; round++) {
		char text[sizeof(good)];
		struct fixture f;

		memcpy(text, good, sizeof(good));
		for (int i = 0; i < 3; i++) {
			state = hash_u64(state);
			text[state % (sizeof(good) - 1)] = (char)(1 + (state >> 32) % 126);
		}
		load(&f, text);
		end(&f);
	}
}

TEST(credentials_are_read)
{
	static const struct {
		const char *text;
		int r;
	} rows[] = {
		{"{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t\",\"expirationTimestamp\":"
		 "\"2030-01-02T03:04:05Z\"}}",
		 0},
		{"{\"kind\":\"ExecCredential\",\"status\":{\"clientCertificateData\":\"c\","
		 "\"clientKeyData\":\"k\"}}",
		 0},
		{"{\"kind\":\"ExecCredential\",\"status\":{\"clientCertificateData\":\"c\"}}",
		 -EINVAL},
		{"{\"kind\":\"ExecCredential\",\"status\":{}}", -EINVAL},
		{"{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t\",\"expirationTimestamp\":"
		 "\"soon\"}}",
		 -EINVAL},
		{"{\"status\":{\"token\":\"t\"}}", -EINVAL},
		{"login first", -EINVAL},
		{"", -EINVAL},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct http_config http = {0};
		struct arena arena = ARENA_NULL;
		struct error err = ERROR_NULL;
		int64_t expires = -1;

		expect_eq(exec_read(str_of(rows[i].text), &arena, &http, &expires, &err),
			  rows[i].r);
		expect(rows[i].r == 0 || err.text[0]);
		if (i == 0) {
			expect_str(http.bearer_token, "t");
			expect_eq(expires, INT64_C(1893553445) * NS_PER_SEC);
		}
		if (i == 1)
			expect(http.cert_pem.n == 1 && http.key_pem.n == 1 && expires == 0);
		arena_free(&arena);
	}
}
