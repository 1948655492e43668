# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# Two guests of tools/vm/pair: what they tell each other, by files in a
# directory that both see. The runner says "stop" when the client is done.

# tell WORD
tell() {
	touch "/share/$1"
}

# await WORD [SECONDS]
await() {
	left=${2:-300}
	until [ -e "/share/$1" ]; do
		[ "$left" -gt 0 ] || { echo "no \"$1\" from the other guest" >&2; return 1; }
		left=$((left - 1))
		sleep 1
	done
}
