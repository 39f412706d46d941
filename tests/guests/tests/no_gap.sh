# No first hit of files that appear is missed, of programs that are executed and of libraries that are loaded: threads are held in the kernel. Where it
# cannot do that, this is said, and so is what is missed.

# What is recorded: a new program, and a new library, with two hits each.
cat >uses <<'END'
cp /targets/early program.$1
./program.$1
cp /targets/libearly.so library.$1
printf 'load ./library.'$1'\nhit 1\n' | /targets/late
END
unheld='the thread was not held until'
# A thread is held for two seconds at most, in which an emulated machine may not be done, for minutes if others run beside it.
attempts=0 found=0
until [ "$found" = 4 ]; do
  attempts=$((attempts + 1))
  [ $attempts -lt 40 ] || fail "not in time: $(cat err)"
  usdtrec record --no-gap -o trace -e 'early:*' -- sh uses $attempts >out 2>err || fail "$(cat err)"
  found=$(closing err events)
  if grep -q 'cannot be held until the probes are attached' err; then
    grep -qE 'are not recorded|before (its|their) file was read' err || fail "not said: $(cat err)"
    ! usdtrec record --no-gap=held -o trace -e 'early:*' -- sh uses required >out 2>err || fail "not refused: $(cat err)"
    exit 0
  fi
  [ "$found" = 4 ] || grep -q "$unheld" err || fail "$found events of 4: $(cat err)"
done
newer 6 18 || fail "not before Linux 6.18: $(cat err)"
