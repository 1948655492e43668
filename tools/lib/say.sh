# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What every tool here says to the person in front of it: one line per step,
# with the time it took, and for each failure its cause and what to do next.

# `su` leaves out the directories of depmod, modinfo and chroot.
PATH=$PATH:/usr/sbin:/sbin

# step TITLE COMMAND...: run COMMAND, its output in $STEP_LOG, under one line.
step() {
	local title=$1 start=$SECONDS
	shift
	printf '  %-58s ' "$title"
	if "$@" >"${STEP_LOG:=$(mktemp)}" 2>&1; then
		printf '%4d s\n' $((SECONDS - start))
		return 0
	fi
	printf 'FAILED after %d s\n' $((SECONDS - start))
	[ -z "${STEP_HINT-}" ] || hint "$STEP_HINT"
	tail -n 15 "$STEP_LOG" | sed 's/^/    | /' >&2
	echo "    the whole log: $STEP_LOG" >&2
	return 1
}

hint() {
	echo "    next: $*" >&2
}

# fail CAUSE NEXT: say both and end.
fail() {
	echo "error: $1" >&2
	[ $# -lt 2 ] || hint "$2"
	exit 1
}

# known NAMES NAME...: each NAME must be one of those.
known() {
	local names=$1 each
	shift
	for each; do
		[[ " $names " == *" $each "* ]] ||
			fail "there is no \"$each\"" "name some of these: $names"
	done
}

# tries COMMAND...: up to four times, for what depends on the network. In a shell of its
# own, so that an interrupt ends more than the command.
tries() (
	trap 'exit 130' INT TERM
	for pause in 10 30 60; do
		"$@" && exit
		echo "that failed; once more in $pause s" >&2
		sleep "$pause"
	done
	"$@"
)
