# A CPU that goes off line and comes on line again: an engine has every hit, or says that it has not.
[ "$(cat /sys/devices/system/cpu/online)" = 0-1 ] || fail "two CPUs, not $(cat /sys/devices/system/cpu/online)"
cpu=/sys/devices/system/cpu/cpu1/online
[ -w $cpu ] || fail "this kernel lets no CPU go"
rounds=6 hits=2000
for engine in bpf-multi bpf-perf perf perf-pmu; do
  can $engine || continue
  for change in away short late; do
    echo 1 >$cpu
    [ $change != late ] || echo 0 >$cpu
    rm -f err
    usdtrec record -a --engine $engine -o trace -e 'sdt_hot:req@/targets/hot' >out 2>err &
    recorder=$!
    await err 'usdtrec record:'
    round=0
    while [ $round -lt $rounds ]; do
      case $change.$round in
        away.2 | short.2) echo 0 >$cpu ;;
        late.2 | away.4) echo 1 >$cpu ;;
      esac
      # Back before the recorder looks.
      [ $change.$round != short.2 ] || echo 1 >$cpu
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
    exact=$(usdtrec report -i trace --format json | grep -o '"lost_exact":[a-z]*')
    case $engine in
      bpf-*)
        [ $all = $((2 * rounds * hits)) ] || fail "$engine $change: $all of $((2 * rounds * hits))"
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
