# A CPU that goes off line and comes on line again: it is recorded on from then on. Perf events miss the moments until they are opened there, which is
# said; programs miss nothing.
[ "$(cat /sys/devices/system/cpu/online)" = 0-1 ] || fail "two CPUs, not $(cat /sys/devices/system/cpu/online)"
cpu=/sys/devices/system/cpu/cpu1/online
[ -w $cpu ] || fail "this kernel lets no CPU go"
rounds=6 hits=2000

# Perf events that the recorder has open.
events_open() {
  local descriptor
  for descriptor in "/proc/$recorder/fd/"*; do
    readlink "$descriptor"
  done | grep -c perf_event
}

# Whether there are as many more as the engine opens on a CPU: for processes the owner of a ring and an event, for the site as many.
has_more_events() {
  local more=2
  [ "${engine#perf}" = "$engine" ] || more=4
  [ "$(events_open)" -ge $((before + more)) ]
}

# Lets the CPU come, and waits until it is recorded.
come() {
  before=$(events_open)
  echo 1 >$cpu
  until_true "no events on a CPU that has come" has_more_events
}

# All changes with each engine; in a short run one with each.
changes() {
  if is_deep; then
    echo away short late
    return
  fi
  case $1 in
    bpf-multi) echo away ;;
    bpf-perf | perf-pmu) echo short ;;
    perf) echo late ;;
  esac
}

for engine in bpf-multi bpf-perf perf perf-pmu; do
  can $engine || continue
  for change in $(changes $engine); do
    echo 1 >$cpu
    [ "$change" != late ] || echo 0 >$cpu
    rm -f err
    usdtrec record -a --engine $engine -o trace -e 'sdt_hot:req@/targets/hot' >out 2>err &
    recorder=$!
    await err 'usdtrec record:'
    round=0
    while [ $round -lt $rounds ]; do
      case $change.$round in
        away.2) echo 0 >$cpu ;;
        late.2 | away.4) come ;;
        # Back before the recorder looks.
        short.2)
          echo 0 >$cpu
          come
          ;;
      esac
      # On each CPU that there is.
      for mask in 1 2; do
        echo go | taskset $mask /targets/hot $hits 1 >/dev/null 2>&1 || echo go | /targets/hot $hits 1 >/dev/null
      done
      round=$((round + 1))
    done
    kill -INT $recorder
    wait $recorder || fail "$engine $change: $(cat err)"
    all=$(($(closing err events) + $(closing err lost)))
    echo "$engine $change: $all of $((2 * rounds * hits))"
    grep -q 'CPUs \[1\] went off line or came on line' err || fail "$engine $change does not say that a CPU changed: $(cat err)"
    # All of these were hit when there were events.
    [ $all = $((2 * rounds * hits)) ] || fail "$engine $change: $all of $((2 * rounds * hits))"
    exact=$(usdtrec report -i trace --format json | grep -o '"lost_exact":[a-z]*')
    case $engine in
      bpf-*)
        ! grep -q 'not exact' err || fail "$engine $change should be exact: $(cat err)"
        [ "$exact" = '"lost_exact":true' ] || fail "$engine $change: $exact"
        ;;
      *)
        grep -q 'not exact: CPUs went off line' err || fail "$engine $change is called exact: $(cat err)"
        [ "$exact" = '"lost_exact":false' ] || fail "$engine $change: $exact"
        ;;
    esac
  done
done
echo 1 >$cpu
