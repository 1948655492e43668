# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The cache: a directory for each thing made, named after the recipe it was
# made from. A clean checkout finds it again, a changed recipe does not.

env_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../lib/say.sh
. "$env_dir/../lib/say.sh"
# shellcheck source=config.sh
. "$env_dir/config.sh"

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/rpcrdma

# recipe WORD-OR-FILE...: a short name for what all of them say, comments aside.
# Files are those of this directory, by their names.
recipe() {
	local it
	for it; do
		case $it in
		packages-* | modules-* | *.sh) sed '/^[[:space:]]*#/d' "$env_dir/$it" ;;
		*.config) cat "$env_dir/$it" ;;
		*) echo "$it" ;;
		esac
	done | sha256sum | cut -c1-12
}

# Where each thing is, or will be. What a thing is made from is part of its key.
toolchain_path() {
	echo "$CACHE/toolchain-$(recipe "$SUITE" "$KERNEL_SERIES" "$KERNEL_FLAVOUR" \
		"$COMPILER" "packages-toolchain" "toolchain.sh")"
}

kernel_path() {
	local made_from
	case $KERNEL in
	stock) made_from=(kernel-stock.sh) ;;
	built) made_from=(kernel-built.sh kernel.config) ;;
	debug) made_from=(kernel-built.sh kernel.config kernel-debug.config) ;;
	esac
	echo "$CACHE/kernel-$KERNEL-$(recipe "$(basename "$(toolchain_path)")" "${made_from[@]}")"
}

guest_path() {
	echo "$CACHE/guest-$(recipe "$SUITE" "packages-guest" "guest.sh")"
}

base_path() {
	# shellcheck disable=SC2046 # a name has no blanks
	echo "$CACHE/base-$(recipe "$(basename "$(kernel_path)")" "$(basename "$(guest_path)")" \
		$(module_lists) "base.sh")"
}

nfstest_path() {
	echo "$CACHE/nfstest-$(recipe "$SUITE" "packages-nfstest" "nfstest.sh")"
}

# Where the module of a checkout is, once it is built for this kernel.
built_module() {
	case $KERNEL in
	stock) echo "$1/rpcrdma.ko" ;;
	*) echo "$1/out/$KERNEL/rpcrdma.ko" ;;
	esac
}

# The lists of the modules that this kernel's guests may load.
module_lists() {
	echo modules-guest
	[ "$KERNEL" = stock ] || echo modules-built
}

# packages LIST-FILE: its names, separated by commas.
packages() {
	sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$1" | paste -sd,
}

# make_once TITLE PATH FUNCTION: have FUNCTION fill a new directory, and put it
# in place whole. Nothing happens where PATH is already there.
make_once() {
	local title=$1 path=$2 function=$3
	if [ -d "$path" ]; then
		touch "$path"
		return 0
	fi
	mkdir -p "$CACHE/logs"
	exec {cache_lock}>"$path.lock"
	flock -n "$cache_lock" || {
		echo "  waiting: another run makes $title"
		flock "$cache_lock"
	}
	if [ ! -d "$path" ]; then
		rm -rf --one-file-system "$path.part"
		mkdir -p "$path.part"
		STEP_LOG=$CACHE/logs/$(basename "$path").log
		step "$title" in_strict_shell "$function" "$path.part" || {
			# What did not fit is in the way of everything else as well.
			! grep -q 'No space left on device' "$STEP_LOG" || rm -rf --one-file-system "$path.part"
			exit 1
		}
		mv "$path.part" "$path"
	fi
	exec {cache_lock}>&-
	rm -f "$path.lock"
}

# A function called as a condition runs without `set -e`: give it its own shell.
in_strict_shell() {
	bash -euc ". '$env_dir/recipes.sh'; $1 '$2'"
}
