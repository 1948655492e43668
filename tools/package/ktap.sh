# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# KTAP of tests of packages: each test continues where the one before it ended.

fail() {
	echo "FAIL: $*"
	exit 1
}

# run_in_order NAME...: runs these functions, each in a subshell, and prints their results and
# their output.
run_in_order() {
	local name number=0 start result said

	echo "1..$#"
	for name; do
		number=$((number + 1)) start=$SECONDS result=ok
		said=$("$name" 2>&1) || result='not ok'
		[ -z "$said" ] || sed 's/^/# /' <<<"$said"
		echo "# took $(((SECONDS - start) * 1000)) ms"
		echo "$result $number - ${name//_/ }"
	done
}
