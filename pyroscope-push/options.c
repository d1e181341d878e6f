/* SPDX-License-Identifier: Apache-2.0 */
/* The option tables of the writers. What several have stands here once, the rows of the HTTP client
 * in client/options.h. */
#include "pyroscope-push/options.h"

/* What every endpoint has, besides its URL and CLIENT_OPTIONS. */
/* clang-format off */
#define ENDPOINT_OPTIONS \
	{.name = "name", \
	 .type = ANDIRON_TYPE_STRING, \
	 .doc = "What messages and metrics call this endpoint; by default its URL."}, \
	{.name = "remote_timeout", \
	 .type = ANDIRON_TYPE_DURATION, \
	 .default_text = "\"10s\"", \
	 .min = 1000000, \
	 .max = INT64_C(3600000000000), \
	 .doc = "How long one attempt may take."}, \
	{.name = "headers", \
	 .type = ANDIRON_TYPE_MAP, \
	 .doc = "Headers to send with every request, such as X-Scope-OrgID."}, \
	{.name = "min_backoff_period", \
	 .type = ANDIRON_TYPE_DURATION, \
	 .default_text = "\"500ms\"", \
	 .min = 1000000, \
	 .max = INT64_C(3600000000000), \
	 .doc = "How long to wait after the first failure; doubled after each further one."}, \
	{.name = "max_backoff_period", \
	 .type = ANDIRON_TYPE_DURATION, \
	 .default_text = "\"5m\"", \
	 .min = 1000000, \
	 .max = INT64_C(86400000000000), \
	 .doc = "How long to wait at most."}, \
	{.name = "max_backoff_retries", \
	 .type = ANDIRON_TYPE_INT, \
	 .default_text = "10", \
	 .min = 0, \
	 .max = 1000000, \
	 .doc = "How often a request is tried again before it is dropped; 0: for ever."}, \
	{.name = "queue_bytes", \
	 .type = ANDIRON_TYPE_INT, \
	 .default_text = "33554432", \
	 .min = 1 << 20, \
	 .max = INT64_C(1) << 40, \
	 .doc = "Bytes of memory for profiles that wait for the server; the oldest go first. " \
	 "Those in the spool count with a few bytes each."}
#define MAX_AGE(default_, doc_) \
	{.name = "max_age", \
	 .type = ANDIRON_TYPE_DURATION, \
	 .default_text = default_, \
	 .min = 0, \
	 .max = INT64_C(864000000000000), \
	 .doc = doc_}
#define ANY_AGE "How old a profile may become before it is given up; 0: any age."
#define INSECURE \
	{.name = "insecure", \
	 .type = ANDIRON_TYPE_BOOL, \
	 .default_text = "false", \
	 .doc = "Whether a URL without a scheme is reached in plain text."}
#define AT_LEAST_ONCE(why_not) \
	{.name = "at_least_once", \
	 .type = ANDIRON_TYPE_BOOL, \
	 .default_text = "false", \
	 .doc = "Whether what was sent without an answer having come is sent again. " why_not \
	 "; without this it is counted as uncertain."}
/* clang-format on */

static const struct andiron_option endpoint[] = {
	{
		.name = "url",
		.type = ANDIRON_TYPE_STRING,
		.flags = ANDIRON_OPTION_REQUIRED,
		.doc = "Where the server is, \"http://pyroscope:4040\"; /push.v1.PusherService/Push "
		       "is appended.",
	},
	ENDPOINT_OPTIONS,
	{
		.name = "retry_on_http_429",
		.type = ANDIRON_TYPE_BOOL,
		.default_text = "true",
		.doc = "Whether a request is tried again when the server says that it came too fast.",
	},
	MAX_AGE("\"59m\"", "How old a profile may become before it is given up: a little less than "
			   "the server's reject-older-than; 0: any age."),
	{
		.name = "debug_info_upload_timeout",
		.type = ANDIRON_TYPE_DURATION,
		.flags = ANDIRON_OPTION_IGNORED,
		.doc = "Accepted; no debug information is uploaded.",
	},
	CLIENT_OPTIONS,
};
static const struct andiron_options endpoint_options = ANDIRON_OPTIONS(endpoint);

