#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# apart.sh PROGRAM DEBUG COMPILER…: builds a program and moves its symbols and debugging information to a debug file.
set -eu
program=$1 debug=$2
shift 2
"$@" -o "$program"
objcopy --only-keep-debug "$program" "$debug"
strip --strip-all "$program"
objcopy --add-gnu-debuglink="$debug" "$program"
