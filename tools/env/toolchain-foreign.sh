# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Recipe for the toolchain tree of another architecture than amd64: its kernel, and compilers that
# run on amd64 (packages-ARCHITECTURE).

# The recipe in toolchain.sh names the kernel's packages without an architecture, so apt takes those
# of the only architecture that has them.
make_toolchain_foreign() {
	foreign_options=(--architectures="amd64,$(architecture)"
		--include="$(packages "$env_dir/packages-$(architecture)")")
	make_toolchain "$1"
}
