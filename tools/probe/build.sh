# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Builds what the harnesses of this directory run in guests. To be sourced in the top directory,
# after tools/env/cache.sh.

# shellcheck disable=SC2154 # of tools/env/cache.sh
programs=out/probe/programs$variant

# build MODULE: builds the probe, and our module if MODULE is "ours".
build() {
	mkdir -p "$programs"
	tools/env/make
	[ "$1" != ours ] || make --no-print-directory all
	tools/env/enter --src . make -s -C /src/tools/probe OUT="/src/$programs"
}
