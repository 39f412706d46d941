# Traces of other machines are printed here as there, and one of this machine there as here: it is sent through the console.
for trace in /guest/traces/*.data; do
  for kind in script report; do
    # The path is printed, too.
    (cd /guest/traces && usdtrec $kind -i "$(basename "$trace")") >printed || fail "$kind of $trace"
    cmp printed "${trace%.data}.$kind" || fail "$kind of $trace: $(diff printed "${trace%.data}.$kind" | head -n 10)"
  done
done
usdtrec record -o sent.data -e 'matrix:*@/targets/matrix' -- /targets/matrix 8 >out 2>err || fail "$(cat err)"
usdtrec script -i sent.data >sent.script
usdtrec report -i sent.data >sent.report
[ "$(wc -l <sent.script)" = 40 ] || fail "$(cat sent.script)"
for kind in data script report; do
  gzip -c sent.$kind | base64 | sed "s/^/GUEST SENT $kind /" >/dev/console
done
