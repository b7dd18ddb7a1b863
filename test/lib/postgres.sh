#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# postgres.sh start DIR [SETTING=VALUE...] | stop DIR [MODE] | restart DIR [MODE] [SETTING=VALUE...]
#             standby DIR PORT [SETTING=VALUE...] | promote DIR | run PROGRAM [ARGUMENT...]
# A PostgreSQL of a test's own: a new cluster in DIR on a free port of 127.0.0.1, with default durability. `start` prints
# its URL, without a database. As root it runs as the user postgres, because PostgreSQL refuses to run as root; DIR must
# then be in a folder that user can reach. MODE is fast (default), smart or immediate. `standby` starts one that follows
# the server on PORT and prints its URL; `run` runs a program as the same user.
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
    # Below the ports that the system gives to whoever asks for any: a restarted server must get its port again.
    python3 -c '
import random, socket
while True:
    port = random.randrange(20000, 32000)
    try:
        socket.socket().bind(("127.0.0.1", port))
    except OSError:
        continue
    print(port)
    break'
}

launch() { # launch DIR SETTING=VALUE...
    local dir=$1 options='' setting
    shift
    for setting in "$@"; do
        options+=" -c $setting"
    done
    as_user "$tools/pg_ctl" -s -w -t 30 -D "$dir/data" -l "$dir/log" -o "$options" start >/dev/null </dev/null
}

make_dir() {
    mkdir -p "$1"
    [ "$(id -u)" != 0 ] || chown postgres "$1"
}

start() {
    local dir=$1
    shift
    make_dir "$dir"
    as_user "$tools/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync >/dev/null
    begin "$dir" "$@"
}

standby() {
    local dir=$1 port=$2
    shift 2
    make_dir "$dir"
    as_user "$tools/pg_basebackup" -D "$dir/data" -R -c fast --no-sync -h 127.0.0.1 -p "$port" -U postgres
    begin "$dir" "$@"
}

begin() { # begin DIR SETTING=VALUE...: the first start of a cluster
    local dir=$1 port tries
    shift
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
if [ "$command" = run ]; then
    shift
    as_user "$@"
    exit
fi
dir=${2:?"postgres.sh: name a directory"}
shift 2
case "$command" in
start) start "$dir" "$@" ;;
stop) stop "$dir" "$@" ;;
standby) standby "$dir" "$@" ;;
promote) as_user "$tools/pg_ctl" -s -w -t 30 -D "$dir/data" promote >/dev/null </dev/null ;;
restart)
    mode=${1:-fast}
    [ $# -eq 0 ] || shift
    stop "$dir" "$mode"
    launch "$dir" "$@"
    ;;
*)
    echo "postgres.sh: start, stop, restart, standby, promote or run, not '$command'" >&2
    exit 2
    ;;
esac
