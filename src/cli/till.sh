#!/bin/sh
# The command `till` where Till is a project's dependency. It runs on the Node that came along with Till: the one that the
# project runs on may be too old to read TypeScript. `exec`, so that signals reach Till and nothing in between.
src=$(dirname "$(dirname "$(readlink -f "$0")")")
for node in "$src"/../node_modules/node-*/bin/node node; do
  [ "$node" = node ] || [ -x "$node" ] || continue
  exec "$node" "$src/main.ts" "$@"
done
