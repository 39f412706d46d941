# Every engine records every hit, or says that it lost it: two threads, one probe.
hits=40000
for engine in bpf-multi bpf-perf perf perf-pmu; do
  status=0
  echo go | usdtrec record -a --engine $engine -o trace -e 'sdt_hot:req@/targets/hot' -- /targets/hot $((hits / 2)) 2 \
    >out 2>err || status=$?
  if ! can $engine; then
    [ $status != 0 ] || fail "$engine on $(uname -r) should be refused"
    continue
  fi
  cat err
  [ $status = 0 ] || fail "$engine ends with $status"
  all=$(($(closing err events) + $(closing err lost)))
  if grep -q 'not exact' err; then
    [ $engine = perf-pmu ] || fail "$engine should be exact"
  elif [ $all != $hits ]; then
    fail "$engine: $all of $hits"
  fi
done
