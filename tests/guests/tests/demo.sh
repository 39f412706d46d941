# The program's own probes: `demo` indexes, records and reports them.
usdtrec demo >out 2>err || fail "$(cat out err)"
! grep -q 'NOT RECORDED' out err || fail "$(cat out err)"
grep -q 'engine bpf' out err || fail "$(cat out err)"
for expected in 'sdt_usdtrec:request__start' 'sdt_usdtrec:request__done'; do
  grep -q $expected out || fail "$expected: $(cat out)"
done
