/* SPDX-License-Identifier: Apache-2.0 */
/* The table of `andiron top`: on a terminal a screen that is drawn anew and obeys keys, else plain
 * text, one table after the other. */
#pragma once

#include "cli/top/live-profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

#define SCREEN_SEARCH_MAX 64

struct screen {
	bool terminal;
	struct termios before;
	bool by_total, programs, paused, searching;
	char search[SCREEN_SEARCH_MAX]; /* rows without this in their text are left out */
	size_t search_n, first, limit;
	bool escaping; /* within a key of several bytes, of which these have come */
	char escape[8];
	size_t escape_n;
};

/* Takes the terminal if both standard input and output are one. `limit`: rows of a plain table. */
void screen_open(struct screen *s, size_t limit);
/* Gives it back as it was. */
void screen_close(struct screen *s);

/* Keys as they come. True: the user wants to leave. */
bool screen_type(struct screen *s, const char *keys, size_t n);

/* Sorts what it draws. 0; -ENOMEM, or -EIO when standard output takes no more. */
int screen_draw(const struct screen *s, struct live_view *v);
