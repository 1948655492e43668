# SPDX-License-Identifier: GPL-2.0
#
# The table of tools/interop/nfstest, from files nfstest-CLIENT-SERVER.ktap: a row for
# each suite, NFS version and group of tests, a column for each pair. A result is
# "ok N - nfstest SUITE VERSION GROUP", and before it stand "# P passed, F failed,
# K known, W warnings", and what is known: "#     BUG:  [REASON]: TEST".

FNR == 1 {
	split(FILENAME, part, /.*nfstest-|-|[.]ktap/)
	pair = name(part[2]) "/" name(part[3])
	column[++columns] = pair
	split("", here)
	counts = ""
}

/^# run on / {
	day[$4] = 1
	version = $5
	sub(/_all$/, "", version)
	sub(/_/, " ", version)
}
/^# rpcrdma: / { sub(/.*Linux /, ""); kernel[$0] = 1 }

/^# *BUG: / {
	match($0, /\[[^]]*\]/)
	reason = substr($0, RSTART + 1, RLENGTH - 2)
	here[noted(reason)] = 1
}

/^# [0-9]+ passed, / {
	counts = $2
	if ($4 > 0)
		counts = counts ", " $4 " failed"
	if ($8 > 0)
		counts = counts ", " $8 " warned"
}

/^(not )?ok [0-9]+ - nfstest / {
	row = $(NF - 2) SUBSEP $(NF - 1) SUBSEP $NF
	add_row(row)
	for (i = 1; i <= notes; i++)
		if (i in here)
			counts = counts " [" i "]"
	cell[row, pair] = counts == "" ? "did not end" : counts
	if (length(cell[row, pair]) > WIDTH)
		WIDTH = length(cell[row, pair])
	split("", here)
	counts = ""
}

BEGIN { WIDTH = 9 }

END {
	printf "\nRun on %s, Linux %s, %s.\n\n", joined(day), joined(kernel), version
	printf "%s", ended
	print_table("suite" SUBSEP "NFS" SUBSEP "group", "10 4 6")
}
