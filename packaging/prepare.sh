# SPDX-License-Identifier: Apache-2.0
# Sourced by quickstart and check: root, packages, and files that belong to the
# caller. Expects $root, the top of the tree.

say() { printf '%s\n' "$*" >&2; }

# need_root NAME: ends with what to type where we are not root.
need_root() {
	[ "$(id -u)" = 0 ] && return
	say "$1 needs root: it installs packages and samples the whole machine with eBPF."
	say "    sudo $root/$1${2:+ $2}"
	exit 1
}

# packages PURPOSE…: the names of packaging/packages for these purposes.
packages() {
	for purpose in "$@"; do
		sed -n "s/^$purpose: //p" "$root/packaging/packages"
	done | tr '\n' ' '
}

missing_packages() {
	for p in "$@"; do
		dpkg-query -W -f='${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed || printf '%s ' "$p"
	done
}

# install_packages PURPOSE…: says what is missing and installs it. Without apt it prints the
# list and goes on; what is really absent then shows when it is used.
install_packages() {
	# shellcheck disable=SC2046
	set -- $(packages "$@")
	if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
		say "This is not Debian. andiron needs what Debian calls:"
		say "    $*"
		say "Going on; the build says what is absent."
		return 0
	fi
	missing=$(missing_packages "$@")
	[ -z "$missing" ] && return 0
	say "Installing: $missing"
	# shellcheck disable=SC2086
	if ! DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1; then
		apt-get update -qq >&2 &&
			DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
			{ say "The packages could not be installed. Without a network, install them beforehand: apt-get install $missing"; exit 1; }
	fi
}

# give_back PATH…: under sudo, what was made belongs to who called.
give_back() {
	[ -n "${SUDO_UID:-}" ] || return 0
	for path in "$@"; do
		[ ! -e "$path" ] || chown -R --no-dereference "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" "$path"
	done
}

# configure DIR OPTION…: meson setup, once. A folder that meson cannot use any more is made anew.
configure() {
	dir=$1
	shift
	[ -f "$dir/build.ninja" ] && ninja -C "$dir" -n build.ninja >/dev/null 2>&1 && return 0
	rm -rf "$dir"
	meson setup "$dir" "$root" "$@" >"$dir.log" 2>&1 || { cat "$dir.log" >&2; rm -f "$dir.log"; exit 1; }
	rm -f "$dir.log"
}

# Go, where it is installed outside the path that sudo sets.
for go in /usr/local/go/bin /usr/lib/go/bin; do
	if [ -d "$go" ]; then PATH=$PATH:$go; fi
done
export PATH=$PATH:/usr/sbin:/sbin
# git refuses a tree that belongs to somebody else; we only ever ask it for names.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
