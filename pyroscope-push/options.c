/* SPDX-License-Identifier: Apache-2.0 */
/* The option tables of the writers. What several have stands here once, the rows of the HTTP client
 * in client/options.h. */
#include "pyroscope-push/options.h"

#define SECONDS(n) (INT64_C(n) * 1000000000)
#define YEARS(n)   ((n) * INT64_C(31536000) * 1000000000)

/* What every endpoint has, besides its URL and CLIENT_OPTIONS. */
/* clang-format off */
#define ENDPOINT_OPTIONS                                                                           \
	OPTION(STRING, "name", NULL,                                                               \
	       "What messages and metrics call this endpoint; by default its URL."),               \
	OPTION(DURATION, "remote_timeout", "\"10s\"", "How long one attempt may take.",            \
	       .min = 1000000, .max = YEARS(100)),                                                 \
	OPTION(MAP, "headers", NULL,                                                               \
	       "Headers to send with every request, such as X-Scope-OrgID."),                      \
	OPTION(DURATION, "min_backoff_period", "\"500ms\"",                                        \
	       "How long to wait after the first failure; doubled after each further one.",        \
	       .min = 1000000, .max = SECONDS(3600)),                                              \
	OPTION(DURATION, "max_backoff_period", "\"5m\"", "How long to wait at most.",              \
	       .min = 1000000, .max = SECONDS(86400)),                                             \
	OPTION(INT, "max_backoff_retries", "10",                                                   \
	       "How often a request is tried again before it is dropped; 0: for ever.",            \
	       .max = 1000000),                                                                    \
	OPTION(INT, "queue_bytes", "33554432",                                                     \
	       "Bytes of memory for profiles that wait for the server; the oldest go first. "      \
	       "Those in the spool count with a few bytes each.",                                  \
	       .min = 1 << 20, .max = INT64_C(1) << 40)
/* clang-format on */
#define MAX_AGE(default_, doc_) OPTION(DURATION, "max_age", default_, doc_, .max = SECONDS(864000))
#define ANY_AGE                 "How old a profile may become before it is given up; 0: any age."
#define INSECURE                                                                                   \
	OPTION(BOOL, "insecure", "false",                                                          \
	       "Whether a URL of gRPC without a scheme is reached in plain text.")
#define AT_LEAST_ONCE(why_not)                                                                     \
	OPTION(BOOL, "at_least_once", "false",                                                     \
	       "Whether what was sent without an answer having come is sent again. " why_not       \
	       "; without this it is counted as uncertain.")

static const struct andiron_option endpoint[] = {
	OPTION(STRING, "url", NULL,
	       "Where the server is, \"http://pyroscope:4040\"; /push.v1.PusherService/Push is "
	       "appended.",
	       .flags = ANDIRON_OPTION_REQUIRED),
	ENDPOINT_OPTIONS,
	OPTION(BOOL, "retry_on_http_429", "true",
	       "Whether a request is tried again when the server says that it came too fast."),
	MAX_AGE("\"59m\"", "How old a profile may become before it is given up: a little less than "
			   "the server's reject-older-than; 0: any age."),
	OPTION(DURATION, "debug_info_upload_timeout", NULL,
	       "Accepted; no debug information is uploaded.", .flags = ANDIRON_OPTION_IGNORED),
	CLIENT_OPTIONS,
};
static const struct andiron_options endpoint_options = ANDIRON_OPTIONS(endpoint);

static const struct andiron_option otlp_endpoint[] = {
	OPTION(STRING, "url", NULL,
	       "Where the server is: \"http://collector:4318\" for HTTP, "
	       "\"http://collector:4317\" for gRPC, or \"collector:4317\", as `insecure` says; "
	       "the signal's path is appended.",
	       .flags = ANDIRON_OPTION_REQUIRED),
	INSECURE,
	AT_LEAST_ONCE("Receivers may count it twice"),
	MAX_AGE("\"59m\"", ANY_AGE),
	ENDPOINT_OPTIONS,
	CLIENT_OPTIONS,
};
static const struct andiron_options otlp_endpoint_options = ANDIRON_OPTIONS(otlp_endpoint);

static const struct andiron_option tracing[] = {
	OPTION(BOOL, "jaeger_propagator", NULL, "Accepted; requests carry no trace headers.",
	       .flags = ANDIRON_OPTION_IGNORED),
	OPTION(BOOL, "trace_context_propagator", NULL, "Accepted; requests carry no trace headers.",
	       .flags = ANDIRON_OPTION_IGNORED),
};
static const struct andiron_options tracing_options = ANDIRON_OPTIONS(tracing);

static const struct andiron_option parca_endpoint[] = {
	OPTION(STRING, "url", NULL,
	       "Where the server is: \"http://parca:7070\" in plain text, \"https://…\" over TLS, "
	       "or \"parca:7070\", as `insecure` says.",
	       .flags = ANDIRON_OPTION_REQUIRED),
	INSECURE,
	AT_LEAST_ONCE("Parca adds up what it gets twice"),
	MAX_AGE("\"0s\"", ANY_AGE),
	ENDPOINT_OPTIONS,
	CLIENT_OPTIONS,
};
static const struct andiron_options parca_endpoint_options = ANDIRON_OPTIONS(parca_endpoint);

