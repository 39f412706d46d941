# Programs that record callers load on this kernel, have the room that stacks need, and leave texts and filters as they are.
engines=
for engine in bpf-multi bpf-perf; do
  ! can $engine || engines="$engines $engine"
done
for engine in $engines; do
  usdtrec record --engine $engine -g -o trace -e 'learned:*@/targets/learned' -- /targets/learned 3 90 90 90 90 2>err || fail "$engine: $(cat err)"
  usdtrec script -F ip,sym -i trace >found
  # At first there is room for 2 KiB, which is not enough for 90 frames.
  grep -q 'cut: the next frame is beyond the stack' found || fail "$engine: nothing is cut: $(tail -n 100 found)"
  awk 'BEGIN { RS = "" } { last = $0 } END { print last }' found >last
  [ "$(grep -c ' deeper' last)" = 90 ] || fail "$engine: $(cat last)"
  ! grep -q 'cut: the next' last || fail "$engine: $(cat last)"
  echo "$(cut -d ' ' -f 1 /proc/uptime) $engine auto: as expected"
  for graph in auto fp dwarf,32K; do
    usdtrec record --engine $engine --call-graph $graph --strings all -o trace -e 'strings:*@/targets/strings' --filter 'arg1 > 6' -- /targets/strings \
      >out 2>err || fail "$engine $graph: $(cat err)"
    usdtrec script -G -F event,args -i trace >found
    for expected in 'plain:.*"/index.html"' 'empty:.*""' 'exact16:.*"eeeeeeeeeeeeeeee"'; do
      grep -q "sdt_strings:$expected" found || fail "$engine $graph: no $expected in $(cat found)"
    done
    usdtrec script -F event,ip,sym -i trace >found
    grep -q '^[[:space:]]' found || fail "$engine $graph: $(cat found)"
    echo "$(cut -d ' ' -f 1 /proc/uptime) $engine $graph: as expected"
  done
  # One engine is enough: the programs are the same.
  break
done
