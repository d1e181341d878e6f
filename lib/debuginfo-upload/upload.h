/* SPDX-License-Identifier: Apache-2.0 */
/* Upload of one file to Parca's DebuginfoService over gRPC. The calls are ShouldInitiateUpload,
 * InitiateUpload, Upload (a stream of chunks, or PUT to a URL that the server signed) and
 * MarkUploadFinished. Sources: parca, proto/parca/debuginfo/v1alpha1; answers of v0.28.0.
 *
 * The file is read a chunk at a time while it is sent. A broken stream cannot be continued. The
 * next run sends the file again under the same id, which the server keeps over its own restart; a
 * new id would be refused for a quarter of an hour.
 *
 * One thread. All is borrowed from `upload_run` until `done`. */
#pragma once

#include "debuginfo-upload/stripped-file.h"
#include "http/http.h"

enum upload_outcome {
	UPLOAD_DONE,     /* the server has it, from us */
	UPLOAD_UNWANTED, /* it has it already, or finds it elsewhere */
	UPLOAD_BUSY,     /* somebody else sends it just now: ask again in minutes */
	UPLOAD_LOST,     /* no answer, or a fault of the server's: the same again, later */
	UPLOAD_REFUSED,  /* it will never take this */
};

struct upload_server {
	struct str url; /* "https://parca:7070" */
	const struct http_config *config;
	const struct http_header *headers;
	size_t n_headers;
	int64_t call_ms, send_ms; /* how long a call, and the sending, may take */
	int64_t bytes_per_second; /* 0: any */
	bool force;               /* although it has the file */
};

struct upload_file {
	struct str build_id; /* as profiles have it */
	struct str hash; /* tells one file of that build id from another */
	const struct elf_image *image;
};

struct upload {
	struct http_client *http;
	const struct upload_server *server;
	const struct upload_file *file;
	/* Once, with the server's words or what went wrong; may run the upload again, or free it.
	 */
	void (*done)(void *context, enum upload_outcome outcome, const char *text);
	void *context;
	uint64_t sent; /* bytes of the file in the present try; all tries together in `sent_in_all`
			*/
	uint64_t sent_in_all;

	/* upload.c's own; zero at first. */
	const void *step;
	uint64_t request;
	char id[128];         /* of an upload that was begun; "": none */
	unsigned int resumed; /* how often it was sent under that id */
	bool arrived;         /* all of it; only that was not said yet */
	struct str url;       /* of the call under way, or the signed one; owned */
	struct buf head;      /* what stands before the next bytes of the file */
	size_t head_used;
	uint64_t chunk_left;
};

/* Begins, or goes on where the last run was lost. 0, or what http_send says: `done` is not called
 * then. */
int upload_run(struct upload *u, struct error *err);

/* Ends what is under way without `done`; upload_run may follow. */
void upload_cancel(struct upload *u);

/* The same, and frees what it holds. */
void upload_fini(struct upload *u);
