/* SPDX-License-Identifier: Apache-2.0 */
/* Names of JIT-compiled code, as runtimes report them, in the form that other profilers show:
 *
 *  - CPython's "py::inner:/app/a.py" is "/app/a.py:inner", and the file is known;
 *  - a JVM's "int org.foo.Bar.baz(long, java.lang.String)" is "org.foo.Bar.baz".
 *
 * All others (V8's "JS:*outer /a.js:3:10", a JVM's "vtable stub") stay as the runtime reports them.
 */
#pragma once

#include "base/buf.h"

/* Puts the name into *out (what was there is gone), and the source file, borrowed from `reported`,
 * into *ret_file where it is known: 1; 0 if the name is to be shown as it is, and *out is empty;
 * -ENOMEM. / */
int jit_name(struct str reported, struct buf *out, struct str *ret_file);
