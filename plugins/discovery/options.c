/* SPDX-License-Identifier: Apache-2.0 */
/* Options and their checks. Contract in options.h. */
#include "discovery/options.h"

#include "abi/log.h"
#include "abi/value.h"
#include "base/clock.h"
#include "client/options.h"
#include "client/polling.h"
#include "discovery/dns.h"
#include "discovery/files.h"

static const struct andiron_option of_files[] = {
	OPTION(STRINGS, "files", NULL,
	       "Files with target groups in JSON or YAML, by path or pattern. A * may stand in the "
	       "last part only.",
	       .flags = ANDIRON_OPTION_REQUIRED),
	OPTION(DURATION, "refresh_interval", "\"5m\"",
	       "How often the files are read although no change of them was seen.",
	       .min = NS_PER_SEC, .max = INT64_MAX),
};
const struct andiron_options file_options = ANDIRON_OPTIONS(of_files);

static const struct andiron_option of_http[] = {
	OPTION(STRING, "url", NULL, "Where a list of target groups is, in JSON.",
	       .flags = ANDIRON_OPTION_REQUIRED),
	OPTION(DURATION, "refresh_interval", "\"1m\"", "How often it is asked for.",
	       .min = NS_PER_SEC, .max = INT64_MAX),
	CLIENT_OPTIONS,
};
const struct andiron_options http_options = ANDIRON_OPTIONS(of_http);

static const struct andiron_option client[] = {CLIENT_OPTIONS};
static const struct andiron_options client_table = ANDIRON_OPTIONS(client);

#define REQUEST(what)                                                                              \
	OPTION(STRING, "url", NULL, "Whose answer is the " what ".",                               \
	       .flags = ANDIRON_OPTION_REQUIRED),                                                  \
		OPTION(STRING, "method", "\"GET\"", "Method of the request."),                     \
		OPTION(SECRETS, "headers", NULL, "Headers to send with the request."),             \
		OPTION(STRING, "body", NULL, "Body of the request."),                              \
		CLIENT_POLL_OPTIONS("\"1m\"", "\"10s\""),                                          \
		OPTION(BLOCK, "client", NULL, "How the server is reached.",                        \
		       .block = &client_table)

static const struct andiron_option of_remote[] = {
	REQUEST("value"),
	OPTION(BOOL, "is_secret", "false", "Whether the answer is never to be shown."),
};
const struct andiron_options remote_options = ANDIRON_OPTIONS(of_remote);

static const struct andiron_option of_import[] = {REQUEST("module")};
const struct andiron_options import_options = ANDIRON_OPTIONS(of_import);

static const struct andiron_option of_dns[] = {
	OPTION(STRINGS, "names", NULL, "Names to look up.", .flags = ANDIRON_OPTION_REQUIRED),
	OPTION(STRING, "type", "\"SRV\"", "The type of record: SRV, A, AAAA or MX."),
	OPTION(INT, "port", "0", "Port for A, AAAA and MX; required there. SRV has its own.",
	       .min = 0, .max = UINT16_MAX),
	OPTION(DURATION, "refresh_interval", "\"30s\"", "How often the names are looked up.",
	       .min = NS_PER_SEC, .max = INT64_MAX),
};
const struct andiron_options dns_options = ANDIRON_OPTIONS(of_dns);

static const struct andiron_option of_file_match[] = {
	OPTION(TARGETS, "path_targets", NULL,
	       "Targets whose __path__ names files: by * ? [ ] and { } as in a shell, and ** for "
	       "any number of folders. __path_exclude__ leaves some out.",
	       .flags = ANDIRON_OPTION_REQUIRED),
	OPTION(DURATION, "sync_period", "\"10s\"", "How often files are looked for.",
	       .min = 10 * NS_PER_MSEC, .max = INT64_MAX),
	OPTION(DURATION, "ignore_older_than", "\"0s\"",
	       "Leave out files that were changed longer ago than this; 0s: none.", .min = 0,
	       .max = INT64_MAX),
};
const struct andiron_options file_match_options = ANDIRON_OPTIONS(of_file_match);

int32_t file_check(const struct andiron_host *host, const struct andiron_value *args,
		   struct andiron_report *report)
{
	const struct andiron_value *list = value_get(args, "files");

	if (list && list->n_items == 0)
		abi_report(host, report, ANDIRON_REPORT_ERROR, list, "files names no file");
	for (uint64_t i = 0; list && i < list->n_items; i++) {
		struct str pattern = abi_str(list->items[i].string);
		const char *fault = files_pattern_fault(pattern);

		if (fault)
			abi_report(host, report, ANDIRON_REPORT_ERROR, &list->items[i],
				   "\"%.*s\" %s", STR_FMT(pattern), fault);
	}
	return 0;
}

int32_t http_check(const struct andiron_host *host, const struct andiron_value *args,
		   struct andiron_report *report)
{
	const struct andiron_value *url = value_get(args, "url");
	const char *fault = url ? http_url_fault(abi_str(url->string)) : NULL;

	if (fault)
		abi_report(host, report, ANDIRON_REPORT_ERROR, url, "url %s", fault);
	client_check(host, args, report);
	return 0;
}

/* A token of RFC 9110, as Go wants a method to be. */
static bool is_method(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!((s.p[i] >= 'A' && s.p[i] <= 'Z') || (s.p[i] >= 'a' && s.p[i] <= 'z') ||
		      s.p[i] == '-' || s.p[i] == '_'))
			return false;
	return s.n && s.n <= 32;
}

int32_t remote_check(const struct andiron_host *host, const struct andiron_value *args,
		     struct andiron_report *report)
{
	const struct andiron_value *url = value_get(args, "url");
	const struct andiron_value *method = value_get(args, "method");
	const struct andiron_value *block = value_get(args, "client");
	const char *fault = url ? http_url_fault(abi_str(url->string)) : NULL;

	if (fault)
		abi_report(host, report, ANDIRON_REPORT_ERROR, url, "url %s", fault);
	if (method && !is_method(abi_str(method->string)))
		abi_report(host, report, ANDIRON_REPORT_ERROR, method,
			   "method is no word such as GET or POST");
	if (block)
		client_check(host, block, report);
	client_poll_check(host, args, report);
	return 0;
}

int32_t dns_check(const struct andiron_host *host, const struct andiron_value *args,
		  struct andiron_report *report)
{
	const struct andiron_value *word = value_get(args, "type");
	int type = dns_type_of(value_str(args, "type", STR("SRV")));

	if (type < 0)
		abi_report(host, report, ANDIRON_REPORT_ERROR, word,
			   "type is \"%.*s\"; SRV, A, AAAA and MX can be looked up",
			   STR_FMT(abi_str(word->string)));
	else if (type != DNS_SRV && value_int(args, "port", 0) == 0)
		abi_report(host, report, ANDIRON_REPORT_ERROR, word,
			   "records of this type say no port: give one by port");
	return 0;
}
