/* SPDX-License-Identifier: Apache-2.0 */
/* Messages read by the C library's own reader of them. Contract in dns-answer.h. */
#include "discovery/dns-answer.h"

#include "abi/target-row.h"

#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <errno.h>
#include <resolv.h>

struct reader {
	struct target_rows *rows;
	const ns_msg *message;
	struct str name;
	uint16_t port;
};

static int label(struct reader *r, const char *name, struct str value)
{
	struct str kept = arena_str(&r->rows->arena, value);

	return kept.p ? target_rows_label(r->rows, str_of(name), kept) : -ENOMEM;
}

/* A row for the host and port, with what labels it has already. */
static int end_row(struct reader *r, struct str host, uint16_t port)
{
	struct str address = target_text_address(&r->rows->arena, host, port);
	int code = address.p ? target_rows_label(r->rows, STR("__address__"), address) : -ENOMEM;

	if (code == 0)
		code = target_rows_label(r->rows, STR("__meta_dns_name"), r->name);
	return code < 0 ? code : target_rows_end(r->rows);
}

static int read_address(struct reader *r, const ns_rr *rr, int family)
{
	char text[INET6_ADDRSTRLEN];

	if (ns_rr_rdlen(*rr) != (family == AF_INET ? 4 : 16) ||
	    !inet_ntop(family, ns_rr_rdata(*rr), text, sizeof(text)))
		return -EBADMSG;
	return end_row(r, str_of(text), r->port);
}

/* The name at an offset of the record's data, as the text of labels: with its last dot. */
static int read_name(struct reader *r, const ns_rr *rr, size_t offset, char *out, size_t n)
{
	if (ns_rr_rdlen(*rr) <= offset ||
	    dn_expand(ns_msg_base(*r->message), ns_msg_end(*r->message), ns_rr_rdata(*rr) + offset,
		      out, (int)n - 1) < 0)
		return -EBADMSG;
	/* The root is the empty name. */
	n = strlen(out);
	out[n] = '.';
	out[n + 1] = '\0';
	return str_utf8(str_of(out)) ? 0 : -EBADMSG;
}

static struct str without_dot(const char *name)
{
	return (struct str){name, strlen(name) - 1};
}

static int read_srv(struct reader *r, const ns_rr *rr)
{
	char name[NS_MAXDNAME + 2];
	uint16_t port;
	int code = read_name(r, rr, 6, name, sizeof(name));
	struct str text;

	if (code < 0)
		return code;
	port = (uint16_t)ns_get16(ns_rr_rdata(*rr) + 4);
	text = str_of(arena_printf(&r->rows->arena, "%u", port));
	code = text.p ? target_rows_label(r->rows, STR("__meta_dns_srv_record_port"), text)
		      : -ENOMEM;
	if (code == 0)
		code = label(r, "__meta_dns_srv_record_target", str_of(name));
	return code < 0 ? code : end_row(r, without_dot(name), port);
}

static int read_mx(struct reader *r, const ns_rr *rr)
{
	char name[NS_MAXDNAME + 2];
	int code = read_name(r, rr, 2, name, sizeof(name));

	if (code == 0)
		code = label(r, "__meta_dns_mx_record_target", str_of(name));
	return code < 0 ? code : end_row(r, without_dot(name), r->port);
}

static int read_record(struct reader *r, const ns_rr *rr, enum dns_type type)
{
	switch (type) {
	case DNS_A:
		return ns_rr_type(*rr) == ns_t_a ? read_address(r, rr, AF_INET) : 0;
	case DNS_AAAA:
		return ns_rr_type(*rr) == ns_t_aaaa ? read_address(r, rr, AF_INET6) : 0;
	case DNS_SRV:
		return ns_rr_type(*rr) == ns_t_srv ? read_srv(r, rr) : 0;
	case DNS_MX:
		return ns_rr_type(*rr) == ns_t_mx ? read_mx(r, rr) : 0;
	}
	return -EBADMSG;
}

int dns_answer_read(const uint8_t *message, size_t n, enum dns_type type, struct str name,
		    uint16_t port, struct target_rows *ret)
{
	struct target_rows rows = {0};
	ns_msg parsed;
	struct reader r = {&rows, &parsed, name, port};
	int code = 0;

	if (n > INT32_MAX || ns_initparse(message, (int)n, &parsed) < 0)
		return -EBADMSG;
	for (int i = 0; i < ns_msg_count(parsed, ns_s_an) && code == 0; i++) {
		ns_rr rr;

		code = ns_parserr(&parsed, ns_s_an, i, &rr) < 0 ? -EBADMSG
								: read_record(&r, &rr, type);
	}
	if (code < 0)
		target_rows_free(&rows);
	else
		*ret = rows;
	return code;
}