static const struct andiron_option spool[] = {
	OPTION(STRING, "directory", NULL,
	       "Where to keep them, \"/var/lib/andiron/pyroscope\"; made if it is not there. No "
	       "other writer may use it. With --storage.path, or the block storage, a relative one "
	       "is in there, and without one it is a folder there with the component's id.",
	       .flags = ANDIRON_OPTION_REQUIRED | ANDIRON_OPTION_STORED),
	OPTION(INT, "max_bytes", "268435456",
	       "Bytes on disk, never passed; the oldest profiles go first.", .min = 8 << 20,
	       .max = INT64_C(1) << 40),
};
static const struct andiron_options spool_options = ANDIRON_OPTIONS(spool);

static const char *const unnamed_words[] = {"function", "address", NULL};
#define UNNAMED_DOC                                                                                \
	"How frames without a name are sent. \"function\": by where their function begins, "       \
	"[libcrypto.so.3 fn 0x1a2b30]. \"address\": where the file has a build id, as an address " \
	"that a server with its debug information can name."

/* What every writer has. */
/* clang-format off */
#define LABELS_AND_ENDPOINTS(unnamed_, endpoint_)                                                  \
	OPTION(MAP, "external_labels", NULL,                                                       \
	       "Labels for every series; they win over the target's own."),                        \
	OPTION(STRING, "unnamed", unnamed_, UNNAMED_DOC, .choices = unnamed_words),                \
	OPTION(BLOCK, "endpoint", NULL,                                                            \
	       "A server to push to; with several, each gets everything.",                         \
	       .flags = ANDIRON_OPTION_REPEATED, .block = &endpoint_)
/* clang-format on */
#define SPOOL                                                                                      \
	OPTION(BLOCK, "spool", NULL,                                                               \
	       "Keeps profiles on disk until the server has them, over outages and restarts.",     \
	       .block = &spool_options)

static const struct andiron_option top[] = {
	LABELS_AND_ENDPOINTS("\"function\"", endpoint_options),
	SPOOL,
	OPTION(BLOCK, "tracing", NULL, "Accepted; requests carry no trace headers.",
	       .flags = ANDIRON_OPTION_IGNORED, .block = &tracing_options),
};
const struct andiron_options pyroscope_options = ANDIRON_OPTIONS(top);

static const char *const debuginfo_files[] = {"unnamed", "all", NULL};

static const struct andiron_option debuginfo[] = {
	OPTION(BOOL, "upload", "true",
	       "Whether files are offered to the server at all. Nothing is sent that it does not "
	       "ask for."),
	OPTION(STRING, "files", "\"unnamed\"",
	       "Which files are offered: those with frames that could not be named here, or all "
	       "that were seen, for a server that shall be able to do without us.",
	       .choices = debuginfo_files),
	OPTION(BOOL, "strip", "true",
	       "Whether symbols and debug information alone are sent; otherwise the file as it "
	       "is, its code and data included."),
	OPTION(INT, "max_parallel", "2", "Files that are sent at once, to all endpoints together.",
	       .min = 1, .max = 64),
	OPTION(INT, "bytes_per_second", "67108864",
	       "Bytes a second that all uploads of the node together may take; each has its "
	       "share. 0: any.",
	       .max = INT64_C(1) << 40),
	OPTION(INT, "max_file_bytes", "1000000000",
	       "Files that are larger after stripping are not sent; the default is the server's "
	       "own limit.",
	       .min = 1, .max = INT64_C(1) << 40),
	OPTION(INT, "max_total_bytes", "0",
	       "Bytes that may be sent in all until the agent is restarted; 0: any.", .min = 0,
	       .max = INT64_C(1) << 50),
	OPTION(DURATION, "timeout", "\"15m\"",
	       "How long sending one file may take; the server gives an upload up after as long.",
	       .min = SECONDS(1), .max = SECONDS(86400)),
};
static const struct andiron_options debuginfo_options = ANDIRON_OPTIONS(debuginfo);

static const struct andiron_option parca_top[] = {
	LABELS_AND_ENDPOINTS("\"address\"", parca_endpoint_options),
	OPTION(BLOCK, "debuginfo", NULL,
	       "Files by which the server names frames, sent when it asks for them.",
	       .block = &debuginfo_options),
	SPOOL,
};
const struct andiron_options parca_options = ANDIRON_OPTIONS(parca_top);

static const struct andiron_option otlp_top[] = {
	OPTION(STRING, "protocol", "\"http\"", "How servers are spoken to: \"http\" or \"grpc\"."),
	LABELS_AND_ENDPOINTS("\"address\"", otlp_endpoint_options),
	SPOOL,
};
const struct andiron_options otlp_options = ANDIRON_OPTIONS(otlp_top);
