/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a client of servers reads: libraries, whom to trust (without the keys that lie
 * beside), and what finding the address of a name takes. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Confines this process to them for good (proc/landlock.h): it reads these, and writes beneath
 * `writable`, a folder, or nowhere (NULL). Where the environment names other certificates or
 * settings of TLS (SSL_CERT_FILE, SSL_CERT_DIR, OPENSSL_CONF) those are among them. 0, also where
 * the kernel has no Landlock; or a negative errno. */
int client_files_confine(const char *writable);

#define CLIENT_FILES 34

/* Which of them lie at their paths; 0: none does. */
struct client_files {
	struct client_file {
		dev_t device;
		ino_t inode;
	} files[CLIENT_FILES];
};

/* What a process may read that is confined now. */
void client_files_note(struct client_files *ret);
/* Whether others lie there by now. A process is confined to files and not to paths: one that was
 * renamed into place is closed to a process that was confined before. (What is written in place, or
 * lies in one of the folders, is not.) Some 30 system calls, as the other. */
bool client_files_changed(const struct client_files *noted);
