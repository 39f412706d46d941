# Each verb, on a recording of 1,000 hits with callers: the kernel and the traced program are all that it needs. packaging/tests runs this in roots of Debian
# and in one that has nothing else.
probe='learned:hit@/targets/learned'
hits=1000

# Runs a verb, which ends well: its output is in `out` and `err`.
verb() {
  usdtrec "$@" >out 2>err || fail "$*: status $?: $(tail -n 20 out err)"
}

# Whether the output has a line that a pattern matches.
prints() { grep -Eq -e "$1" out || fail "no $1 in $(head -n 40 out err)"; }

verb record -g -o trace -e "$probe" -- /targets/learned 3
[ "$(closing err events)" = $hits ] || fail "record: $(cat err)"
verb report -i trace
prints "learned:hit +$hits "
verb report -g -i trace
prints 'deeper'
verb script -G -i trace
[ "$(grep -c 'sdt_learned:hit: .*arg1=3' out)" = $hits ] || fail "script: $(head -n 3 out)"
verb script -F ip,sym -i trace
[ "$(grep -c ' deeper' out)" = $((3 * hits)) ] || fail "callers: $(head -n 12 out)"
verb diff trace trace
verb flame -i trace hits.svg
grep -q '<svg' hits.svg || fail 'flame drew nothing'
grep -q deeper hits.svg || fail 'flame drew no deeper'
verb archive -i trace --debug -o programs.tar.bz2
verb archive --unpack programs.tar.bz2
for format in html perfetto otlp otlp-proto folded perf pprof parquet; do
  # A build without Parquet says how to get one with it.
  if [ $format = parquet ] && ! usdtrec export --to parquet -i trace -o exported.parquet >out 2>err; then
    grep -q -e '--features parquet' err || fail "$format: $(cat err)"
    continue
  fi
  [ $format = parquet ] || verb export --to $format -i trace -o exported.$format
  # A recording without spans is none for OpenTelemetry.
  [ -d exported.$format ] || [ -s exported.$format ] || [ "${format#otlp}" != "$format" ] || fail "$format is empty"
done
[ "$(awk '/deeper/ { hits += $NF } END { print hits }' exported.folded)" = $hits ] || fail "folded: $(cat exported.folded)"
if [ -d exported.parquet ]; then
  verb sql --engine duckdb exported.parquet
  prints 'CREATE OR REPLACE VIEW "events"'
fi

verb stat -e "$probe" -- /targets/learned 3
prints "(^|[^0-9])1,?000[^0-9]"
verb trace -e "$probe" -- /targets/learned 3
[ "$(grep -c 'sdt_learned:hit: arg1=3' out)" = $hits ] || fail "trace: $(head -n 3 out)"
verb top -d 500ms -e "$probe" -- /targets/learned 3
prints 'learned:hit'

verb list --file /targets/learned
prints 'sdt_learned:hit'
verb buildid-cache --add /targets/learned
verb list 'learned:*'
prints 'sdt_learned:hit'
verb list -a
verb schema show postgresql:query__start
prints query
printf '%s\n' '{"type": "printf", "data": "1000\t0\tusdt:/bin/app:app:hit\t7\t8\tapp\tsize=5\n"}' >hits.json
verb import hits.json -o imported
verb script -i imported
prints 'size=5'
# What other tests' recorders left is none of ours.
usdtrec doctor >out 2>err || [ $? = 1 ] || fail "doctor: $(cat out err)"
verb completions bash
prints '_usdtrec_all'
verb man pages
[ -s pages/usdtrec-record.1 ] || fail 'man wrote no page of record'
verb --version
