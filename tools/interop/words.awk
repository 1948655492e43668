# SPDX-License-Identifier: GPL-2.0
#
# What the tables here have in common.

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
