# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shared by the commands in script/: progress lines and the build folders.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export LC_ALL=C.UTF-8

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# The comment at the head of a command is its help text.
usage() {
    sed -n '3,/^[^#]/ { s/^# \{0,1\}//p }' "$0"
}

# step N/M TEXT... opens a step, step_done closes it with the seconds it took.
step() {
    step_name=$1
    step_began=$SECONDS
    shift
    printf '[%s] %s\n' "$step_name" "$*"
}

step_done() {
    printf '[%s] done in %d s\n' "$step_name" $((SECONDS - step_began))
}

# ninja redraws one line on a terminal; elsewhere one line for each tenth of the work will do.
# Whatever is not ninja's own status is a compiler's message and is shown; what meson says when it
# is run again is shown only if it does not come to its end.
run_ninja() {
    if [ -t 1 ]; then
        ninja "$@"
        return
    fi
    NINJA_STATUS='[%p %f/%t] ' ninja "$@" | awk '
        /^The Meson build system/ { held = "" ; hold = 1 }
        hold { held = held $0 "\n"; if (/^Found ninja/) { hold = 0; held = "" } next }
        /^ninja: (Entering|no work)/ || /^Cleaning\.\.\. / { next }
        /^\[ *[0-9]+% / {
            pct = $0; sub(/^\[ */, "", pct); tenth = int(pct / 10)
            if (tenth > shown) { shown = tenth; print "    " $0; fflush() }
            next
        }
        { print; fflush() }
        END { printf "%s", held }'
}

compiler() {
    if command -v ccache >/dev/null; then
        printf 'ccache %s' "$1"
    else
        printf '%s' "$1"
    fi
}

# configure DIR CC MESON-OPTION...: sets a build folder up, and again from scratch only when the
# options or the tools behind it are not the ones it was made with.
configure() {
    local dir=$1 cc=$2 stamp
    shift 2
    stamp=$(printf '%s\n' "$top" "$cc" "$@" "$("$cc" --version | head -n 1)" "meson $(meson --version)")
    if [ -f "$dir/build.ninja" ] && [ "$(cat "$dir/coop-setup" 2>/dev/null)" = "$stamp" ]; then
        return 0
    fi
    rm -rf -- "$dir"
    mkdir -p "$dir"
    if ! CC=$(compiler "$cc") meson setup "$dir" "$top" "$@" >"$dir/coop-setup.log" 2>&1; then
        cat "$dir/coop-setup.log" >&2
        return 1
    fi
    printf '%s\n' "$stamp" >"$dir/coop-setup"
}

# The hardened build that script/start runs; symbols stay, so that a crash can be read.
configure_release() {
    configure "$top/build" gcc --buildtype=debugoptimized -Dtests=false
}

# What sanitized builds have in common.  Most of a test run is compiling and starting programs: -O1 takes half of the
# one, a program that is not relocated when it starts a fifth of the other, and a report needs lines, not variables.
readonly sanitized=(--buildtype=debugoptimized -Doptimization=1 "-Db_sanitize=address,undefined" -Db_pie=false
    -Dc_link_args=-no-pie -Dfailpoints=true)
readonly sanitized_args='-g1 -fno-pie'

# Without -O2's knowledge of ranges gcc warns of numbers that cannot be; the builds with the release's flags look for them.
configure_dev() {
    configure "$top/build-dev" gcc "${sanitized[@]}" "-Dc_args=$sanitized_args -Wno-format-truncation"
}

configure_clang() {
    configure "$top/build-clang" clang "${sanitized[@]}" "-Dc_args=$sanitized_args" -Db_lundef=false
}

# Without sanitizers, which are too slow under emulation.
configure_vm() {
    configure "$top/build-vm" gcc --buildtype=debugoptimized -Dfailpoints=true
}

# As root, Coop's programs run under users of their own.
make_user() {
    getent passwd "$1" >/dev/null && return 0
    PATH=$PATH:/usr/sbin:/sbin useradd --system --user-group --no-create-home \
        --home-dir /nonexistent --shell /usr/sbin/nologin "$1"
    printf '    made the system user %s\n' "$1"
}

# lend_ids BUILD USER: templates are built with ids of their own, which /etc/subuid and /etc/subgid lend.
lend_ids() {
    local lend
    touch -a /etc/subuid /etc/subgid # usermod does not make them
    read -r -a lend < <("$1/coop" __sub-ids "$2") || return 0
    [ "${lend[0]}" = usermod ] || die "no ids for user $2: ${lend[*]}"
    PATH=$PATH:/usr/sbin:/sbin "${lend[@]}"
    printf '    lent the ids %s to %s\n' "${lend[2]}" "$2"
}
