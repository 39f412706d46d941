# Operands that the compiler chooses, with known values: every argument that is captured equals what the program printed, and programs
# capture all of them that are not in vector registers.

# Compares `fire NAME VALUE...` (testdata/targets/shapes.h) with the events, line by line. Floats begin with f; a mark before a value is for
# recorders that read less. Prints the number of values that were not captured.
compare() {
  usdtrec script -F event,args -i trace >events || fail "$(cat events)"
  # Without addresses and names, with `-` for what was not captured. A literal is printed with its address.
  sed 's/^ *sdt_shapes://; s/: ([0-9a-f]*)//; s/=0x[0-9a-f]* "/="/g; s/<[^>]*>/-/g; s/ arg[0-9]*=/ /g' events >found
  sed -n 's/^fire //p' out | sed 's/ [=?]/ /g; s/ ![^ ]*|/ /g; s/ ![^ ]*/ ?/g' >expected
  [ "$(wc -l <found)" = "$(wc -l <expected)" ] || fail "$1: $(wc -l <found) events, $(wc -l <expected) hits: $(cat err)"
  paste -d '|' expected found | awk -F '|' -v what="$1" '
    {
      wanted = split($1, expected, " "); got = split($2, found, " ")
      wrong = wanted != got || expected[1] != found[1]
      for (n = 2; n <= wanted && !wrong; n++) {
        if (found[n] == "-") { missing++; continue }
        # The address of a literal.
        if (found[n] ~ /^"/) continue
        if (expected[n] == "?") continue
        if (expected[n] ~ /^f/) {
          number = substr(expected[n], 2)
          difference = number - found[n]
          if (difference < 0) difference = -difference
          wrong = difference > 1e-6 * (number < 0 ? -number : number)
        } else wrong = expected[n] "" != found[n] ""
      }
      if (wrong) { print "FAILED: " what ": " $2 " is not " $1; failed = 1 }
    }
    END { print missing + 0; exit failed }' >result || fail "$(cat result)"
  tail -n 1 result
}

for program in /targets/operands*; do
  for engine in bpf-multi bpf-perf perf-tracefs; do
    can $engine || continue
    usdtrec record --strings=off --engine $engine -o trace -e "shapes:*@$program" -- "$program" >out 2>err || fail "$engine: $(cat err)"
    missing=$(compare "$engine $program") || fail "$missing"
    echo "$engine $program: $(wc -l <found) hits, $missing values not captured"
    # The kernel does not save vector registers; constants of the compiler have no names in the file.
    [ "${engine#bpf}" = "$engine" ] || ! grep -o '<[^>]*>' events | grep -v '<xmm[0-9]* not captured>\|<the file has no symbol \.' || fail "$engine $program: $(cat events)"
  done
done
