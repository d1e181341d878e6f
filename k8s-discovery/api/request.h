/* SPDX-License-Identifier: Apache-2.0 */
/* What a watch asks: URLs, and the words for answers that are none. */
#pragma once

#include "k8s-discovery/api/watch.h"

/* Each appends a URL to `url`, whose `failed` tells whether it could. A list is a page, the first
 * or the one of a token; with `whole` it is all that there is. */
void request_list(struct buf *url, const struct api *api, const struct selection *what,
		  struct str next, bool any_age, bool whole);
void request_watch(struct buf *url, const struct api *api, const struct selection *what,
		   struct str version, uint32_t seconds);
/* A watch that begins with all there is. */
void request_initial(struct buf *url, const struct api *api, const struct selection *what,
		     uint32_t seconds);

/* Why a request failed, as a line for people. */
void request_describe(char *out, size_t n, const struct api *api, const struct selection *what,
		      const struct http_response *r);
