# Lockdown (`confidentiality`) disables tracefs and reads of kernel memory: recording works as far as these are not needed, and what does not
# work is said with its reason. Lockdown cannot be lifted: this is the last test of a guest.
mount -t securityfs securityfs /sys/kernel/security 2>/dev/null || true
lockdown=/sys/kernel/security/lockdown
[ -w $lockdown ] || skip 'this kernel has no lockdown'
echo confidentiality >$lockdown
grep -q '\[confidentiality\]' $lockdown || fail "lockdown is $(cat $lockdown)"

hot=sdt_hot:req@/targets/hot

# What a recording with options ended with: all hits, or what was said.
judge() {
  local engine="$1"
  if [ "$status" = 0 ]; then
    [ "$(closing err events) $(closing err lost)" = '100 0' ] || fail "$what: $(cat err)"
    echo "$what: every hit"
    works="$works ${what%% *}"
    return
  fi
  case $engine in
    bpf-multi) ! can bpf-multi && grep -q 'need Linux 6.6' err ;;
    perf) grep -q 'lockdown mode confidentiality disables tracefs' err ;;
    perf-pmu) grep -q 'cannot follow threads and children' err ;;
    *) false ;;
  esac || fail "$what: $(cat err)"
  echo "$what: refused"
}

# The program is kept on one CPU: events of the uprobe PMU miss hits of threads that change it.
for engine in auto bpf-multi bpf-perf perf perf-pmu; do
  works=
  what="-a $engine" status=0
  echo go | usdtrec record -a --engine $engine -o trace -e $hot -- taskset 1 /targets/hot 100 1 >out 2>err || status=$?
  [ $status = 0 ] || [ $engine = bpf-multi ] || fail "$what: $(cat err)"
  judge $engine
  what="-- $engine" status=0
  echo go | usdtrec record --engine $engine -o trace -e $hot -- taskset 1 /targets/hot 100 1 >out 2>err || status=$?
  judge $engine
  what="-p $engine" status=0
  rm -f in err
  mkfifo in
  taskset 1 /targets/hot 100 1 <in >out &
  pid=$!
  exec 7>in
  usdtrec record -p $pid --engine $engine -o trace -e $hot 2>err &
  recorder=$!
  until_true 'it neither began nor ended' sh -c "grep -qs 'usdtrec record:' err || ! kill -0 $recorder 2>/dev/null"
  echo go >&7
  exec 7>&-
  wait $pid || true
  wait $recorder || status=$?
  judge $engine
  case $works in
    ' -a -- -p') works=ok ;;
    ' -a') works=-a ;;
    '') works=refused ;;
  esac
  # With perf it is the PMU's events then.
  case $engine in
    auto) ;;
    perf) cell perf-tracefs lockdown refused ;;
    *) cell $engine lockdown "$works" ;;
  esac
done
