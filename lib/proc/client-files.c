/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in client-files.h. */
#include "proc/client-files.h"

#include "proc/landlock.h"

#include <errno.h>
#include <stdlib.h>

int client_files_confine(const char *writable_folder)
{
	const char *const writable[] = {writable_folder, NULL};
	const char *readable[] = {
		"/usr", "/lib", "/lib64", "/nix/store", "/gnu/store",
		/* Whom to trust, without the keys that lie beside. The last are the caller's. */
		"/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ssl/cert.pem",
		"/etc/ssl/ca-bundle.pem", "/etc/pki/ca-trust", "/etc/pki/tls/certs",
		"/etc/pki/tls/cert.pem", "/etc/pki/tls/openssl.cnf", "/etc/ca-certificates",
		"/etc/crypto-policies", "/etc/gnutls", "/var/lib/ca-certificates",
		/* Names of servers. */
		"/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf",
		"/etc/gai.conf", "/etc/services", "/etc/ld.so.cache", "/etc/localtime",
		"/run/systemd/resolve", "/dev/null", "/dev/random", "/dev/urandom",
		/* How many CPUs there are, which libc asks. */
		"/sys/devices/system/cpu/online", NULL, NULL, NULL};
	size_t n = sizeof(readable) / sizeof(readable[0]) - 3;
	int r;

	for (size_t i = 0; i < 2; i++)
		if ((readable[n] = getenv(i ? "SSL_CERT_DIR" : "SSL_CERT_FILE")))
			n++;
	r = landlock_confine(readable, writable);
	return r == -EOPNOTSUPP ? 0 : r;
}
