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
	row = client SUBSEP server SUBSEP $2
	if (!(what in is_column)) {
		is_column[what] = 1
		column[++columns] = what
	}
	if (!(row in is_row)) {
		is_row[row] = 1
		rows[++n_rows] = row
	}
	if (reason != "") {
		if (!(reason in note)) {
			note[reason] = ++notes
			text[notes] = reason
		}
		verdict = verdict " [" note[reason] "]"
	}
	cell[row, what] = verdict
}

function rule(i, string) {
	string = line(6) "  " line(6) "  " line(4)
	for (i = 1; i <= columns; i++)
		string = string "  " line(WIDTH)
	return string
}

END {
	WIDTH = 10
	printf "\nRun on %s, Linux %s.\n\n%s\n", joined(day), joined(kernel), rule()
	printf "%-6s  %-6s  %-4s", "client", "server", "NFS"
	for (i = 1; i <= columns; i++)
		printf "  %-*s", WIDTH, column[i]
	print "\n" rule()
	for (r = 1; r <= n_rows; r++) {
		split(rows[r], part, SUBSEP)
		printf "%-6s  %-6s  %-4s", name(part[1]), name(part[2]), part[3]
		for (i = 1; i <= columns; i++)
			printf "  %-*s", WIDTH, (rows[r], column[i]) in cell ? \
				cell[rows[r], column[i]] : "\\-"
		print ""
	}
	print rule() "\n"
	for (i = 1; i <= notes; i++)
		print "[" i "] " text[i]
	if (notes)
		print ""
}
