# SPDX-License-Identifier: Apache-2.0
# Sourced by quickstart and check: root, packages, and files that belong to the
# caller. Expects $root, the top of the tree.

say() { printf '%s\n' "$*" >&2; }

# need_root NAME: ends with what to type where we are not root.
need_root() {
	[ "$(id -u)" = 0 ] && return
	say "$1 needs root: it installs packages and samples the whole machine with eBPF."
	if command -v sudo >/dev/null; then
		say "    sudo $(quoted "$root/$1")${2:+ $2}"
	else
		say "    su -c \"$(quoted "$root/$1")${2:+ $2}\""
	fi
	exit 1
}

# quoted WORD: as a shell takes it back.
quoted() {
	case $1 in
	*[!A-Za-z0-9_./-]*) printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")" ;;
	*) printf '%s' "$1" ;;
	esac
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

apt_install() {
	DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "$@" </dev/null
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
	if [ -z "$missing" ]; then
		say "All packages are installed: $*"
		return 0
	fi
	say "Installing: $missing"
	# The lists that are there may do, and need no network; where not, they are fetched first.
	# shellcheck disable=SC2086
	apt_install $missing >/dev/null 2>&1 && return 0
	# shellcheck disable=SC2086
	apt-get update -qq >&2 && apt_install $missing >/dev/null && return 0
	say "The packages could not be installed. Without a network, install them beforehand:"
	say "    apt-get install $missing"
	exit 1
}

# give_back PATH…: under sudo, what was made belongs to who called.
give_back() {
	[ -n "${SUDO_UID:-}" ] || return 0
	for path in "$@"; do
		[ ! -e "$path" ] || chown -R --no-dereference "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" "$path"
	done
}

# configure DIR OPTION…: a build folder with these options. One that is there is looked over
# again: a program that was absent when it was made may be there by now. One that cannot be
# used any more is made anew.
configure() {
	dir=$1
	shift
	log=$(mktemp)
	if [ ! -f "$dir/build.ninja" ] || ! meson setup --reconfigure "$dir" "$root" "$@" >"$log" 2>&1; then
		rm -rf "$dir"
		meson setup "$dir" "$root" "$@" >"$log" 2>&1 || {
			cat "$log" >&2
			rm -f "$log"
			exit 1
		}
	fi
	rm -f "$log"
}

# compile DIR: builds quietly; what went wrong is shown.
compile() {
	ninja -C "$1" >"$1/compile.log" 2>&1 && return 0
	grep -v '^\[' "$1/compile.log" | tail -60 >&2
	say "The build failed; all of it stands in $1/compile.log"
	exit 1
}

# Root's home for what tools keep (under some sudos it is the caller's), and nothing of
# root's beside the sources.
if [ -n "${SUDO_UID:-}" ]; then
	HOME=$(getent passwd 0 | cut -d: -f6)
	export HOME
fi
export PYTHONDONTWRITEBYTECODE=1
# Go and Rust, where they are installed outside the path that sudo sets.
for tools in /usr/local/go/bin /usr/lib/go/bin "${HOME:-/root}/.cargo/bin"; do
	if [ -d "$tools" ]; then PATH=$PATH:$tools; fi
done
export PATH=$PATH:/usr/sbin:/sbin
# git refuses a tree that belongs to somebody else; we only ever ask it for names.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
