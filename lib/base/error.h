/* SPDX-License-Identifier: Apache-2.0 */
/* Errors. A fallible function returns 0 or a negative errno. One that a person must be able to act
 * on takes a `struct error *` last and fills it in: what happened, why, what to do. Libraries never
 * log; they return.
 *
 * The text grows outward: the place that knows the cause sets it, each caller that knows more puts
 * its context in front ("context: cause"). Running out of memory is -ENOMEM everywhere and needs no
 * text. */
#pragma once

struct error {
	int code; /* negative errno, 0 while unset */
	char text[1024];
};

#define ERROR_NULL ((struct error){0, ""})

/* Sets text and code, cut off at the buffer's end; returns `code`, which is a negative errno. `err`
 * may be NULL. */
int error_set(struct error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same with ": strerror(-code)" behind it. Where root has given up its power over files and is
 * refused, with that and what to do. */
int error_errno(struct error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "context: " before the text that is there; returns err's code, or
 * `code` if none was set. */
int error_wrap(struct error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
