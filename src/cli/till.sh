#!/bin/sh
# The command `till`, here and where Till is a project's dependency. It runs on the Node that came along with Till: the one
# that the project runs on may be too old to read TypeScript. What it tells Node is explained in bench/README.md.
# `exec`, so that signals reach Till and nothing in between.
src=$(dirname "$(dirname "$(readlink -f "$0")")")
for node in "$src"/../node_modules/node-*/bin/node "$src"/../../node-*/bin/node node; do
  [ "$node" = node ] || [ -x "$node" ] || continue
  export UV_THREADPOOL_SIZE=32
  exec "$node" --min-semi-space-size=16 --max-semi-space-size=96 --no-allocation-site-pretenuring --use-largepages=silent \
    "$src/main.ts" "$@"
done
