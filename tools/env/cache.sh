# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The cache of the build environments, one directory for each part: toolchain, kernel,
# guest root, boot disk. The name of a directory contains a hash of its recipe, so all
# checkouts with the same recipe share it, a changed recipe makes a new one, and any
# number of environments exist side by side.
# Sourced by most tools; sets CACHE, env_dir and variant, and the variables of config.sh.

env_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../lib/say.sh
. "$env_dir/../lib/say.sh"
# shellcheck source=config.sh
. "$env_dir/config.sh"

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/rpcrdma

# What the user selected, as the suffix of directories in out/. Empty for the default
# environment and kernel.
variant=${SUITE:+-$SUITE}${SERIES:+-$SERIES}
[ "$FLAVOUR" = amd64 ] || variant+=-$FLAVOUR
[ "$KERNEL" = stock ] || variant+=-$KERNEL
[ -z "${SOURCE-}" ] || {
	SOURCE=$(realpath -m "$SOURCE")
	export SOURCE
	variant+=-$(basename "$SOURCE" | sed 's/\.tar\.[a-z0-9]*$//; s/\.orig$//; s/[^A-Za-z0-9._-]/_/g')
}

# environment: prints suite, series and release of the kernel that SUITE and SERIES select:
# those that tools/env/make chose when it made the environment, or "none".
environment() {
	if [ -n "${ENVIRONMENT-}" ]; then
		# tools/env/make is making this one.
		echo "$ENVIRONMENT"
	else
		cat "$(choice)" 2>/dev/null || echo "${SUITE:-${SUITES%% *}} ${SERIES:-none} none"
	fi
}

# choice: the file in which tools/env/make keeps its choice. For the default, a change of
# the lists in config.sh leads to a new choice.
choice() {
	local use=use-${SUITE:-default-$(recipe "$SUITES" "$PROVED")}${SERIES:+-$SERIES}
	[ "$FLAVOUR" = amd64 ] || use+=-$FLAVOUR
	echo "$CACHE/records/$use"
}

suite() { environment | cut -d' ' -f1; }
series() { environment | cut -d' ' -f2; }
release() { environment | cut -d' ' -f3; }

# flavour: prints the flavour of that kernel. A release is a version, '-' and the flavour.
flavour() {
	local release
	release=$(release)
	[ "$release" != none ] || release=-$FLAVOUR
	echo "${release#*-}"
}

# architecture: prints Debian's name of the architecture of guests and module.
architecture() {
	case $(flavour) in
	*arm64*) echo arm64 ;;
	*) echo amd64 ;;
	esac
}

# foreign: whether that is another architecture than the build environment's.
foreign() { [ "$(architecture)" != amd64 ]; }

# user_suite SUITE: the suite of compilers and user space. Suites of backports, and
# experimental, hold only some packages beside a whole suite.
user_suite() {
	case $1 in
	experimental) echo sid ;;
	*) echo "${1%-backports}" ;;
	esac
}

# selected: prints the variables that select this environment, for "next:" lines.
selected() {
	local name
	for name in SUITE SERIES SOURCE; do
		[ -z "${!name-}" ] || printf '%s=%s ' "$name" "${!name}"
	done
	[ "$FLAVOUR" = amd64 ] || printf 'FLAVOUR=%s ' "$FLAVOUR"
	[ "$KERNEL" = stock ] || printf 'KERNEL=%s ' "$KERNEL"
}

# recipe WORD-OR-FILE...: prints a short hash of the words and of the contents of the
# files, which are in this directory. Comment lines of scripts and lists do not count;
# those of *.config do.
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

# The directory of each part, whether it exists yet or not. The key of a part includes
# the keys of the parts it is made from.
toolchain_path() {
	# shellcheck disable=SC2046 # words
	echo "$CACHE/toolchain-$(recipe "$(environment)" "$COMPILER" \
		"packages-toolchain" "toolchain.sh" $(! foreign || echo packages-arm64 toolchain-foreign.sh))"
}

# source_record: the file in which tools/env/make keeps a hash of the contents of SOURCE.
source_record() { echo "$CACHE/records/source-$(recipe "$SOURCE")"; }

# The copy of SOURCE, which tools/env/enter mounts over the source of the suite.
source_path() {
	local hash=none
	[ ! -f "$(source_record)" ] || read -r hash _ <"$(source_record)"
	echo "$CACHE/source-$hash"
}

kernel_path() {
	local made_from
	case $KERNEL in
	stock) made_from=(kernel-stock.sh ../lib/rust-metadata.sh) ;;
	built) made_from=(kernel-built.sh kernel.config) ;;
	debug) made_from=(kernel-built.sh kernel.config kernel-debug.config) ;;
	clang) made_from=(kernel-built.sh kernel.config) ;;
	esac
	[ -z "${SOURCE-}" ] || made_from+=(kernel-older.config "$(basename "$(source_path)")")
	echo "$CACHE/kernel-$KERNEL-$(recipe "$(basename "$(toolchain_path)")" "${made_from[@]}")"
}

guest_path() {
	! foreign || {
		echo "$CACHE/guest-$(recipe "$(basename "$(native_guest_path)")" "$(architecture)" "guest-foreign.sh")"
		return
	}
	native_guest_path
}

native_guest_path() {
	echo "$CACHE/guest-$(recipe "$(user_suite "$(suite)")" "packages-guest" "guest.sh")"
}

base_path() {
	# shellcheck disable=SC2046 # a name has no blanks
	echo "$CACHE/base-$(recipe "$(basename "$(kernel_path)")" "$(basename "$(guest_path)")" \
		$(module_lists) "base.sh")"
}

# kvm_record BASE: the file in which tools/vm keeps whether this boot disk boots under KVM.
kvm_record() {
	echo "$CACHE/records/kvm-$(recipe "$(cat /proc/sys/kernel/random/boot_id)" "$(basename "$1")")"
}

nfstest_path() {
	echo "$CACHE/nfstest-$(recipe "$(user_suite "$(suite)")" "packages-nfstest" "nfstest.sh")"
}

# built_module TOP: the path of the module that checkout TOP builds for this environment.
built_module() {
	echo "$1/${variant:+out/${variant#-}/}rpcrdma.ko"
}

# for_this_kernel DIR: makes DIR for products of this kernel, and empties it first if it has those
# of another one: Kbuild's comparison of times does not detect that.
for_this_kernel() {
	local kernel
	kernel=$(basename "$(kernel_path)")
	[ "$(cat "$1/.kernel" 2>/dev/null)" = "$kernel" ] || rm -rf "$1"
	mkdir -p "$1"
	echo "$kernel" >"$1/.kernel"
}

# The lists of modules that guests of this kernel may load.
module_lists() {
	echo modules-guest
	[ "$KERNEL" = stock ] && echo modules-stock || echo modules-built
}

# packages LIST-FILE: prints the names in it, separated by commas.
packages() {
	sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$1" | paste -sd,
}

# make_once TITLE PATH FUNCTION: unless PATH exists, calls FUNCTION to fill a new
# directory, and renames that to PATH if FUNCTION succeeds. Concurrent callers wait for
# the first one.
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
			# Free the space of an attempt that has filled the file system.
			! grep -q 'No space left on device' "$STEP_LOG" || rm -rf --one-file-system "$path.part"
			exit 1
		}
		mv "$path.part" "$path"
	fi
	exec {cache_lock}>&-
	rm -f "$path.lock"
}

# Bash ignores `set -e` in a function that is called as a condition, so each recipe runs
# in a shell of its own.
in_strict_shell() {
	bash -euc ". '$env_dir/recipes.sh'; $1 '$2'"
}
