# Children live, whatever way they come from, and so does the program; 5-byte nops are sound or refused.
for engine in $(engines); do
  # Its events miss hits of threads that change the CPU, which is said.
  [ "$engine" != perf-pmu ] || continue
  usdtrec record --strings=off --engine "$engine" -o trace -e 'children:*@/targets/children' -- /targets/children 4 >out 2>err ||
    fail "$engine: $(cat err)"
  grep -qx 'died 0' out || fail "$engine: $(grep died out): $(cat err)"
  grep -qx 'wrong 0' out || fail "$engine: $(grep wrong out)"
  expected=$(grep -c '^fire' out)
  ! grep -q 'not attaching sdt_children:five' err || expected=$((expected - $(grep -c '^fire five ' out)))
  found=$(closing err events)
  case $engine in
    bpf-*) [ "$found" = "$expected" ] || fail "$engine: $found events, $expected hits" ;;
    # The kernel's inherited events miss some.
    *) [ "$found" -le "$expected" ] || fail "$engine: $found events, $expected hits" ;;
  esac
  cat err
done
# Of the kernels that make calls of 5-byte nops none may plant there, and all others must.
usdtrec record -o trace -e 'children:five@/targets/children' -- /targets/children 4 >out 2>err && planted=yes || planted=no
cat err
if newer 6 18 && ! newer 7 2; then
  [ "$planted" = no ] || fail 'planted on a 5-byte nop, of which this kernel makes a call'
  grep -q '5-byte nop' err || fail "$(cat err)"
else
  [ "$planted" = yes ] || fail 'refused a 5-byte nop'
fi
