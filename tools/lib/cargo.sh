# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Runs cargo for programs of this machine: host tests and fuzzers. Source ../env/cache.sh
# first.

# enough_here: whether this machine has a C++ compiler, for libFuzzer, and a cargo that is
# new enough. Otherwise the toolchain tree's are used.
enough_here() {
	local version
	version=$(cargo --version 2>/dev/null | cut -d' ' -f2)
	command -v c++ >/dev/null &&
		[ "$(printf '%s\n' "$HOST_RUST" "$version" | sort -V | head -n 1)" = "$HOST_RUST" ]
}

# with_cargo DIRECTORY COMMAND...: runs COMMAND in DIRECTORY, which must be below the
# current one.
with_cargo() {
	if enough_here; then
		(cd "$1" && shift && "$@")
	else
		# shellcheck disable=SC2016,SC2154 # expanded in the tree; env_dir: set by cache.sh
		"$env_dir/enter" --net --src . sh -c 'cd "$1" && shift && exec "$@"' run "$@"
	fi
}

# fetch_crates DIRECTORY: downloads the crates of its Cargo.lock that this machine needs.
# Later builds need no network.
fetch_crates() {
	# shellcheck disable=SC2016 # expanded where the command runs
	tries with_cargo "$1" sh -c \
		'cargo fetch --quiet --locked --target "$(rustc -vV | sed -n "s/^host: //p")"'
}