static const struct andiron_option otlp_endpoint[] = {
	{
		.name = "url",
		.type = ANDIRON_TYPE_STRING,
		.flags = ANDIRON_OPTION_REQUIRED,
		.doc = "Where the server is: \"http://collector:4318\" for HTTP, "
		       "\"http://collector:4317\" for gRPC; "
		       "the signal's path is appended.",
	},
	INSECURE,
	AT_LEAST_ONCE("Receivers may count it twice"),
	MAX_AGE("\"59m\"", ANY_AGE),
	ENDPOINT_OPTIONS,
	CLIENT_OPTIONS,
};
static const struct andiron_options otlp_endpoint_options = ANDIRON_OPTIONS(otlp_endpoint);

static const struct andiron_option tracing[] = {
	{
		.name = "jaeger_propagator",
		.type = ANDIRON_TYPE_BOOL,
		.flags = ANDIRON_OPTION_IGNORED,
		.doc = "Accepted; requests carry no trace headers.",
	},
	{
		.name = "trace_context_propagator",
		.type = ANDIRON_TYPE_BOOL,
		.flags = ANDIRON_OPTION_IGNORED,
		.doc = "Accepted; requests carry no trace headers.",
	},
};
static const struct andiron_options tracing_options = ANDIRON_OPTIONS(tracing);

static const struct andiron_option parca_endpoint[] = {
	{
		.name = "url",
		.type = ANDIRON_TYPE_STRING,
		.flags = ANDIRON_OPTION_REQUIRED,
		.doc = "Where the server is: \"http://parca:7070\" in plain text, \"https://…\" over TLS, "
		       "or \"parca:7070\", as `insecure` says.",
	},
	INSECURE,
	AT_LEAST_ONCE("Parca adds up what it gets twice"),
	MAX_AGE("\"0s\"", ANY_AGE),
	ENDPOINT_OPTIONS,
	CLIENT_OPTIONS,
};
static const struct andiron_options parca_endpoint_options = ANDIRON_OPTIONS(parca_endpoint);

static const struct andiron_option spool[] = {
	{
		.name = "directory",
		.type = ANDIRON_TYPE_STRING,
		.flags = ANDIRON_OPTION_REQUIRED,
		.doc = "Where to keep them, \"/var/lib/andiron/pyroscope\"; made if it is not "
		       "there. No other writer may use it.",
	},
	{
		.name = "max_bytes",
		.type = ANDIRON_TYPE_INT,
		.default_text = "268435456",
		.min = 8 << 20,
		.max = INT64_C(1) << 40,
		.doc = "Bytes on disk, never passed; the oldest profiles go first.",
	},
};
static const struct andiron_options spool_options = ANDIRON_OPTIONS(spool);

static const char *const unnamed_words[] = {"function", "address", NULL};
#define UNNAMED_DOC                                                                                \
	"How frames without a name are sent. \"function\": by where their function begins, "       \
	"[libcrypto.so.3 fn 0x1a2b30]. \"address\": where the file has a build id, as an address " \
	"that a server with its debug information can name."

/* What every writer has. */
/* clang-format off */
#define LABELS_AND_ENDPOINTS(unnamed_, endpoint_) \
	{.name = "external_labels", \
	 .type = ANDIRON_TYPE_MAP, \
	 .doc = "Labels for every series; they win over the target's own."}, \
	{.name = "unnamed", \
	 .type = ANDIRON_TYPE_STRING, \
	 .default_text = unnamed_, \
	 .choices = unnamed_words, \
	 .doc = UNNAMED_DOC}, \
	{.name = "endpoint", \
	 .type = ANDIRON_TYPE_BLOCK, \
	 .flags = ANDIRON_OPTION_REPEATED, \
	 .doc = "A server to push to; with several, each gets everything.", \
	 .block = &endpoint_}
