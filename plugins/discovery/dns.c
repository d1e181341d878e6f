/* SPDX-License-Identifier: Apache-2.0 */
/* Names looked up. Contract in dns.h. */
#include "discovery/dns.h"

#include "abi/value.h"
#include "base/clock.h"
#include "discovery/resolver.h"
#include "proc/thread.h"

#include <arpa/nameser.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#define STACK_BYTES (256u << 10)

struct dns {
	struct abi_context context;
	struct arena arena;
	struct sources sources;
	VEC(struct str) names;
	enum dns_type type;
	uint16_t port;
	int64_t refresh_ns;
	uint64_t timer;
	struct resolver *resolver; /* NULL: none could be had */
	size_t first;              /* name of the next round, which goes on from there */
	bool looking_up, stopped;
	struct dns_counts counts;
};

/* One name's answer. result: 0, or why there is none. */
struct lookup {
	char *name;
	struct target_rows rows;
	int result;
};

/* All names, looked up once. It has all that its thread needs, and outlives a component that goes
 * first. */
struct round {
	struct abi_context context;
	struct dns *d; /* not to be touched by the thread */
	struct resolver *resolver;
	enum dns_type type;
	uint16_t port;
	size_t n, first;
	struct lookup all[];
};

static const struct {
	const char *word;
	int wire;
} types[] = {
	[DNS_A] = {"A", ns_t_a},
	[DNS_AAAA] = {"AAAA", ns_t_aaaa},
	[DNS_SRV] = {"SRV", ns_t_srv},
	[DNS_MX] = {"MX", ns_t_mx},
};

int dns_type_of(struct str word)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (word.n == strlen(types[i].word) &&
		    strncasecmp(word.p, types[i].word, word.n) == 0)
			return (int)i;
	return -1;
}

int32_t dns_create(const struct andiron_host *host, uint64_t instance,
		   const struct andiron_value *args, void **ret_self, struct andiron_error *ret_err)
{
	const struct andiron_value *list = value_get(args, "names");
	int type = dns_type_of(value_str(args, "type", STR("SRV")));
	struct dns *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->context = (struct abi_context){host, instance};
	d->type = type < 0 ? DNS_SRV : (enum dns_type)type;
	d->port = (uint16_t)value_int(args, "port", 0);
	d->refresh_ns = value_int(args, "refresh_interval", 30 * NS_PER_SEC);
	for (uint64_t i = 0; list && i < list->n_items; i++) {
		struct str name = arena_str(&d->arena, abi_str(list->items[i].string));

		if (!name.p || !vec_push(&d->names, name)) {
			dns_free(d);
			return -ENOMEM;
		}
	}
	if (sources_init(&d->sources, &d->context) < 0) {
		dns_free(d);
		return -ENOMEM;
	}
	*ret_self = d;
	return 0;
}

void dns_free(void *self)
{
	struct dns *d = self;

	if (!d)
		return;
	resolver_release(d->resolver);
	sources_fini(&d->sources);
	vec_free(&d->names);
	arena_free(&d->arena);
	free(d);
}

static void round_free(struct round *r)
{
	for (size_t i = 0; i < r->n; i++) {
		target_rows_free(&r->all[i].rows);
		free(r->all[i].name);
	}
	resolver_release(r->resolver);
	free(r);
}

static struct round *round_new(struct dns *d)
{
	struct round *r = calloc(1, sizeof(*r) + d->names.n * sizeof(r->all[0]));

	if (!r)
		return NULL;
	*r = (struct round){.context = d->context,
			    .d = d,
			    .resolver = resolver_retain(d->resolver),
			    .type = d->type,
			    .port = d->port,
			    .n = d->names.n,
			    .first = d->first};
	for (size_t i = 0; i < r->n; i++) {
		r->all[i].name = str_dup(d->names.p[i]);
		if (!r->all[i].name) {
			round_free(r);
			return NULL;
		}
	}
	return r;
}

static int look_up(const struct round *r, struct lookup *l, uint8_t *answer)
{
	int n = resolver_ask(r->resolver, l->name, types[r->type].wire, answer);

	return n <= 0 ? n
		      : dns_answer_read(answer, (size_t)n, r->type, str_of(l->name), r->port,
					&l->rows);
}

static const char *reason(int result, const struct resolver *resolver)
{
	switch (result) {
	case -EBADMSG:
		return "the answer is damaged";
	case -EPIPE:
		if (resolver_refusal(resolver))
			return resolver_refusal(resolver);
		return "the process that speaks to servers has ended, and another is started";
	case -ENAMETOOLONG:
		return "no name of DNS is so long";
	default:
		return "no server of /etc/resolv.conf answers for it";
	}
}

