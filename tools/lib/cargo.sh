# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Programs for this machine that are written in Rust. After ../env/cache.sh.

# The machine's own cargo and C++ compiler (libFuzzer is C++) where they will
# do, else those of the toolchain tree.
enough_here() {
	local version
	version=$(cargo --version 2>/dev/null | cut -d' ' -f2)
	command -v c++ >/dev/null &&
		[ "$(printf '%s\n' "$HOST_RUST" "$version" | sort -V | head -n 1)" = "$HOST_RUST" ]
}

# with_cargo DIRECTORY COMMAND...: runs it there. The directory is one below here.
with_cargo() {
	if enough_here; then
		(cd "$1" && shift && "$@")
	else
		# shellcheck disable=SC2016,SC2154 # expanded in the tree; env_dir: set by cache.sh
		"$env_dir/enter" --net --src . sh -c 'cd "$1" && shift && exec "$@"' run "$@"
	fi
}

# fetch_crates DIRECTORY: those that its Cargo.lock names, as far as this machine needs them.
# What builds them then does without the network.
fetch_crates() {
	# shellcheck disable=SC2016 # expanded where the command runs
	tries with_cargo "$1" sh -c \
		'cargo fetch --quiet --locked --target "$(rustc -vV | sed -n "s/^host: //p")"'
}