#define SPOOL \
	{.name = "spool", \
	 .type = ANDIRON_TYPE_BLOCK, \
	 .doc = "Keeps profiles on disk until the server has them, over outages and restarts.", \
	 .block = &spool_options}
/* clang-format on */

static const struct andiron_option top[] = {
	LABELS_AND_ENDPOINTS("\"function\"", endpoint_options),
	SPOOL,
	{
		.name = "tracing",
		.type = ANDIRON_TYPE_BLOCK,
		.flags = ANDIRON_OPTION_IGNORED,
		.doc = "Accepted; requests carry no trace headers.",
		.block = &tracing_options,
	},
};
const struct andiron_options pyroscope_options = ANDIRON_OPTIONS(top);

static const char *const debuginfo_files[] = {"unnamed", "all", NULL};

static const struct andiron_option debuginfo[] = {
	{
		.name = "upload",
		.type = ANDIRON_TYPE_BOOL,
		.default_text = "true",
		.doc = "Whether files are offered to the server at all. Nothing is sent that it does not "
		       "ask for.",
	},
	{
		.name = "files",
		.type = ANDIRON_TYPE_STRING,
		.default_text = "\"unnamed\"",
		.choices = debuginfo_files,
		.doc = "Which files are offered: those with frames that could not be named here, or all "
		       "that were seen, for a server that shall be able to do without us.",
	},
	{
		.name = "strip",
		.type = ANDIRON_TYPE_BOOL,
		.default_text = "true",
		.doc = "Whether symbols and debug information alone are sent; otherwise the file as it is, "
		       "its code and data included.",
	},
	{
		.name = "max_parallel",
		.type = ANDIRON_TYPE_INT,
		.default_text = "2",
		.min = 1,
		.max = 64,
		.doc = "Files that are sent at once, to all endpoints together.",
	},
	{
		.name = "bytes_per_second",
		.type = ANDIRON_TYPE_INT,
		.default_text = "67108864",
		.min = 0,
		.max = INT64_C(1) << 40,
		.doc = "Bytes a second that all uploads of the node together may take; each has its share. 0: "
		       "any.",
	},
	{
		.name = "max_file_bytes",
		.type = ANDIRON_TYPE_INT,
		.default_text = "1000000000",
		.min = 1,
		.max = INT64_C(1) << 40,
		.doc = "Files that are larger after stripping are not sent; the default is the server's own "
		       "limit.",
	},
	{
		.name = "max_total_bytes",
		.type = ANDIRON_TYPE_INT,
		.default_text = "0",
		.min = 0,
		.max = INT64_C(1) << 50,
		.doc = "Bytes that may be sent in all until the agent is restarted; 0: any.",
	},
	{
		.name = "timeout",
		.type = ANDIRON_TYPE_DURATION,
		.default_text = "\"15m\"",
		.min = INT64_C(1000000000),
		.max = INT64_C(86400000000000),
		.doc = "How long sending one file may take; the server gives an upload up after as long.",
	},
};
static const struct andiron_options debuginfo_options = ANDIRON_OPTIONS(debuginfo);

static const struct andiron_option parca_top[] = {
	LABELS_AND_ENDPOINTS("\"address\"", parca_endpoint_options),
	{
		.name = "debuginfo",
		.type = ANDIRON_TYPE_BLOCK,
		.doc = "Files by which the server names frames, sent when it asks for them.",
		.block = &debuginfo_options,
	},
	SPOOL,
};
const struct andiron_options parca_options = ANDIRON_OPTIONS(parca_top);

static const struct andiron_option otlp_top[] = {
	{
		.name = "protocol",
		.type = ANDIRON_TYPE_STRING,
		.default_text = "\"http\"",
		.doc = "How servers are spoken to: \"http\" or \"grpc\".",
	},
	LABELS_AND_ENDPOINTS("\"address\"", otlp_endpoint_options),
	SPOOL,
};
const struct andiron_options otlp_options = ANDIRON_OPTIONS(otlp_top);
