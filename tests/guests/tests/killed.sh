# A recorder that is killed leaves nothing: no breakpoint, no semaphore, no event, and the program and its children live on.

start_target
tell 'fire 3'
for engine in bpf-multi bpf-perf perf-tracefs perf-pmu; do
  can $engine || continue
  # shellcheck disable=SC2154 # start_target sets it
  for whose in -a "-p $target"; do
    [ "$engine $whose" != "perf-pmu -p $target" ] || continue
    rm -f err
    # shellcheck disable=SC2086
    usdtrec record $whose --engine $engine -o trace -e 'sdt_ticker:*@/targets/ticker' 2>err &
    recorder=$!
    await err '^\[ usdtrec record'
    tell 'fire 20'
    tell 'fork 5'
    kill -9 $recorder
    wait $recorder || true
    until_true "$engine $whose: probes are left" is_untouched
    tell 'fire 5'
    tell 'thread 5'
    tell 'fork 5'
    tell 'exec 5'
  done
done
until_true 'processes or events of recorders are left' is_left_alone
kill "$target"
