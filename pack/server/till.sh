#!/bin/sh
# The command `till` of the installed package, on the Node of the machine. `exec`, so that signals reach Till and nothing
# in between. What it tells Node is explained in src/cli/till.sh.
self=$(readlink -f "$0")
till=${self%/*}/till.cjs
case " $* " in *" serve "* | *" verify "* | *" scrub "* | *" rebuild "* | *" backup "* | *" restore "*)
  export UV_THREADPOOL_SIZE=32
  exec node --min-semi-space-size=16 --max-semi-space-size=24 --no-allocation-site-pretenuring --use-largepages=silent \
    "$till" "$@" ;;
esac
exec node "$till" "$@"
