# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Checks that Rust metadata which was made again fits a kernel. Sourced by the recipe of the stock
# kernel (tools/env) and, as a part of the DKMS package, by dkms/metadata.

# known_config FILE: the options of a configuration on which the layout of a structure may depend.
# The others are signing keys, names, and versions of binutils: what follows from such a version has
# an option of its own.
known_config() {
	grep -E '^(CONFIG_|# CONFIG_.* is not set)' "$1" |
		grep -vE 'CONFIG_(CC_VERSION_TEXT|AS_VERSION|LD_VERSION|LOCALVERSION|BUILD_SALT|MODULE_SIG_(ALL|KEY|KEY_TYPE_.*)|SYSTEM_TRUSTED_KEYS|SYSTEM_REVOCATION_KEYS|OPENSSL_SUPPORTS_.*)[= ]' |
		sort
}

# crate_symbols OBJ: the Rust symbols that the crates in OBJ export.
crate_symbols() {
	sed -n 's/^EXPORT_SYMBOL_RUST_GPL(\(.*\));/\1/p' "$1"/rust/exports_*_generated.h | sort -u
}

# differing_symbols OBJ SYMVERS: the Rust symbols that the crates in OBJ export and the kernel lacks,
# or vice versa. Compiler and source are hashed into the names, so equal names prove both equal.
differing_symbols() {
	local theirs

	theirs=$(awk -F'\t' '$3 == "vmlinux" { print $2 }' "$2" | sort -u)
	comm -23 <(crate_symbols "$1") <(echo "$theirs")
	comm -13 <(crate_symbols "$1") <(grep -E '^(_R|rust_helper_)' <<<"$theirs")
}