/* One name may cost the round its process, and all behind it their answers: so the next one begins
 * behind that name. */
static void choose_first(struct dns *d, const struct round *r)
{
	for (size_t i = 0; i < r->n; i++) {
		size_t at = (r->first + i) % r->n;

		if (r->all[at].result != -EPIPE)
			continue;
		d->first = (at + 1) % r->n;
		return;
	}
}

static void take(struct dns *d, struct round *r)
{
	const struct lookup *failed = NULL;
	int code = 0;

	choose_first(d, r);
	for (size_t i = 0; i < r->n; i++) {
		struct source *source = sources_get(&d->sources, r->all[i].name);

		d->counts.lookups++;
		if (r->all[i].result < 0) {
			d->counts.failures++;
			failed = failed ? failed : &r->all[i];
		} else if (!source || sources_set(&d->sources, source, &r->all[i].rows) < 0) {
			code = -ENOMEM;
		}
	}
	if (code == 0)
		code = sources_publish(&d->sources);
	if (code < 0)
		abi_health(&d->context, ANDIRON_HEALTH_UNHEALTHY,
			   "out of memory: the targets are not up to date");
	else if (failed)
		abi_health(&d->context, ANDIRON_HEALTH_UNHEALTHY,
			   "%s cannot be looked up: %s; the targets that it had stay", failed->name,
			   reason(failed->result, r->resolver));
	else
		abi_health(&d->context, ANDIRON_HEALTH_HEALTHY, "%zu targets at %zu names",
			   sources_count(&d->sources), d->names.n);
}

static void on_round(void *context)
{
	struct round *r = context;
	struct dns *d = r->d;

	d->looking_up = false;
	if (!d->stopped)
		take(d, r);
	round_free(r);
}

static void *run_round(void *context)
{
	struct round *r = context;
	uint8_t *answer = malloc(NS_MAXMSG);

	for (size_t i = 0; i < r->n; i++) {
		struct lookup *l = &r->all[(r->first + i) % r->n];

		l->result = answer ? look_up(r, l, answer) : -ENOMEM;
	}
	free(answer);
	/* A component that has gone is not told. */
	if (r->context.host->post(r->context.instance, on_round, r) < 0)
		round_free(r);
	return NULL;
}

static int start_thread(struct round *r)
{
	pthread_attr_t attr;
	pthread_t thread;
	int code = -pthread_attr_init(&attr);

	if (code < 0)
		return code;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	code = -thread_start(&thread, &attr, run_round, r);
	pthread_attr_destroy(&attr);
	return code;
}

static int start_resolver(struct dns *d)
{
	int code;

	resolver_release(d->resolver);
	d->resolver = NULL;
	code = resolver_start(&d->context, &d->resolver);
	d->counts.starts += code == 0;
	return code;
}

static void begin_round(void *context)
{
	struct dns *d = context;
	struct round *r;

	if (d->looking_up || d->stopped)
		return;
	if ((!d->resolver || resolver_is_worn(d->resolver)) && start_resolver(d) < 0) {
		abi_health(&d->context, ANDIRON_HEALTH_UNHEALTHY,
			   "no process for looking up names: the targets are not up to date");
		return;
	}
	r = round_new(d);
	d->looking_up = r && start_thread(r) == 0;
	if (d->looking_up)
		return;
	if (r)
		round_free(r);
	abi_health(&d->context, ANDIRON_HEALTH_UNHEALTHY,
		   "no thread for looking up names: the targets are not up to date");
}

int32_t dns_start(void *self, struct andiron_error *err)
{
	struct dns *d = self;
	struct error why = ERROR_NULL;
	int r = start_resolver(d);

	/* What passes is no refusal: each round starts one that is not there. */
	if (r == 0 && resolver_await(d->resolver, &why) == -EPERM)
		return abi_error(d->context.host, err, &why, -EPERM);
	r = d->context.host->timer_set(d->context.instance, d->refresh_ns, d->refresh_ns,
				       begin_round, d, &d->timer);
	if (r == 0)
		begin_round(d);
	return r;
}

void dns_stop(void *self)
{
	struct dns *d = self;

	d->stopped = true;
	if (d->resolver)
		resolver_end(d->resolver);
	if (d->timer)
		d->context.host->timer_cancel(d->context.instance, d->timer);
	d->timer = 0;
}

struct dns_counts dns_counts(const void *self)
{
	const struct dns *d = self;
	struct dns_counts c = d->counts;

	c.targets = sources_count(&d->sources);
	c.restarts = c.starts ? c.starts - 1 : 0;
	return c;
}
