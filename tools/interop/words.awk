# SPDX-License-Identifier: GPL-2.0
#
# What the tables here have in common. A table has rows[1..n_rows], of three words each,
# column[1..columns], a cell[row, column] where there was a result, and text[1..notes].

# No test's result: what tools/interop/pair.sh says of the machines. FILENAME ends with
# -CLIENT-SERVER.ktap.
/^not ok - / {
	words = split(FILENAME, word, /-|[.]ktap/)
	ended = ended sprintf("Client %s, server %s: %s.\n\n", name(word[words - 2]),
		name(word[words - 1]), substr($0, 10))
}

function name(module) { return module == "c" ? "C" : "this" }

function line(width, string) {
	for (string = ""; width > 0; width--)
		string = string "="
	return string
}

function joined(list, each, string) {
	for (each in list)
		string = string (string == "" ? "" : ", ") each
	return string
}

function add_row(row) {
	if (!(row in is_row)) {
		is_row[row] = 1
		rows[++n_rows] = row
	}
}

# The number of the note that says this.
function noted(reason) {
	if (!(reason in note)) {
		note[reason] = ++notes
		text[notes] = reason
	}
	return note[reason]
}

function words_of_row(format, wide, words) {
	split(words, part, SUBSEP)
	return sprintf(format, wide[1], part[1], wide[2], part[2], wide[3], part[3])
}

# The words of a row are under these heads, so wide; results are WIDTH wide.
function print_table(heads, widths, wide, format, rule, r, i) {
	split(widths, wide, " ")
	format = "%-*s  %-*s  %-*s"
	rule = line(wide[1]) "  " line(wide[2]) "  " line(wide[3])
	for (i = 1; i <= columns; i++)
		rule = rule "  " line(WIDTH)
	print rule
	printf "%s", words_of_row(format, wide, heads)
	for (i = 1; i <= columns; i++)
		printf "  %-*s", WIDTH, column[i]
	print "\n" rule
	for (r = 1; r <= n_rows; r++) {
		printf "%s", words_of_row(format, wide, rows[r])
		for (i = 1; i <= columns; i++)
			printf "  %-*s", WIDTH, (rows[r], column[i]) in cell ? \
				cell[rows[r], column[i]] : "\\-"
		print ""
	}
	print rule "\n"
	for (i = 1; i <= notes; i++)
		print "[" i "] " text[i]
	if (notes)
		print ""
}
