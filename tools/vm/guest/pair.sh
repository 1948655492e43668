# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# Functions for the two guests of tools/vm/pair, which synchronize by files in the shared
# directory /share. tools/vm/pair creates /share/stop when the client's script has ended.

# tell WORD: signals WORD to the other guest.
tell() {
	touch "/share/$1"
}

# await WORD [SECONDS]: waits until the other guest has signalled WORD.
await() {
	left=${2:-300}
	until [ -e "/share/$1" ]; do
		[ "$left" -gt 0 ] || { echo "error: the other guest did not signal \"$1\"" >&2; return 1; }
		left=$((left - 1))
		sleep 1
	done
}
