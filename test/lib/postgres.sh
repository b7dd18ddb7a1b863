#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# postgres.sh start DIR [SETTING=VALUE...] | stop DIR [MODE] | restart DIR [MODE] [SETTING=VALUE...]
# A PostgreSQL of a test's own: a new cluster in DIR on a free port of 127.0.0.1, with default durability. `start` prints
# its URL, without a database. As root it runs as the user postgres, because PostgreSQL refuses to run as root; DIR must
# then be in a folder that user can reach. MODE is fast (default), smart or immediate.
set -euo pipefail

tools=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
tools=${tools:-$(dirname "$(command -v pg_ctl || echo /nonexistent/pg_ctl)")}
if [ ! -x "$tools/initdb" ]; then
    echo "postgres.sh: PostgreSQL is not installed (Debian: apt-get install postgresql)" >&2
    exit 1
fi

as_user() {
    if [ "$(id -u)" = 0 ]; then
        (cd / && runuser -u postgres -- "$@")
    else
        "$@"
    fi
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

launch() { # launch DIR SETTING=VALUE...
    local dir=$1 options='' setting
    shift
    for setting in "$@"; do
        options+=" -c $setting"
    done
    as_user "$tools/pg_ctl" -s -w -t 30 -D "$dir/data" -l "$dir/log" -o "$options" start >/dev/null </dev/null
}

start() {
    local dir=$1 port tries
    shift
    mkdir -p "$dir"
    [ "$(id -u)" != 0 ] || chown postgres "$dir"
    as_user "$tools/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync >/dev/null
    # Another process may take the port between choosing it and using it.
    for tries in 1 2 3 4 5; do
        port=$(free_port)
        as_user tee -a "$dir/data/postgresql.conf" >/dev/null <<SETTINGS
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = ''
SETTINGS
        if launch "$dir" "$@"; then
            echo "postgres://postgres@127.0.0.1:$port"
            return
        fi
    done
    echo "postgres.sh: the server does not start; see $dir/log" >&2
    exit 1
}

stop() {
    as_user "$tools/pg_ctl" -s -w -t 30 -D "$1/data" -m "${2:-fast}" stop >/dev/null </dev/null
}

command=${1:-}
dir=${2:?"postgres.sh: name a directory"}
shift 2
case "$command" in
start) start "$dir" "$@" ;;
stop) stop "$dir" "$@" ;;
restart)
    mode=${1:-fast}
    [ $# -eq 0 ] || shift
    stop "$dir" "$mode"
    launch "$dir" "$@"
    ;;
*)
    echo "postgres.sh: start, stop or restart, not '$command'" >&2
    exit 2
    ;;
esac
