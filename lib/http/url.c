/* SPDX-License-Identifier: Apache-2.0 */
/* What people write as a server's URL. */
#include "http/http.h"

#define URL_MAX 4096

struct str http_authority(struct str url)
{
	struct str rest = str_skip(url, str_search(url, STR("://")));

	rest = str_skip(rest, 3);
	for (size_t i = 0; i < rest.n; i++)
		if (rest.p[i] == '/' || rest.p[i] == '?' || rest.p[i] == '#')
			return str_first(rest, i);
	return rest;
}

struct str http_host(struct str url)
{
	struct str authority = http_authority(url);
	size_t at = str_rfind(authority, '@');

	return at < authority.n ? str_skip(authority, at + 1) : authority;
}

bool http_is_https(struct str url)
{
	return url.n > 6 && strncasecmp(url.p, "https:", 6) == 0;
}

const char *http_url_fault(struct str url)
{
	struct str host = http_host(url);

	if (url.n == 0)
		return "is empty, as an unset variable is; it must begin with http:// or https://";
	if (!str_starts(url, STR("http://")) && !str_starts(url, STR("https://")))
		return "must begin with http:// or https://";
	if (url.n > URL_MAX)
		return "is longer than 4096 bytes";
	for (size_t i = 0; i < url.n; i++)
		if ((unsigned char)url.p[i] <= ' ' || url.p[i] == 0x7f)
			return "holds a space or a control character";
	return host.n == 0 || host.p[0] == ':' ? "names no host" : NULL;
}
