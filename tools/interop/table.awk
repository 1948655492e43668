# SPDX-License-Identifier: GPL-2.0
#
# The table of tools/interop/run, from files run-CLIENT-SERVER.ktap: a row for each
# client, server and NFS version, a column for each thing that was done, in the order
# in which they came. A result is "ok N - WHAT VERSION [ARGUMENT...]".

FNR == 1 {
	split(FILENAME, part, /.*run-|-|[.]ktap/)
	client = part[2]; server = part[3]
}

/^# run on / { day[$4] = 1 }
/^# rpcrdma: / { sub(/.*Linux /, ""); kernel[$0] = 1 }

/^(not )?ok [0-9]+ - / {
	verdict = /^not/ ? "failed" : "ok"
	reason = ""
	if (match($0, / # (XFAIL|SKIP) /)) {
		reason = substr($0, RSTART + RLENGTH)
		verdict = /# SKIP/ ? "not done" : "fails"
		$0 = substr($0, 1, RSTART - 1)
	}
	sub(/^(not )?ok [0-9]+ - /, "")
	what = $1
	for (i = 3; i <= NF; i++)
		what = what " " $i
	row = name(client) SUBSEP name(server) SUBSEP $2
	add_row(row)
	if (!(what in is_column)) {
		is_column[what] = 1
		column[++columns] = what
	}
	if (reason != "")
		verdict = verdict " [" noted(reason) "]"
	cell[row, what] = verdict
}

END {
	WIDTH = 10
	printf "\nRun on %s, Linux %s.\n\n", joined(day), joined(kernel)
	printf "%s", ended
	print_table("client" SUBSEP "server" SUBSEP "NFS", "6 6 4")
}
