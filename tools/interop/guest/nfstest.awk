# SPDX-License-Identifier: GPL-2.0
#
# Summarizes the output of nfstest: prints each test that did not pass, under the heading of
# its group, then the counts. Fails if the output is incomplete.

/^\*\*\* / { heading = substr($0, 5) }

/^ *(FAIL|BUG|WARN): / {
	if (heading != "")
		print heading
	heading = ""
	print
}

/^ *PASS: / { passed++ }
/^ *FAIL: / { failed++ }
/^ *BUG: / { known++ }
/^ *WARN: / { warned++ }
/^[0-9]+ tests \(/ { ended = 1 }

END {
	if (!ended)
		print "nfstest did not finish"
	printf "%d passed, %d failed, %d known, %d warnings\n", passed, failed, known, warned
	exit !ended
}
