# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The kernels that suites offer, and the choice of one. Sourced by tools/env/make.

records=$CACHE/records

# look_up SUITE: asks the mirror for the kernels of a suite, and keeps the answer: one line
# for each kernel, with its series, release and version, newest first.
look_up() {
	mkdir -p "$records"
	if offers_of "$1" >"$records/offers-$1-$FLAVOUR.part"; then
		mv "$records/offers-$1-$FLAVOUR.part" "$records/offers-$1-$FLAVOUR"
	else
		rm "$records/offers-$1-$FLAVOUR.part"
		return 1
	fi
}

# offers_of SUITE: mmdebstrap installs nothing here, but sets up apt for its default mirror.
offers_of() {
	local empty user status=0
	empty=$(mktemp -d)
	user=$(user_suite "$1")
	# shellcheck disable=SC2016 # expanded by the hooks
	mmdebstrap --variant=custom --format=directory \
		--architectures="amd64$(! foreign || echo ",$(architecture)")" \
		--aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Languages "none"' \
		--setup-hook="[ $1 = $user ] || sed -i -n 's/ $user main\$/ $1 main/p' \"\$1/etc/apt/sources.list\"" \
		--customize-hook='APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-cache dumpavail >"$1/available"' \
		"$user" "$empty/tree" >&2 || status=1
	[ "$status" != 0 ] || list_offers <"$empty/tree/available" || {
		echo "error: no kernel with its source" >&2
		status=1
	}
	rm -rf --one-file-system "$empty"
	return "$status"
}

# list_offers: reads the stanzas of apt's index. A kernel needs headers, and source of the
# same version. Other flavours, such as 7.2.12+deb14-cloud-amd64, are not listed.
list_offers() {
	awk -v flavour="$FLAVOUR" '
		$1 == "Package:" { name = $2 }
		$1 != "Version:" { next }
		name ~ "^linux-headers-[0-9][^-]*-" flavour "$" { release[$2] = substr(name, 15) }
		name ~ "^linux-source-[0-9.]+$" { series[$2] = substr(name, 14) }
		END {
			for (version in release)
				if (version in series)
					print series[version], release[version], version
		}' | sort -k 3 -Vr | grep .
}

# newest_kernels SUITE: prints the releases of the two newest amd64 kernels of a suite that has
# been looked up, the older one first, or of the only one.
newest_kernels() {
	local offers=$records/offers-$1-amd64

	[ ! -f "$offers" ] || head -n 2 "$offers" | cut -d' ' -f2 | tac | paste -sd' '
}

# offered SUITE [proved]: prints the newest kernel that SUITE offers and that SERIES selects,
# as an environment. With "proved", its series must be in PROVED.
offered() {
	local series release rest
	# shellcheck disable=SC2034 # rest: the version
	while read -r series release rest; do
		if selects "$series" "$release" && { [ -z "${2-}" ] || proved "$series"; }; then
			echo "$1 $series $release"
			return
		fi
	done <"$records/offers-$1-$FLAVOUR"
	return 1
}

# selects SERIES RELEASE: whether FLAVOUR and SERIES, as the user set them, select this kernel:
# SERIES by series (7.2), version (7.2.12) or release (7.2.12+deb13-amd64).
selects() {
	[ "${2#*-}" = "$FLAVOUR" ] || return
	case ${SERIES-} in
	'' | "$1" | "$2") ;;
	*) [[ $2 == "$SERIES"[+-]* ]] ;;
	esac
}

proved() { [[ " $PROVED " == *" $1 "* ]]; }

# left_out SUITE REASON: says why the choice falls on another suite.
left_out() {
	echo "  Debian $1 is left out: $2"
}

# choose ASK TRY: sets ENVIRONMENT to the first environment that SUITE and SERIES select and
# that can be used: ASK SUITE has looked up the suite, and TRY has made the environment. If
# the user named neither, suites that offer a proved series come first, in their order.
choose() {
	local ask=$1 try=$2 pass suite suites passes=('')
	local -A answers=() tried=()
	read -r -a suites <<<"${SUITE:-$SUITES}"
	[ -n "${SUITE-}${SERIES-}" ] || passes=(proved '')
	for pass in "${passes[@]}"; do
		for suite in "${suites[@]}"; do
			! consider "$suite" || return 0
		done
	done
	return 1
}

# consider SUITE: one step of choose, with its variables.
consider() {
	if [ -z "${answers[$1]-}" ]; then
		answers[$1]=yes
		"$ask" "$1" || answers[$1]=no
	fi
	[ "${answers[$1]}" = yes ] || return 1
	if ! ENVIRONMENT=$(offered "$1" "$pass"); then
		if [ -n "$pass" ]; then
			left_out "$1" "the tests have not passed with its Linux $(head -n 1 "$records/offers-$1-$FLAVOUR" | cut -d' ' -f1)"
		else
			left_out "$1" "it does not offer Linux ${SERIES-}"
		fi
		return 1
	fi
	[ "${tried[$1]-}" != "$ENVIRONMENT" ] || return 1
	tried[$1]=$ENVIRONMENT
	export ENVIRONMENT
	"$try"
}
