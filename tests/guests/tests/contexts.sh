# OpenTelemetry's thread context: the ids that the program had at each hit, in all of its threads and in a child, or the reason why there are none.
# The variable is the program's own, or that of a library that it loads.

# Compares what is recorded of a program, after so many commands, with what it says.
contexts() {
  local program="$1" command
  shift
  rm -f in out err
  mkfifo in out
  "$program" <in >out &
  target=$!
  exec 8>in 9<out
  : >said
  # The thread has memory for the variable then.
  for command in "$@" clear; do
    tell "$command"
  done
  usdtrec record -p $target --thread-context -o trace -e "sdt_context:hit@$program" 2>err &
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
  cmp -s expected found || fail "$program $*: $(cat err) found: $(cat found) expected: $(cat expected)"
  [ "$(grep -c '[0-9a-f]\{32\} [0-9a-f]\{16\}$' expected)" -ge 6 ] || fail "too few ids: $(cat expected)"
}

contexts /targets/thread_context
# At a fixed distance from the thread pointer, and in a block of its own.
contexts /targets/context_loaded 'load /targets/libcontext.so'
contexts /targets/context_loaded 'load /targets/libcontext-large.so'
