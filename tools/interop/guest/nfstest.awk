# SPDX-License-Identifier: GPL-2.0
#
# What came of a run of nfstest, from what it said: each test that did not pass, under
# the heading of its group, then how many did. Fails if it has not come to its end.

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
		print "nfstest did not come to its end"
	printf "%d passed, %d failed, %d known, %d warnings\n", passed, failed, known, warned
	exit !ended
}
