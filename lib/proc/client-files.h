/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a client of servers reads: libraries, whom to trust (without the keys that lie
 * beside), and what finding the address of a name takes. */
#pragma once

/* Confines this process to them for good (proc/landlock.h): it reads these, and writes beneath
 * `writable`, a folder, or nowhere (NULL). Where the environment names other certificates
 * (SSL_CERT_FILE, SSL_CERT_DIR) those are among them. 0, also where the kernel has no Landlock; or
 * a negative errno. */
int client_files_confine(const char *writable);
