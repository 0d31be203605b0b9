#!/bin/sh
# The command `till`, here and where Till is a project's dependency. It runs on the Node that came along with Till: the one
# that the project runs on may be too old to read TypeScript. What it tells Node is explained in bench/README.md: it pays
# for work of minutes, and makes the start of a short command three times as long.
self=$(readlink -f "$0")
# A core file would hold the latest requests, with their keys and cards (SECURITY.md).
ulimit -S -c 0
src=${self%/cli/*}
for node in "$src"/../node_modules/node-*/bin/node "$src"/../../node-*/bin/node node; do
  [ "$node" = node ] || [ -x "$node" ] || continue
  case " $* " in *" serve "* | *" verify "* | *" scrub "* | *" rebuild "* | *" backup "* | *" restore "*)
    export UV_THREADPOOL_SIZE=32
    exec "$node" --min-semi-space-size=16 --max-semi-space-size=24 --no-allocation-site-pretenuring --use-largepages=silent \
      "$src/main.ts" "$@" ;;
  esac
  exec "$node" "$src/main.ts" "$@"
done
