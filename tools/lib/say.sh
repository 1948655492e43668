# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Messages of all tools: one line for each step, with its duration, and for each failure
# the cause ("error:") and the next step ("next:").

# Without a login shell, `su` leaves out the directories of depmod, modinfo and chroot.
PATH=$PATH:/usr/sbin:/sbin

# step TITLE COMMAND...: runs COMMAND with its output in $STEP_LOG, and prints TITLE and the
# duration. If COMMAND fails, prints $STEP_HINT and the end of the log.
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

# hint NEXT: prints the next step.
hint() {
	echo "    next: $*" >&2
}

# fail CAUSE [NEXT]: prints both, and exits with 1.
fail() {
	echo "error: $1" >&2
	[ $# -lt 2 ] || hint "$2"
	exit 1
}

# known NAMES NAME...: fails unless each NAME is in NAMES.
known() {
	local names=$1 each
	shift
	for each; do
		[[ " $names " == *" $each "* ]] ||
			fail "there is no \"$each\"" "use one of: $names"
	done
}

# tries COMMAND...: runs COMMAND up to four times, for commands that need the network. Runs
# in a subshell, so that an interrupt ends the attempts and not only the command.
tries() (
	trap 'exit 130' INT TERM
	for pause in 10 30 60; do
		"$@" && exit
		echo "failed: $1; next attempt in $pause s" >&2
		sleep "$pause"
	done
	"$@"
)
