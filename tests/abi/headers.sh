#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every header of the ABI compiles alone, as C11 and as C++11, pedantically, with either compiler;
# and so does a plugin's entry. The example hosts need nothing but the headers; they are C.
include=$1
examples=$2
n=0
failed=0
scratch=$(mktemp -d) || exit 1
entry=$scratch/a-plugin
trap 'rm -rf "$scratch"' EXIT
cat >"$entry" <<'END'
#include <andiron/plugin.h>
extern const struct andiron_component one, two;
ANDIRON_PLUGIN("example", "1.0", "Apache-2.0", &one, &two);
END
for header in "$include"/andiron/*.h "$include"/andiron/bpf/*.h "$entry"; do
	[ -e "$header" ] || continue
	for how in 'gcc -std=c11 -x c' 'g++ -std=c++11 -x c++' 'clang -std=c11 -x c' 'clang++ -std=c++11 -x c++'; do
		n=$((n + 1))
		if $how -pedantic -Wall -Wextra -Werror -fsyntax-only -I "$include" "$header"; then
			echo "ok $n - ${header##*/} by $how"
		else
			echo "not ok $n - ${header##*/} by $how"
			failed=1
		fi
	done
done
for example in "$examples"/*.c; do
	for how in gcc clang; do
		n=$((n + 1))
		if $how -std=c11 -pedantic -Wall -Wextra -Werror -fsyntax-only -I "$include" "$example"; then
			echo "ok $n - ${example##*/} by $how"
		else
			echo "not ok $n - ${example##*/} by $how"
			failed=1
		fi
	done
done
echo "1..$n"
exit $failed
