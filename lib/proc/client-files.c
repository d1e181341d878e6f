/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in client-files.h. */
#include "proc/client-files.h"

#include "proc/landlock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char *const paths[] = {
	"/usr", "/lib", "/lib64", "/nix/store", "/gnu/store",
	/* Whom to trust, without the keys that lie beside. */
	"/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ssl/cert.pem", "/etc/ssl/ca-bundle.pem",
	"/etc/pki/ca-trust", "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem",
	"/etc/pki/tls/openssl.cnf", "/etc/ca-certificates", "/etc/crypto-policies", "/etc/gnutls",
	"/var/lib/ca-certificates",
	/* Names of servers. */
	"/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf",
	"/etc/services", "/etc/ld.so.cache", "/etc/localtime", "/run/systemd/resolve", "/dev/null",
	"/dev/random", "/dev/urandom",
	/* How many CPUs there are, which libc asks. */
	"/sys/devices/system/cpu/online"};
#define N_PATHS (sizeof(paths) / sizeof(paths[0]))

_Static_assert(N_PATHS + 4 == CLIENT_FILES, "these, three of the caller's, and NULL");

static void list(const char *ret[CLIENT_FILES])
{
	static const char *const callers[] = {"SSL_CERT_FILE", "SSL_CERT_DIR", "OPENSSL_CONF"};
	size_t n = 0;

	for (; n < N_PATHS; n++)
		ret[n] = paths[n];
	for (size_t i = 0; i < 3; i++)
		if ((ret[n] = getenv(callers[i])))
			n++;
	ret[n] = NULL;
}

int client_files_confine(const char *writable_folder)
{
	const char *const writable[] = {writable_folder, NULL};
	const char *readable[CLIENT_FILES];
	int r;

	list(readable);
	r = landlock_confine(readable, writable);
	return r == -EOPNOTSUPP ? 0 : r;
}

void client_files_note(struct client_files *ret)
{
	const char *all[CLIENT_FILES];
	struct stat st;

	*ret = (struct client_files){0};
	list(all);
	for (size_t i = 0; all[i]; i++)
		if (stat(all[i], &st) == 0)
			ret->files[i] = (struct client_file){st.st_dev, st.st_ino};
}

bool client_files_changed(const struct client_files *noted)
{
	struct client_files now;
	size_t i = 0;

	client_files_note(&now);
	while (i < CLIENT_FILES && now.files[i].device == noted->files[i].device &&
	       now.files[i].inode == noted->files[i].inode)
		i++;
	return i < CLIENT_FILES;
}
