# Processes that begin are held until they have probes. They go on when the recorder is killed meanwhile, or stopped for long, which is said then.
begin() {
  rm -f in out err
  mkfifo in
  /targets/forks 4 <in >out &
  target=$!
  exec 9>in
  rm -f err
  usdtrec record -v --strings=off -o trace -p $target -e 'forks:*@/targets/forks' 2>err &
  recorder=$!
  await err '\[ usdtrec record:'
}
go() {
  echo go >&9
  exec 9>&-
}
begin
go
wait $target || fail "$(cat out)"
wait $recorder || fail "$(cat err)"
grep -qx 'died 0' out || fail "$(cat out)"
# The first hit was before the recording.
expected=$(($(grep -c ^fire out) - 1)) found=$(closing err events)
if [ "$found" != "$expected" ]; then
  usdtrec script -F args -i trace | sed -n 's/.*arg1=//p' | sort >seen
  sed -n 's/^fire //p' out | sort | diff - seen || true
  fail "$found events, $expected hits: $(cat err)"
fi
newer 6 18 || skip 'children cannot be held before Linux 6.18'
# Linux 7.1 allocates no task work on processors without cmpxchg16b, as guests have.
grep -q 'and their children alone' err || skip "children are not held: $(head -n 1 err)"
for pause in 0 1000 100000; do
  begin
  kill -STOP $recorder
  go
  usleep $pause
  kill -KILL $recorder
  wait $target || fail "$(cat out)"
  grep -qx 'died 0' out || fail "killed: $(cat out)"
done
begin
kill -STOP $recorder
go
wait $target || fail "$(cat out)"
grep -qx 'died 0' out || fail "stopped: $(cat out)"
kill -CONT $recorder
wait $recorder || fail "$(cat err)"
grep -q 'may have run without probes' err || fail "not said: $(cat err)"
