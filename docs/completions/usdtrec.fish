# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_usdtrec_global_optspecs
    string join \n buildid-dir= h/help V/version
end

function __fish_usdtrec_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_usdtrec_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_usdtrec_using_subcommand
    set -l cmd (__fish_usdtrec_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c usdtrec -n "__fish_usdtrec_needs_command" -l buildid-dir -d 'The build-id cache\'s directory [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_needs_command" -s h -l help -d 'Print help'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -s V -l version -d 'Print version'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "buildid-cache" -d 'Index binaries\' probes, in the same cache as perf buildid-cache'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "list" -d 'List probes of the cache, a file, a process or a directory'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "record" -d 'Record probe hits into a trace file'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "trace" -d 'Print probe hits as they come, one line an event'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "top" -d 'Show again and again which probes are hit how often'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "report" -d 'Sum up a trace: counts, rates, arguments, losses'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "diff" -d 'Compare two traces: what differs by more than varies within each of them'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "script" -d 'Print a trace, one line an event'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "schema" -d 'Show, check, import and export what probes\' arguments are called and mean'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "demo" -d 'Show the whole way on usdtrec\'s own probes'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "doctor" -d 'Show what recorders left that were killed together with their guards, and clear it away'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand buildid-cache" -s a -l add -d 'Add files (comma list; a bare name is looked up in PATH)' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand buildid-cache" -s r -l remove -d 'Remove the entries of these files, by the build-id that the files have now' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand buildid-cache" -s p -l purge -d 'Remove all entries that were ever added for these paths' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand buildid-cache" -s u -l update -d 'Replace what is cached for these files' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand buildid-cache" -s M -l missing -d 'List the files with hits in a trace that are not in the cache' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand buildid-cache" -l scan -d 'Add every file below this directory that carries probes' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand buildid-cache" -l buildid-dir -d 'The build-id cache\'s directory [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand buildid-cache" -s P -l purge-all -d 'Empty the cache'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand buildid-cache" -s l -l list -d 'List what is in the cache'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand buildid-cache" -s v -l verbose -d 'Say more'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand buildid-cache" -s h -l help -d 'Print help'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand list" -l file -d 'List the probes of this ELF file' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand list" -s p -l pid -d 'List the probes of everything that this process maps' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand list" -l dir -d 'List the probes of every file below this directory' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand list" -l schema -d 'With -v, take names and types of arguments from these files (.toml, .d, .stp) first' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand list" -l format -d 'Output format' -r -f -a "text\t'For people'
json\t'One JSON object a line'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand list" -l buildid-dir -d 'The build-id cache\'s directory [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand list" -s v -l verbose -d 'Explain sites, semaphores and operands, with names and types of arguments where they are known'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s e -l event -d 'Probes to record: [sdt_]PROVIDER:NAME[(ARGUMENTS)][@PATH], with globs; comma list (a comma in PATH is \\,), may be repeated. ARGUMENTS are recorded instead of the note\'s: port=arg4, url=str(*arg1), fd=*(s32*)(arg1+8), key=str(arg2, len), len=(u8)arg3, head=bytes(arg2, 16) (bpf engines; perf-tracefs without bytes and lengths in arguments)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l filter -d 'Record only those hits of the event before it for which this is true: comparisons of arguments (arg1, or their names), pid, tid, cpu, comm with constants, && || !; text == "GET", text ~ "GET*" (texts need the bpf engines)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s p -l pid -d 'Record in these processes, with their later threads and children' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s t -l tid -d 'Record in these threads only' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s C -l cpu -d 'Record hits on these CPUs only (0-3,6)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s m -l mmap-pages -d 'Size of each CPU\'s ring: pages, or bytes with B, K, M or G' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l duration -d 'End after this time (10, 10s, 500ms, 2m)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l engine -d 'How to capture' -r -f -a "auto\t'The first of these that the kernel allows'
bpf\t'Generated BPF programs: any operand, strings, half of perf\'s cost'
bpf-multi\t'BPF programs, attached to all sites at once (Linux 6.6)'
bpf-perf\t'BPF programs, attached site by site (Linux 5.15)'
perf\t'uprobe perf events, with user registers and stack'
perf-tracefs\t'perf events on tracefs events'
perf-pmu\t'perf events of the uprobe PMU; they cannot follow threads and children'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l strings -d 'Text to read at a hit (bpf engines)' -r -f -a "auto\t'What unsigned arguments of a pointer\'s size point to, where it looks like text'
all\t'The same, taking each of them for a text: an empty one and one that cannot be read show, too'
off\t'None'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l nonresident -d 'Memory that is not resident, in known texts, operands and filters (bpf engines; what only may be a text is never brought in)' -r -f -a "auto\t'Bring in anonymous memory and pages of local files, where nobody can make that wait: of processes with one thread, of those with CAP_SYS_ADMIN and of your own'
never\t'Leave it: what it holds is missing'
always\t'Bring in any, and wait: memory served by a process (userfaultfd, FUSE) or a network can hold up the recording and every other tracer of the machine, for as long as it likes'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l strlen -d 'Most bytes to keep of a text, up to 4096' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l stack-size -d 'Most bytes of user stack to copy at a hit for operands whose depth cannot be told beforehand' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l schema -d 'Take names and types of arguments from these files (.toml, .d, .stp) first' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s o -l output -d 'Trace file; the one before it is kept as FILE.old. - for a pipe on standard output' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s z -l compression-level -d 'Compression level of zstd, 1 to 22, 0 for none [default: 3]' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l max-size -d 'End when the trace has this size (B, K, M or G)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l switch-output -d 'Write numbered files FILE.1, FILE.2, …, each complete in itself: a new one on SIGUSR2 (signal), at a size (10M) or after a time (30s, 5m)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l switch-max-files -d 'Keep only the newest N of the numbered files' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l call-graph -d 'Record call chains, in this way' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s c -l count -d 'Period' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s F -l freq -d 'Frequency' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l buildid-dir -d 'The build-id cache\'s directory [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s a -l all-cpus -d 'Record in all processes; so it is without this option, too, unless there is -p, -t or CMD'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s i -l no-inherit -d 'Record the processes of -p, or the command, without the children that they start; other processes of the same program then cost nothing (bpf engine, Linux 6.11)'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l lossless -d 'Lose nothing: while the ring is half full, stop the processes that hit (SIGSTOP, which their parents see), and let them go on when it is drained (bpf engines)'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s f -l force -d 'Plant probes although the checks of the file refuse; record lists that read memory with perf-tracefs, although traced programs could make the kernel warn'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s q -l quiet -d 'Say nothing but errors'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s v -l verbose -d 'Say what is planted and how'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s R -l raw-samples -d 'Record arguments as raw data too, so that stock perf shows them (always so with the bpf engine; with the perf engine it costs the recorder half as much again)'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s T -l timestamp -d 'Record times (always so; accepted for perf\'s sake)'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s g -d 'Record call chains'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s e -l event -d 'Probes to record: [sdt_]PROVIDER:NAME[(ARGUMENTS)][@PATH], with globs; comma list (a comma in PATH is \\,), may be repeated. ARGUMENTS are recorded instead of the note\'s: port=arg4, url=str(*arg1), fd=*(s32*)(arg1+8), key=str(arg2, len), len=(u8)arg3, head=bytes(arg2, 16) (bpf engines; perf-tracefs without bytes and lengths in arguments)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l filter -d 'Record only those hits of the event before it for which this is true: comparisons of arguments (arg1, or their names), pid, tid, cpu, comm with constants, && || !; text == "GET", text ~ "GET*" (texts need the bpf engines)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s p -l pid -d 'Record in these processes, with their later threads and children' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s t -l tid -d 'Record in these threads only' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s C -l cpu -d 'Record hits on these CPUs only (0-3,6)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s m -l mmap-pages -d 'Size of each CPU\'s ring: pages, or bytes with B, K, M or G' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l duration -d 'End after this time (10, 10s, 500ms, 2m)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l engine -d 'How to capture' -r -f -a "auto\t'The first of these that the kernel allows'
bpf\t'Generated BPF programs: any operand, strings, half of perf\'s cost'
bpf-multi\t'BPF programs, attached to all sites at once (Linux 6.6)'
bpf-perf\t'BPF programs, attached site by site (Linux 5.15)'
perf\t'uprobe perf events, with user registers and stack'
perf-tracefs\t'perf events on tracefs events'
perf-pmu\t'perf events of the uprobe PMU; they cannot follow threads and children'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l strings -d 'Text to read at a hit (bpf engines)' -r -f -a "auto\t'What unsigned arguments of a pointer\'s size point to, where it looks like text'
all\t'The same, taking each of them for a text: an empty one and one that cannot be read show, too'
off\t'None'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l nonresident -d 'Memory that is not resident, in known texts, operands and filters (bpf engines; what only may be a text is never brought in)' -r -f -a "auto\t'Bring in anonymous memory and pages of local files, where nobody can make that wait: of processes with one thread, of those with CAP_SYS_ADMIN and of your own'
never\t'Leave it: what it holds is missing'
always\t'Bring in any, and wait: memory served by a process (userfaultfd, FUSE) or a network can hold up the recording and every other tracer of the machine, for as long as it likes'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l strlen -d 'Most bytes to keep of a text, up to 4096' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l stack-size -d 'Most bytes of user stack to copy at a hit for operands whose depth cannot be told beforehand' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l schema -d 'Take names and types of arguments from these files (.toml, .d, .stp) first' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s F -l fields -d 'Fields: comm,tid,pid,cpu,tod,time,period,event,args,ip,sym,symoff,dso,span (which span an event ends, and how long it lasted), and args.NAME or args.arg1 for one argument; with + or - in front, added or removed' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l format -d 'Output format: text, json, csv, csv-raw (texts that spreadsheets take for formulas as they are), or a template for each line (\'{comm} {url:?} {time:.3} {pid:>6}\'; see below)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s o -l output -d 'Print into this file; the one before it is kept as FILE.old [default: standard output, and that of CMD becomes standard error]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l buildid-dir -d 'The build-id cache\'s directory [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s a -l all-cpus -d 'Record in all processes; so it is without this option, too, unless there is -p, -t or CMD'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s i -l no-inherit -d 'Record the processes of -p, or the command, without the children that they start; other processes of the same program then cost nothing (bpf engine, Linux 6.11)'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l lossless -d 'Lose nothing: while the ring is half full, stop the processes that hit (SIGSTOP, which their parents see), and let them go on when it is drained (bpf engines)'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s f -l force -d 'Plant probes although the checks of the file refuse; record lists that read memory with perf-tracefs, although traced programs could make the kernel warn'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s q -l quiet -d 'Say nothing but errors'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s v -l verbose -d 'Say what is planted and how'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l reltime -d 'Times since the first event shown; in JSON and CSV as reltime_ns'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l deltatime -d 'Times since the line before; in JSON and CSV as deltatime_ns'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l tod -d 'Show the time of day, too (as -F +tod): of this machine\'s time zone; in JSON and CSV UTC'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l ns -d 'Times with nanoseconds'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l human -d 'Show numbers whose unit is known as times (1.23ms) and amounts of memory (1.5KiB); text only'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s e -l event -d 'Probes to record: [sdt_]PROVIDER:NAME[(ARGUMENTS)][@PATH], with globs; comma list (a comma in PATH is \\,), may be repeated. ARGUMENTS are recorded instead of the note\'s: port=arg4, url=str(*arg1), fd=*(s32*)(arg1+8), key=str(arg2, len), len=(u8)arg3, head=bytes(arg2, 16) (bpf engines; perf-tracefs without bytes and lengths in arguments)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -l filter -d 'Record only those hits of the event before it for which this is true: comparisons of arguments (arg1, or their names), pid, tid, cpu, comm with constants, && || !; text == "GET", text ~ "GET*" (texts need the bpf engines)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s p -l pid -d 'Record in these processes, with their later threads and children' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s t -l tid -d 'Record in these threads only' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s C -l cpu -d 'Record hits on these CPUs only (0-3,6)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s m -l mmap-pages -d 'Size of each CPU\'s ring: pages, or bytes with B, K, M or G' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -l duration -d 'End after this time (10, 10s, 500ms, 2m)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -l engine -d 'How to capture' -r -f -a "auto\t'The first of these that the kernel allows'
bpf\t'Generated BPF programs: any operand, strings, half of perf\'s cost'
bpf-multi\t'BPF programs, attached to all sites at once (Linux 6.6)'
bpf-perf\t'BPF programs, attached site by site (Linux 5.15)'
perf\t'uprobe perf events, with user registers and stack'
perf-tracefs\t'perf events on tracefs events'
perf-pmu\t'perf events of the uprobe PMU; they cannot follow threads and children'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -l strings -d 'Text to read at a hit (bpf engines)' -r -f -a "auto\t'What unsigned arguments of a pointer\'s size point to, where it looks like text'
all\t'The same, taking each of them for a text: an empty one and one that cannot be read show, too'
off\t'None'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -l nonresident -d 'Memory that is not resident, in known texts, operands and filters (bpf engines; what only may be a text is never brought in)' -r -f -a "auto\t'Bring in anonymous memory and pages of local files, where nobody can make that wait: of processes with one thread, of those with CAP_SYS_ADMIN and of your own'
never\t'Leave it: what it holds is missing'
always\t'Bring in any, and wait: memory served by a process (userfaultfd, FUSE) or a network can hold up the recording and every other tracer of the machine, for as long as it likes'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -l strlen -d 'Most bytes to keep of a text, up to 4096' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -l stack-size -d 'Most bytes of user stack to copy at a hit for operands whose depth cannot be told beforehand' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -l schema -d 'Take names and types of arguments from these files (.toml, .d, .stp) first' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s d -l delay -d 'Time from one table to the next (1, 500ms)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s n -l iterations -d 'End after so many tables' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -l buildid-dir -d 'The build-id cache\'s directory [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s a -l all-cpus -d 'Record in all processes; so it is without this option, too, unless there is -p, -t or CMD'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s i -l no-inherit -d 'Record the processes of -p, or the command, without the children that they start; other processes of the same program then cost nothing (bpf engine, Linux 6.11)'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -l lossless -d 'Lose nothing: while the ring is half full, stop the processes that hit (SIGSTOP, which their parents see), and let them go on when it is drained (bpf engines)'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s f -l force -d 'Plant probes although the checks of the file refuse; record lists that read memory with perf-tracefs, although traced programs could make the kernel warn'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s q -l quiet -d 'Say nothing but errors'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s v -l verbose -d 'Say what is planted and how'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -s i -l input -d 'Trace file; - for standard input' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -s e -l event -d 'Only these probes: [sdt_]PROVIDER:NAME with globs' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l schema -d 'Take names and types of arguments from these files (.toml, .d, .stp) instead of the trace' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l time -d 'Only events in this span of time: FROM,TO in seconds of the trace\'s clock, either may be empty; or 10%-20%' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l comm -d 'Only threads of these names' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l pid -d 'Only these processes' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l tid -d 'Only these threads' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -s C -l cpu -d 'Only hits on these CPUs (0-3,6)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l filter -d 'Only hits of which this is true: C\'s operators over arguments by name or as arg1, arg2, …, comm, pid, tid and cpu; ~ fits a text to a glob (\'bytes > 4096 && url ~ "/api/*"\')' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -s s -l sort -d 'Group by these keys: event, comm, pid, tid, cpu, dso, sym, or an argument\'s name, with :shape behind it for a text without its numbers and quoted texts (query:shape)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l value -d 'With --sort, sum up this argument in each group: sum, mean, percentiles; groups with the greatest sum first (--order says otherwise)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l span -d 'Show how long it takes from one probe to another: START..DONE, or the name of a span that report finds by the probes\' names (query for query__start and query__done), with globs' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l key -d 'With --span, what begin and end have in common, and nothing else must: tid, pid, arguments of both (tid,funcname) [default: tid, and those texts and ids that both have under one name; of some well-known spans an argument; as the report says]' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l by -d 'With --span, --hist or --heatmap span:NAME, or --rate, group by these keys, as of --sort (query:shape): of the begin, of the end as EVENT.KEY (request__done.status) or where it alone has the argument' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l min -d 'With --span, only those of this time or more (10us, 5ms, 1s)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l order -d 'With --span and --by, or --sort and --value, sort groups by this figure [default: total]' -r -f -a "count\t'Number of spans'
total\t'Time in which at least one of them was open'
self\t'Time in them and in none within them'
mean\t'Mean time'
p50\t'Median'
p90\t'90th percentile'
p99\t'99th percentile'
p99.9\t'99.9th percentile'
max\t'Longest'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l hist -d 'Show how the values of an argument, or with span:NAME the durations of spans, are spread' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l scale -d 'Buckets of --hist' -r -f -a "auto\t'Each value where there are few, else powers of two'
log2\t'Powers of two'
linear\t'Twenty of one width'
value\t'Each value, if there are at most 256'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l heatmap -d 'Show how they are spread over time' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l rate -d 'Show how many events there are in each interval of this length (1s, 100ms), with --sort by groups' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l top -d 'Show so many groups [default: all, with --span 10, and as many of the slowest]' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l color -d 'Colours' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t''
never\t''"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l format -d 'Output format' -r -f -a "text\t'For people; what perf prints where perf prints it'
json\t'One JSON object a line'
csv\t'Comma-separated values with a header line; a text that a spreadsheet would take for a formula has \' before it'
csv-raw\t'Comma-separated values with all texts as they are'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l buildid-dir -d 'The build-id cache\'s directory [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -s n -l show-nr-samples -d 'Show the number of events in each group (always so; accepted for perf\'s sake)'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l stdio -d 'Print plain text (always so; accepted for perf\'s sake)'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l human -d 'Show numbers whose unit is known as times (1.23ms) and amounts of memory (1.5KiB); text only'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -s e -l event -d 'Only these probes: [sdt_]PROVIDER:NAME with globs' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l schema -d 'Take names and types of arguments from these files (.toml, .d, .stp) instead of the trace' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l time -d 'Only events in this span of time: FROM,TO in seconds of the trace\'s clock, either may be empty; or 10%-20%' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l comm -d 'Only threads of these names' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l pid -d 'Only these processes' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l tid -d 'Only these threads' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -s C -l cpu -d 'Only hits on these CPUs (0-3,6)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l filter -d 'Only hits of which this is true: C\'s operators over arguments by name or as arg1, arg2, …, comm, pid, tid and cpu; ~ fits a text to a glob (\'bytes > 4096 && url ~ "/api/*"\')' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l by -d 'Compare spans by these keys of the begin, too: arguments\' names, or keys as of report --sort (query:shape)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l min -d 'Leave out changes of less than this, in percent of A\'s figure' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l color -d 'Colours' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t''
never\t''"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l format -d 'Output format' -r -f -a "text\t'For people; what perf prints where perf prints it'
json\t'One JSON object a line'
csv\t'Comma-separated values with a header line; a text that a spreadsheet would take for a formula has \' before it'
csv-raw\t'Comma-separated values with all texts as they are'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l buildid-dir -d 'The build-id cache\'s directory [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -s a -l all -d 'Show what is within noise, too'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l human -d 'Show numbers whose unit is known as times (1.23ms) and amounts of memory (1.5KiB); text only'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -s i -l input -d 'Trace file; - for standard input' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -s e -l event -d 'Only these probes: [sdt_]PROVIDER:NAME with globs' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l schema -d 'Take names and types of arguments from these files (.toml, .d, .stp) instead of the trace' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l time -d 'Only events in this span of time: FROM,TO in seconds of the trace\'s clock, either may be empty; or 10%-20%' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l comm -d 'Only threads of these names' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l pid -d 'Only these processes' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l tid -d 'Only these threads' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -s C -l cpu -d 'Only hits on these CPUs (0-3,6)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l filter -d 'Only hits of which this is true: C\'s operators over arguments by name or as arg1, arg2, …, comm, pid, tid and cpu; ~ fits a text to a glob (\'bytes > 4096 && url ~ "/api/*"\')' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -s F -l fields -d 'Fields: comm,tid,pid,cpu,tod,time,period,event,args,ip,sym,symoff,dso,span (which span an event ends, and how long it lasted), and args.NAME or args.arg1 for one argument; with + or - in front, added or removed' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l format -d 'Output format: text, json, csv, csv-raw (texts that spreadsheets take for formulas as they are), or a template for each line (\'{comm} {url:?} {time:.3} {pid:>6}\'; see below)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l buildid-dir -d 'The build-id cache\'s directory [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l reltime -d 'Times since the first event shown; in JSON and CSV as reltime_ns'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l deltatime -d 'Times since the line before; in JSON and CSV as deltatime_ns'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l tod -d 'Show the time of day, too (as -F +tod): of this machine\'s time zone; in JSON and CSV UTC'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l ns -d 'Times with nanoseconds'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l human -d 'Show numbers whose unit is known as times (1.23ms) and amounts of memory (1.5KiB); text only'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -s h -l help -d 'Print help'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and not __fish_seen_subcommand_from show check import export" -l buildid-dir -d 'The build-id cache\'s directory [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and not __fish_seen_subcommand_from show check import export" -s h -l help -d 'Print help'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and not __fish_seen_subcommand_from show check import export" -f -a "show" -d 'Show the signatures that are in force: named files first, then the user\'s directory, then what is built in'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and not __fish_seen_subcommand_from show check import export" -f -a "check" -d 'Check schema files (.toml, .d, .stp), telling line and column, and with --file against the probes of a program'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and not __fish_seen_subcommand_from show check import export" -f -a "import" -d 'Keep schema files (.toml, .d, .stp) in the user\'s directory, as TOML'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and not __fish_seen_subcommand_from show check import export" -f -a "export" -d 'Write schemas as TOML to standard output: those in force, or with -i those that a trace has stored'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from show" -l schema -d 'Files (.toml, .d, .stp) that take precedence' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from show" -l buildid-dir -d 'The build-id cache\'s directory [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from show" -s v -l verbose -d 'With what is known of each argument'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from check" -l file -d 'A program or library with the probes' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from check" -l buildid-dir -d 'The build-id cache\'s directory [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from import" -l provider -d 'Provider of the probes, whatever the files say' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from import" -l buildid-dir -d 'The build-id cache\'s directory [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from import" -s f -l force -d 'Replace what was imported from files of these names before'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from import" -s h -l help -d 'Print help'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from export" -l schema -d 'Files (.toml, .d, .stp) that take precedence' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from export" -s i -l input -d 'The trace' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from export" -l buildid-dir -d 'The build-id cache\'s directory [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand demo" -l buildid-dir -d 'The build-id cache\'s directory [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand demo" -l workload -d 'Run the traced workload only (used by the demo itself)'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand demo" -s h -l help -d 'Print help'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand doctor" -l buildid-dir -d 'The build-id cache\'s directory [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand doctor" -l heal -d 'Let processes go on that a killed recorder stopped (record --lossless), and remove its tracefs events'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand doctor" -s h -l help -d 'Print help'
