# No first hit of files that appear is missed, of programs that are executed and of libraries that are loaded: threads are held in the kernel where it
# can do that, else processes are stopped, which is said. A stopped process goes on when the recorder is killed.

# What is recorded: a new program, and a new library, with two hits each.
cat >uses <<'END'
cp /targets/early program.$1
./program.$1
cp /targets/libearly.so library.$1
printf 'load ./library.'$1'\nhit 1\n' | /targets/late
END
unheld='the thread was not held until'
expected=4
# A thread is held for two seconds at most, in which an emulated machine may not be done.
attempts=0 found=0
until [ "$found" = $expected ]; do
  attempts=$((attempts + 1))
  [ $attempts -lt 6 ] || fail "not in time: $(cat err)"
  usdtrec record --no-gap -o trace -e 'early:*' -- sh uses $attempts >out 2>err || fail "$(cat err)"
  found=$(closing err events)
  # Programs on functions of the kernel, arm64 has from Linux 6.4 on.
  if grep -q 'libraries that are loaded are not waited for' err; then
    [ "$(uname -m)" = aarch64 ] || fail "not on arm64: $(cat err)"
    ! newer 6 4 || fail "not before Linux 6.4: $(cat err)"
    expected=2
  fi
  [ "$found" = $expected ] || grep -q "$unheld" err || fail "$found events of $expected: $(cat err)"
done
if [ $expected = 2 ]; then
  grep -q 'library.*its hits are not recorded' err || fail "not said: $(cat err)"
  exit 0
fi
if grep -q 'held in the kernel until' err; then
  newer 6 18 || fail "not before Linux 6.18: $(cat err)"
  exit 0
fi
grep -q 'that map new files are stopped (SIGSTOP)' err || fail "not said: $(cat err)"
# Whether a process is stopped.
is_stopped() { grep -q ') T ' "/proc/$1/stat"; }
mkfifo in out.late
/targets/late <in >out.late &
loader=$!
exec 6>in 7<out.late
rm -f err
usdtrec record --no-gap -p $loader -o trace -e 'early:*' 2>err &
recorder=$!
await err '^\[ usdtrec record'
cp /targets/libearly.so killed.so
kill -STOP $recorder
echo 'load ./killed.so' >&6
until_true 'the process is not stopped' is_stopped $loader
kill -KILL $recorder
wait $recorder || true
read -r hits <&7
[ "$hits" = 0 ] || fail "$hits hits"
exec 6>&- 7<&-
wait $loader || fail "the loader ends with $?"
until_true 'processes or events of recorders are left' is_left_alone
