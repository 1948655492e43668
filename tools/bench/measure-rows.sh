# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The rows that a guest measures.

# measure_rows ROW...: calls the program's measure() for those rows of /rows that are named, with the
# number and the columns of the row.
measure_rows() {
	local number=0 row rest

	while read -r row rest; do
		case $row in '' | '#'*) continue ;; esac
		number=$((number + 1))
		# shellcheck disable=SC2086 # columns
		[[ " $* " != *" $row "* ]] || measure $number "$row" $rest
	done </rows
}
