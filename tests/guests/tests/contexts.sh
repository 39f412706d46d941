# OpenTelemetry's thread context: the ids that the program had at each hit, in all of its threads and in a child, or the reason why there are none.

mkfifo in out
/targets/thread_context <in >out &
target=$!
exec 8>in 9<out
: >said
set -- record -p $target --thread-context -o trace -e 'sdt_context:hit@/targets/thread_context'
# The thread has memory for the variable then.
tell clear
usdtrec "$@" 2>err &
recorder=$!
await err '^\[ usdtrec record'
for command in 'hit 1' 'set 1' 'hit 2' clear 'hit 1' invalid 'hit 1' unreadable 'hit 1' zero 'hit 1' 'thread 4' 'set 5' 'fork 2' 'hit 1'; do
  tell "$command"
done
kill -TERM $recorder
wait $recorder || fail "$(cat err)"
kill $target
sed -n 's/^hit //p' said | sed 's/ none$/ <no request>/; s/ invalid$/ <invalid thread context>/; s/ unreadable$/ <unreadable thread context>/
  s/ \(<.*>\)$/ \1 \1/' | sort -n >expected
usdtrec script -F args,trace_id,span_id -i trace | sed 's/^.*arg1=//' | sort -n >found
cmp -s expected found || fail "$(cat err) found: $(cat found) expected: $(cat expected)"
[ "$(grep -c '[0-9a-f]\{32\} [0-9a-f]\{16\}$' expected)" -ge 6 ] || fail "too few ids: $(cat expected)"
