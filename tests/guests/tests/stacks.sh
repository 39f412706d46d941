# Programs that record callers load on this kernel, have the room that stacks need, and leave strings and filters as they are.
engine=bpf-multi
can $engine || engine=bpf-perf

record() {
  usdtrec record --engine $engine "$@" 2>err || fail "$*: $(cat err)"
}

for graph in auto fp; do
  record --call-graph $graph --stack-rate 5 -o trace -e 'learned:*@/targets/learned' -- /targets/learned 3
  grep -q 'events have no stack' err || fail "$graph: $(cat err)"
  echo "$(cut -d ' ' -f 1 /proc/uptime) $graph with a limited rate: as expected"
done

for graph in auto fp dwarf,32K; do
  probes='strings:*@/targets/strings'
  # Before Linux 5.15 each site has a program, and each that follows frame pointers takes the verifier seconds.
  [ $graph != fp ] || newer 5 15 || is_deep ||
    probes='strings:plain@/targets/strings,strings:empty@/targets/strings,strings:exact16@/targets/strings'
  record -v --call-graph $graph --strings all -o trace -e "$probes" --filter 'arg1 > 6' -- /targets/strings >out
  # The verifier took the programs at once.
  ! grep 'the verifier says' err || fail "$graph"
  usdtrec script -G -F event,args -i trace >found
  for expected in 'plain:.*"/index.html"' 'empty:.*""' 'exact16:.*"eeeeeeeeeeeeeeee"'; do
    grep -q "sdt_strings:$expected" found || fail "$graph: no $expected in $(cat found)"
  done
  usdtrec script -F event,ip,sym -i trace >found
  grep -q '^[[:space:]]' found || fail "$graph: $(cat found)"
  echo "$(cut -d ' ' -f 1 /proc/uptime) $graph: as expected"
done

# A function that calls nothing has no frame on arm64.
for graph in auto fp; do
  record --call-graph $graph -o trace -e 'leaf:hit@/targets/leaf' -- /targets/leaf
  usdtrec script -F ip,sym -i trace >found
  awk 'BEGIN { RS = "" } { print $2, $4, $6 }' found >callers
  [ "$(cat callers)" = "$(yes 'called caller main' | head -n 3)" ] || fail "$graph: $(cat found)"
  echo "$(cut -d ' ' -f 1 /proc/uptime) $graph, functions without a frame: as expected"
done

# 90 frames do not fit at first. Each of them takes a second or more: a slow recorder needs several. Only the last moments are printed, which takes minutes otherwise.
set -- 90
while :; do
  record -g -o trace -e 'learned:*@/targets/learned' -- /targets/learned 3 "$@"
  grep -q 'are cut, because too little was copied' err || fail "nothing is cut: $(cat err)"
  usdtrec script -F ip,sym --time 99%-100% -i trace >found
  awk 'BEGIN { RS = "" } { last = $0 } END { print last }' found >last
  grep -q 'cut: the next' last || break
  [ $# -lt 27 ] || break
  set -- "$@" "$@" "$@"
done
[ "$(grep -c ' deeper' last)" = 90 ] || fail "$(cat last)"
echo "$(cut -d ' ' -f 1 /proc/uptime) room for 90 frames: as expected"
