/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of uploads: uploads.c offers files, upload-job.c uploads one file to one endpoint,
 * upload-queue.c decides which job is next.
 *
 * A job is new, is opened by a worker, is ready from `due_ns` on, and runs
 * (debuginfo-upload/upload.h) until the server has the file, does not want it, or tries ran out.
 * Then upload_job_settle frees it. All but the opening is under the strand. */
#pragma once

#include "pyroscope-push/uploads/node-bandwidth.h"
#include "pyroscope-push/uploads/uploads.h"

#include "base/intern.h"
#include "base/vec.h"
#include "debuginfo-upload/stripped-file.h"
#include "debuginfo-upload/upload.h"

#define UPLOADS_AGAIN_NS (3600 * NS_PER_SEC) /* what could not be sent is offered again */
#define UPLOADS_NEVER    INT64_MAX

/* What came of a build id at an endpoint; CLOCK_MONOTONIC when it is offered again. */
struct known {
	int64_t again_ns;
	bool by_limit; /* it was refused for a limit of ours, which new arguments may raise */
};

/* A file that is to be uploaded. The host opens it, so its process and its name may be gone. */
struct upload_source {
	struct andiron_extension objects; /* andiron.objects/1 */
	uint64_t object;
	struct str build_id; /* what profiles call it */
	bool whole;          /* not its debug information alone */
};

struct upload_opened {
	int fd; /* to close; -1: none */
	struct elf_image image;
	char hash[33];
	const char *refused; /* a word: why it is not sent; NULL: it can be */
	struct error why;
};

enum job_state { JOB_NEW, JOB_OPENING, JOB_READY, JOB_RUNNING };

struct upload_job {
	struct uploads *uploads; /* NULL: freed while the job was opened */
	enum job_state state;
	uint32_t known;
	uint64_t endpoint;
	struct str build_id; /* owned */
	struct upload_source source;
	struct upload_opened opened;
	int tries;
	int part; /* of the node's budget, while it runs; -1: none */
	int64_t due_ns;
	uint64_t counted;           /* of the upload's bytes */
	struct push_config *config; /* while it runs */
	struct upload_server server;
	struct upload_file file;
	struct upload upload;
};

struct uploads {
	struct abi_context context;
	struct http_client *http;
	struct push_config *config;
	struct andiron_extension objects; /* table NULL: the host has none */
	struct intern names;              /* "endpoint build-id"; ids index `known` */
	VEC(struct known) known;
	VEC(struct upload_job *) jobs;
	uint64_t timer;
	uint64_t random;
	struct upload_share share;
	struct uploads_counts counts;
};

void uploads_count_refused(struct uploads *u, const char *word);

/* Opens and runs what may go now, and sets the timer for what may go later. */
void uploads_pump(struct uploads *u);
/* The timer alone; UPLOADS_NEVER: none. */
void uploads_arm(struct uploads *u, int64_t due_ns);

/* Whether these arguments have it sent as it was begun. */
bool upload_job_is_requested(const struct upload_job *j, const struct push_config *c);
/* Has a new job's file opened by a worker. */
void upload_job_open(struct upload_job *j);
/* Begins a ready job's next try. */
void upload_job_run(struct upload_job *j);
/* The end of a job; `again_ns` from now it may be offered again, or never. */
void upload_job_settle(struct upload_job *j, int64_t again_ns);
/* The same for a limit of ours, which new arguments may raise. */
void upload_job_refuse_by_limit(struct upload_job *j, const char *word, int64_t again_ns,
				const char *why);
void upload_job_free(struct upload_job *j);
