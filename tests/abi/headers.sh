#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every header of the ABI compiles alone, as C11 and as C++11, pedantically, with either compiler.
include=$1
n=0
failed=0
for header in "$include"/andiron/*.h "$include"/andiron/bpf/*.h; do
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
echo "1..$n"
exit $failed
