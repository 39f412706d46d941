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

complete -c usdtrec -n "__fish_usdtrec_needs_command" -l buildid-dir -d 'Directory of the build-id cache [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_needs_command" -s h -l help -d 'Print help'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -s V -l version -d 'Print version'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "buildid-cache" -d 'Add binaries and their probes to the build-id cache, remove them, or list them'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "list" -d 'List the probes in the cache, a file, a process or a directory'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "record" -d 'Record probe hits into a trace file'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "trace" -d 'Print probe hits while they happen, one line per event'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "top" -d 'Show the rates of probe hits, once per second'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "report" -d 'Summarize a trace: counts, rates, spans, arguments, losses'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "flame" -d 'Draw the stacks of a trace as a flame graph (SVG or HTML)'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "diff" -d 'Compare two traces, and show the differences beyond noise'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "script" -d 'Print a trace, one line per event'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "export" -d 'Write the events and spans of a trace in a format of other programs'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "sql" -d 'Print SQL over datasets of export --to parquet: views, and examples of questions'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "import" -d 'Make a trace of the output of bpftrace -f json'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "archive" -d 'Take what another host needs to name the functions in a trace'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "schema" -d 'Show, check, import and export schemas: the names, types and meanings of probe arguments'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "demo" -d 'Index, list, record and report usdtrec\'s own probes, as a demonstration'
complete -c usdtrec -n "__fish_usdtrec_needs_command" -f -a "doctor" -d 'Show what killed recorders left behind, and remove it with --heal'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand buildid-cache" -s a -l add -d 'Add these files (comma list; a name without a slash is looked up in PATH)' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand buildid-cache" -s r -l remove -d 'Remove the entries of these files, looked up by the files\' current build-ids' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand buildid-cache" -s p -l purge -d 'Remove all entries with these paths, of any build-id' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand buildid-cache" -s u -l update -d 'Replace the entries of these files by their current contents' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand buildid-cache" -s M -l missing -d 'List the files that have hits in this trace and are not in the cache' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand buildid-cache" -l scan -d 'Add every file with probes below this directory' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand buildid-cache" -l buildid-dir -d 'Directory of the build-id cache [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand buildid-cache" -s P -l purge-all -d 'Remove all entries'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand buildid-cache" -s l -l list -d 'List the entries: build-id and path'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand buildid-cache" -s v -l verbose -d 'Name the files that --scan could not read'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand buildid-cache" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand list" -l file -d 'List the probes of this ELF file instead of the cache\'s' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand list" -s p -l pid -d 'List the probes of all files that this process maps (comma list)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand list" -l dir -d 'List the probes of all files below this directory' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand list" -l schema -d 'With -v, take the names and types of arguments from this file (.toml, .d) first; may be repeated' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand list" -l format -d 'Output format' -r -f -a "text\t'Text; without -v, the lines of `perf list sdt`'
json\t'One JSON object per line'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand list" -l buildid-dir -d 'Directory of the build-id cache [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand list" -s v -l verbose -d 'Explain sites, semaphores and operands, with the names and types of arguments if known'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s e -l event -d 'Probes to record: [sdt_]PROVIDER:NAME[(ARGUMENTS)][@PATH], with globs (comma list, may be repeated)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l filter -d 'Record only hits of the preceding -e for which this expression is true (\'arg2 > 4096 && method == "GET"\')' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s p -l pid -d 'Record these processes, and the threads and children that they start (comma list)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s t -l tid -d 'Record only these threads (comma list)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s C -l cpu -d 'Record only hits on these CPUs (0-3,6)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s m -l mmap-pages -d 'Ring buffer size per CPU: a number of pages, or bytes with B, K, M or G, up to 2G; rounded up to a power of two' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l duration -d 'End recording after this time (10s, 500ms, 2m); a number without a unit is seconds' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l engine -d 'What captures hits' -r -f -a "auto\t'The first engine and attach method that the kernel allows'
bpf\t'BPF programs: any operand, texts, half of perf\'s cost per hit'
bpf-multi\t'BPF programs, attached by one uprobe_multi link per file (Linux 6.6)'
bpf-perf\t'BPF programs, attached by one perf event per site (Linux 5.15)'
perf\t'Uprobe perf events that sample user registers and stack'
perf-tracefs\t'The same, opened on tracefs events'
perf-pmu\t'The same, opened on the uprobe PMU; new threads and children are not recorded'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l strings -d 'Texts to read at a hit (bpf engine)' -r -f -a "auto\t'Texts that a schema declares, and whatever looks like a text where an unsigned argument of pointer size points'
all\t'Treat every unsigned argument of pointer size as a text, also if it is empty or cannot be read'
off\t'Read no texts'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l nonresident -d 'Handling of memory that is swapped out or not yet read from its file (bpf engine)' -r -f -a "auto\t'Fault in anonymous memory and pages of local files where no process can delay that: in processes with one thread, with CAP_SYS_ADMIN, or of your own user'
never\t'Do not fault in memory; values in it are missing'
always\t'Fault in any memory. Memory served by a process (userfaultfd, FUSE) or over a network can block the recording and all other tracers on the machine without limit'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l strlen -d 'Maximum number of bytes to record of a text, 1 to 4096' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l stack-size -d 'Maximum number of bytes of user stack to copy for operands whose distance from the stack pointer is unknown (perf engine)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l schema -d 'Take the names and types of arguments from this file (.toml, .d) first; may be repeated, the last file wins' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s o -l output -d 'Trace file; an existing file is renamed to FILE.old; - writes to standard output, which must be a pipe or a file' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s z -l compression-level -d 'zstd compression level, 1 to 22; 0 disables compression [default: 3]' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l threads -d 'Compress the trace in this many threads, 1 to 256 [default: as many as the hits need, up to the number of CPUs and 8]' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l max-size -d 'End recording when the trace reaches this size: bytes, or a number with B, K, M or G (100M)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l switch-output -d 'Write numbered files FILE.1, FILE.2, …, each of them a complete trace; start the next one on SIGUSR2 (signal), when a file reaches a size (10M), or after a time (30s, 5m, 1h) [without a value: signal]' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l switch-max-files -d 'With --switch-output or --every, keep only the newest N files' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l at -d 'Begin recording, and start the command, at a time of day (12:00:00, the next one in the local time zone), at a date (2026-11-23T12:00:00Z; local without a zone), or after a time (+30s)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l every -d 'Make a recording of this length in each period (10m/10s): FILE.20261123T120000Z, …, each of them a complete trace' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l call-graph -d 'Record the callers of each hit: auto; fp, by frame pointers; dwarf or dwarf,SIZE, by unwind tables from a copy of SIZE bytes of stack (8 to 32K, 8K without SIZE)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l max-stack -d 'With -g or --call-graph, record at most N frames of each hit, 1 to 1024 [default: 127]' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l stack-rate -d 'With -g or --call-graph, record the callers of at most N hits a second of each site and thread' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s c -l count -d 'Sampling period' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s F -l freq -d 'Sampling frequency' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l buildid-dir -d 'Directory of the build-id cache [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s a -l all-cpus -d 'Record all processes [default without -p, -t and CMD]'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s i -l no-inherit -d 'With -p or CMD, do not record children'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l lossless -d 'Stop processes instead of losing hits (bpf engine)'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s f -l force -d 'Attach even if a check of the file fails'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s q -l quiet -d 'Print only errors and losses'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s v -l verbose -d 'Print each site with its address and what is captured there, and why better engines or attach methods are not used'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s g -d 'Record the callers of each hit, as with --call-graph auto'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l no-call-graph -d 'Do not record the callers of hits of the preceding -e; -g and --call-graph apply to all others'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l keep-stacks -d 'Write the copies of stacks instead of the callers; script and perf unwind them when they read the trace'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -l no-symbols -d 'With -g or --call-graph, do not store the names of functions in the trace'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s T -l timestamp -d 'Record timestamps (always on; accepted for compatibility with perf)'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s R -l raw-samples -d 'Arguments in the raw part of samples'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand record" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s e -l event -d 'Probes to record: [sdt_]PROVIDER:NAME[(ARGUMENTS)][@PATH], with globs (comma list, may be repeated)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l filter -d 'Record only hits of the preceding -e for which this expression is true (\'arg2 > 4096 && method == "GET"\')' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s p -l pid -d 'Record these processes, and the threads and children that they start (comma list)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s t -l tid -d 'Record only these threads (comma list)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s C -l cpu -d 'Record only hits on these CPUs (0-3,6)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s m -l mmap-pages -d 'Ring buffer size per CPU: a number of pages, or bytes with B, K, M or G, up to 2G; rounded up to a power of two' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l duration -d 'End recording after this time (10s, 500ms, 2m); a number without a unit is seconds' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l engine -d 'What captures hits' -r -f -a "auto\t'The first engine and attach method that the kernel allows'
bpf\t'BPF programs: any operand, texts, half of perf\'s cost per hit'
bpf-multi\t'BPF programs, attached by one uprobe_multi link per file (Linux 6.6)'
bpf-perf\t'BPF programs, attached by one perf event per site (Linux 5.15)'
perf\t'Uprobe perf events that sample user registers and stack'
perf-tracefs\t'The same, opened on tracefs events'
perf-pmu\t'The same, opened on the uprobe PMU; new threads and children are not recorded'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l strings -d 'Texts to read at a hit (bpf engine)' -r -f -a "auto\t'Texts that a schema declares, and whatever looks like a text where an unsigned argument of pointer size points'
all\t'Treat every unsigned argument of pointer size as a text, also if it is empty or cannot be read'
off\t'Read no texts'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l nonresident -d 'Handling of memory that is swapped out or not yet read from its file (bpf engine)' -r -f -a "auto\t'Fault in anonymous memory and pages of local files where no process can delay that: in processes with one thread, with CAP_SYS_ADMIN, or of your own user'
never\t'Do not fault in memory; values in it are missing'
always\t'Fault in any memory. Memory served by a process (userfaultfd, FUSE) or over a network can block the recording and all other tracers on the machine without limit'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l strlen -d 'Maximum number of bytes to record of a text, 1 to 4096' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l stack-size -d 'Maximum number of bytes of user stack to copy for operands whose distance from the stack pointer is unknown (perf engine)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l schema -d 'Take the names and types of arguments from this file (.toml, .d) first; may be repeated, the last file wins' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s F -l fields -d 'Fields to print (comma list); with + or - before a field, add it to the default fields or remove it (-F +tod,-cpu)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l format -d 'Output format: text, json, csv, csv-raw, or a template (\'{comm} {url:?} {time:.3}\'; see below)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s o -l output -d 'Print to this file; an existing file is renamed to FILE.old [default: standard output, and CMD\'s output goes to standard error]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l buildid-dir -d 'Directory of the build-id cache [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s a -l all-cpus -d 'Record all processes [default without -p, -t and CMD]'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s i -l no-inherit -d 'With -p or CMD, do not record children'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l lossless -d 'Stop processes instead of losing hits (bpf engine)'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s f -l force -d 'Attach even if a check of the file fails'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s q -l quiet -d 'Print only errors and losses'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s v -l verbose -d 'Print each site with its address and what is captured there, and why better engines or attach methods are not used'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l reltime -d 'Print times relative to the first event printed; in JSON and CSV, add reltime_ns'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l deltatime -d 'Print times relative to the previous line; in JSON and CSV, add deltatime_ns'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l tod -d 'Also print the time of day (as -F +tod), in the local time zone; UTC in JSON and CSV'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l ns -d 'Print times with nine decimals instead of six'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -l human -d 'Print numbers with a known unit as times (1.23ms) and sizes (1.5KiB); text format only'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand trace" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s e -l event -d 'Probes to record: [sdt_]PROVIDER:NAME[(ARGUMENTS)][@PATH], with globs (comma list, may be repeated)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -l filter -d 'Record only hits of the preceding -e for which this expression is true (\'arg2 > 4096 && method == "GET"\')' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s p -l pid -d 'Record these processes, and the threads and children that they start (comma list)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s t -l tid -d 'Record only these threads (comma list)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s C -l cpu -d 'Record only hits on these CPUs (0-3,6)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s m -l mmap-pages -d 'Ring buffer size per CPU: a number of pages, or bytes with B, K, M or G, up to 2G; rounded up to a power of two' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -l duration -d 'End recording after this time (10s, 500ms, 2m); a number without a unit is seconds' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -l engine -d 'What captures hits' -r -f -a "auto\t'The first engine and attach method that the kernel allows'
bpf\t'BPF programs: any operand, texts, half of perf\'s cost per hit'
bpf-multi\t'BPF programs, attached by one uprobe_multi link per file (Linux 6.6)'
bpf-perf\t'BPF programs, attached by one perf event per site (Linux 5.15)'
perf\t'Uprobe perf events that sample user registers and stack'
perf-tracefs\t'The same, opened on tracefs events'
perf-pmu\t'The same, opened on the uprobe PMU; new threads and children are not recorded'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -l strings -d 'Texts to read at a hit (bpf engine)' -r -f -a "auto\t'Texts that a schema declares, and whatever looks like a text where an unsigned argument of pointer size points'
all\t'Treat every unsigned argument of pointer size as a text, also if it is empty or cannot be read'
off\t'Read no texts'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -l nonresident -d 'Handling of memory that is swapped out or not yet read from its file (bpf engine)' -r -f -a "auto\t'Fault in anonymous memory and pages of local files where no process can delay that: in processes with one thread, with CAP_SYS_ADMIN, or of your own user'
never\t'Do not fault in memory; values in it are missing'
always\t'Fault in any memory. Memory served by a process (userfaultfd, FUSE) or over a network can block the recording and all other tracers on the machine without limit'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -l strlen -d 'Maximum number of bytes to record of a text, 1 to 4096' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -l stack-size -d 'Maximum number of bytes of user stack to copy for operands whose distance from the stack pointer is unknown (perf engine)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -l schema -d 'Take the names and types of arguments from this file (.toml, .d) first; may be repeated, the last file wins' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s d -l delay -d 'Interval between tables (500ms, 2s); a number without a unit is seconds' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s n -l iterations -d 'End after N tables [default: unlimited]' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -l buildid-dir -d 'Directory of the build-id cache [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s a -l all-cpus -d 'Record all processes [default without -p, -t and CMD]'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s i -l no-inherit -d 'With -p or CMD, do not record children'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -l lossless -d 'Stop processes instead of losing hits (bpf engine)'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s f -l force -d 'Attach even if a check of the file fails'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s q -l quiet -d 'Print only errors and losses'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s v -l verbose -d 'Print each site with its address and what is captured there, and why better engines or attach methods are not used'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand top" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -s i -l input -d 'Trace file; - reads standard input' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -s e -l event -d 'Show only these probes: [sdt_]PROVIDER:NAME, with globs (comma list, may be repeated)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l schema -d 'Take the names and types of arguments from this file (.toml, .d) instead of the trace; may be repeated, the last file wins' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l time -d 'Show only events in this time range: FROM,TO in seconds of the trace\'s clock, either of which may be empty, or percentages of the trace (10%-20%)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l comm -d 'Show only threads with these names (comma list)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l pid -d 'Show only these processes (comma list)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l tid -d 'Show only these threads (comma list)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -s C -l cpu -d 'Show only hits on these CPUs (0-3,6)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l filter -d 'Show only hits for which this expression is true (\'bytes > 4096 && url ~ "/api/*"\')' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -s s -l sort -d 'Group events by these keys (comma list): event, comm, pid, tid, cpu, cgroup, dso, sym, srcline, caller, stack, an argument, or ARG:shape' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l value -d 'With --sort, show sum, mean and percentiles of this argument for each group; sorts by sum unless --order is given. With --call-graph or --folded, weigh stacks by its sum' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l span -d 'Show durations from one probe to another: START..DONE, or the name of a span, with globs' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l key -d 'With --span, keys by which begin and end are matched (comma list): tid, pid, or arguments that both have (tid,funcname)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l by -d 'With --span, --rate, and --hist or --heatmap span:NAME, group by these keys of --sort (comma list, query:shape)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l min -d 'With --span, --hist or --heatmap span:NAME, show only spans of at least this duration (10us, 5ms, 1s)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l order -d 'With --span and --by, or --sort and --value, sort groups by this value [default: total]' -r -f -a "count\t'Number of spans or events'
total\t'Time in which at least one span of the group was open, each moment once; with --value, the sum'
sum\t'Sum of the durations of the spans, also of those that were open at once; with --value, the sum'
self\t'Time in which a span of the group was open outside its nested spans, each moment once (spans only)'
mean\t'Mean'
p50\t'Median'
p90\t'90th percentile'
p99\t'99th percentile'
p99.9\t'99.9th percentile (spans only)'
max\t'Maximum'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l hist -d 'Show a histogram of an argument, or with span:NAME of the durations of spans' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l scale -d 'Buckets of --hist [default: auto]' -r -f -a "auto\t'One bucket per value if there are few values, else powers of two'
log2\t'Powers of two'
linear\t'Twenty buckets of equal width'
value\t'One bucket per value; refused above 256 values'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l heatmap -d 'Show the distribution of an argument, or with span:NAME of the durations of spans, over time' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -s g -l call-graph -d 'Show the stacks as a tree: caller (the outermost function first) or callee (the function with the probe first), and the least percentage shown (callee,5) [default: caller,0.5]' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l stacks -d 'Which stacks --call-graph and --folded show [default: native where they were recorded, else script]' -r -f -a "native\t'Those of the machine code, which record -g records'
script\t'Functions of PHP, Python, Ruby or Java, by their recorded calls and returns'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l rate -d 'Show the number of events in each interval of this length (1s, 100ms); with --by or --sort, for each group' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l top -d 'Show at most N groups, and with --span also the N slowest spans [default: all groups; 10 with --span]' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l color -d 'When to use colours' -r -f -a "auto\t'If standard output is a terminal and NO_COLOR is not set'
always\t'Always'
never\t'Never'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l html -d 'Write all answers into a page for browsers, which needs no network and no other file, as export --to html does; - writes to standard output' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l format -d 'Output format' -r -f -a "text\t'Text; events in the format of `perf script`'
json\t'One JSON object per line'
csv\t'Comma-separated values with a header line; texts that spreadsheets would evaluate as formulas are prefixed with \''
csv-raw\t'Comma-separated values with a header line; all texts unchanged'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l buildid-dir -d 'Directory of the build-id cache [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l inline -d 'Show frames of functions whose code was inlined, marked (inlined) (always on; accepted for compatibility with perf)'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l no-inline -d 'Do not show frames of functions whose code was inlined'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l folded -d 'Print each stack as a line for flame graph programs: functions from the outermost one with ; between, a blank, and the weight as of --call-graph'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -s n -l show-nr-samples -d 'Show the number of events in each group (always on; accepted for compatibility with perf)'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l stdio -d 'Print plain text (always on; accepted for compatibility with perf)'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -l human -d 'Print numbers with a known unit as times (1.23ms) and sizes (1.5KiB); text format only'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand flame" -s i -l input -d 'Trace file; - reads standard input' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand flame" -s e -l event -d 'Show only these probes: [sdt_]PROVIDER:NAME, with globs (comma list, may be repeated)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand flame" -l schema -d 'Take the names and types of arguments from this file (.toml, .d) instead of the trace; may be repeated, the last file wins' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand flame" -l time -d 'Show only events in this time range: FROM,TO in seconds of the trace\'s clock, either of which may be empty, or percentages of the trace (10%-20%)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand flame" -l comm -d 'Show only threads with these names (comma list)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand flame" -l pid -d 'Show only these processes (comma list)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand flame" -l tid -d 'Show only these threads (comma list)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand flame" -s C -l cpu -d 'Show only hits on these CPUs (0-3,6)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand flame" -l filter -d 'Show only hits for which this expression is true (\'bytes > 4096 && url ~ "/api/*"\')' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand flame" -l diff -d 'Compare the stacks of two traces: frames are as wide as the mean of their shares in A and B; red ones have a greater share in B, blue ones in A, beyond noise (as of diff), all others are grey' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand flame" -l stacks -d 'Which stacks are drawn [default: native where they were recorded, else script]' -r -f -a "native\t'Those of the machine code, which record -g records'
script\t'Functions of PHP, Python, Ruby or Java, by their recorded calls and returns'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand flame" -l value -d 'Weigh stacks by the sum of this argument instead of their hits' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand flame" -l span -d 'Weigh stacks by the time in the spans that begin there, without the spans within them: START..DONE, or the name of a span, with globs' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand flame" -l key -d 'With --span, keys by which begin and end are matched (comma list), as of report' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand flame" -l min -d 'With --span, show only spans of at least this duration (10us, 5ms, 1s)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand flame" -l buildid-dir -d 'Directory of the build-id cache [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand flame" -l inline -d 'Show frames of functions whose code was inlined, marked (inlined) (always on; accepted for compatibility with perf)'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand flame" -l no-inline -d 'Do not show frames of functions whose code was inlined'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand flame" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -s e -l event -d 'Show only these probes: [sdt_]PROVIDER:NAME, with globs (comma list, may be repeated)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l schema -d 'Take the names and types of arguments from this file (.toml, .d) instead of the trace; may be repeated, the last file wins' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l time -d 'Show only events in this time range: FROM,TO in seconds of the trace\'s clock, either of which may be empty, or percentages of the trace (10%-20%)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l comm -d 'Show only threads with these names (comma list)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l pid -d 'Show only these processes (comma list)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l tid -d 'Show only these threads (comma list)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -s C -l cpu -d 'Show only hits on these CPUs (0-3,6)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l filter -d 'Show only hits for which this expression is true (\'bytes > 4096 && url ~ "/api/*"\')' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l by -d 'Also compare spans grouped by these keys of their begin event: arguments, or keys of report --sort (query:shape)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l min -d 'Omit changes smaller than this, in percent of A\'s value' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l color -d 'When to use colours' -r -f -a "auto\t'If standard output is a terminal and NO_COLOR is not set'
always\t'Always'
never\t'Never'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l format -d 'Output format' -r -f -a "text\t'Text; events in the format of `perf script`'
json\t'One JSON object per line'
csv\t'Comma-separated values with a header line; texts that spreadsheets would evaluate as formulas are prefixed with \''
csv-raw\t'Comma-separated values with a header line; all texts unchanged'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l buildid-dir -d 'Directory of the build-id cache [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l inline -d 'Show frames of functions whose code was inlined, marked (inlined) (always on; accepted for compatibility with perf)'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l no-inline -d 'Do not show frames of functions whose code was inlined'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -s a -l all -d 'Also show changes within noise'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -l human -d 'Print numbers with a known unit as times (1.23ms) and sizes (1.5KiB); text format only'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -s i -l input -d 'Trace file; - reads standard input' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -s e -l event -d 'Show only these probes: [sdt_]PROVIDER:NAME, with globs (comma list, may be repeated)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l schema -d 'Take the names and types of arguments from this file (.toml, .d) instead of the trace; may be repeated, the last file wins' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l time -d 'Show only events in this time range: FROM,TO in seconds of the trace\'s clock, either of which may be empty, or percentages of the trace (10%-20%)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l comm -d 'Show only threads with these names (comma list)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l pid -d 'Show only these processes (comma list)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l tid -d 'Show only these threads (comma list)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -s C -l cpu -d 'Show only hits on these CPUs (0-3,6)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l filter -d 'Show only hits for which this expression is true (\'bytes > 4096 && url ~ "/api/*"\')' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l stacks -d 'Which stacks are printed [default: native, call chains]' -r -f -a "native\t'Those of the machine code, which record -g records'
script\t'Functions of PHP, Python, Ruby or Java, by their recorded calls and returns'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l max-stack -d 'Print at most N frames of each call chain [default: all recorded ones, 127 of a copy of the stack]' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -s F -l fields -d 'Fields to print (comma list); with + or - before a field, add it to the default fields or remove it (-F +tod,-cpu)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l format -d 'Output format: text, json, csv, csv-raw, or a template (\'{comm} {url:?} {time:.3}\'; see below)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l buildid-dir -d 'Directory of the build-id cache [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l inline -d 'Show frames of functions whose code was inlined, marked (inlined) (always on; accepted for compatibility with perf)'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l no-inline -d 'Do not show frames of functions whose code was inlined'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -s G -l hide-call-graph -d 'Do not print call chains'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l reltime -d 'Print times relative to the first event printed; in JSON and CSV, add reltime_ns'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l deltatime -d 'Print times relative to the previous line; in JSON and CSV, add deltatime_ns'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l tod -d 'Also print the time of day (as -F +tod), in the local time zone; UTC in JSON and CSV'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l ns -d 'Print times with nine decimals instead of six'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -l human -d 'Print numbers with a known unit as times (1.23ms) and sizes (1.5KiB); text format only'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand script" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand export" -s i -l input -d 'Trace file; - reads standard input' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand export" -s e -l event -d 'Show only these probes: [sdt_]PROVIDER:NAME, with globs (comma list, may be repeated)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand export" -l schema -d 'Take the names and types of arguments from this file (.toml, .d) instead of the trace; may be repeated, the last file wins' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand export" -l time -d 'Show only events in this time range: FROM,TO in seconds of the trace\'s clock, either of which may be empty, or percentages of the trace (10%-20%)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand export" -l comm -d 'Show only threads with these names (comma list)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand export" -l pid -d 'Show only these processes (comma list)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand export" -l tid -d 'Show only these threads (comma list)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand export" -s C -l cpu -d 'Show only hits on these CPUs (0-3,6)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand export" -l filter -d 'Show only hits for which this expression is true (\'bytes > 4096 && url ~ "/api/*"\')' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand export" -l to -d 'Format to write' -r -f -a "html\t'A page for browsers with the answers of report, which needs no network and no other file'
parquet\t'A folder of Parquet files: a table for each probe and each kind of span'
perfetto\t'Perfetto\'s own format, for ui.perfetto.dev and trace_processor'
ctf\t'Common Trace Format 1.8 (a folder), for babeltrace2 and Trace Compass; events alone'
firefox\t'Firefox Profiler\'s processed profile (JSON), for profiler.firefox.com'
otlp\t'OpenTelemetry spans (OTLP) as lines of JSON; events of no span are left out'
otlp-proto\t'OpenTelemetry spans (OTLP) as a protobuf message'
folded\t'Folded stacks (outer;inner WEIGHT) by hits, or with --span by time'
perf\t'A plain perf.data file without compression, for programs that do not read compressed ones'
pprof\t'pprof\'s profiles (gzip): stacks by hits, or with --span by number and time'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand export" -s o -l output -d 'File to write, compressed with gzip if its name ends with .gz; - writes to standard output. An existing file is replaced when the new one is complete. With --to ctf a folder, which does not exist or is empty; with --to parquet a folder, which does not exist' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand export" -l span -d 'Export these spans alone: START..DONE, or the name of a span, with globs (may be repeated) [default: all events, and the spans that are found by the names of probes]' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand export" -l key -d 'With --span, keys by which begin and end are matched (comma list), as of report' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand export" -l trace-id -d 'With --to otlp, the argument that has the id of the trace: 32 hexadecimal digits, a UUID, or a traceparent [default: each span has a trace of its own]' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand export" -l counter -d 'With --to perfetto, an argument whose numbers are a counter of each process, besides (may be repeated)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand export" -l drop -d 'With --to parquet, an argument to leave out (may be repeated)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand export" -l hash -d 'With --to parquet, an argument whose values are replaced by keyed hashes (may be repeated)' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand export" -l hash-key -d 'With --hash, the file whose bytes are the key: equal values have equal hashes in all exports with one key [default: a random key that is not kept]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand export" -l buildid-dir -d 'Directory of the build-id cache [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand export" -l inline -d 'Show frames of functions whose code was inlined, marked (inlined) (always on; accepted for compatibility with perf)'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand export" -l no-inline -d 'Do not show frames of functions whose code was inlined'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand sql" -l engine -d 'Engine to write SQL for' -r -f -a "duckdb\t'DuckDB'
spark\t'Spark SQL'"
complete -c usdtrec -n "__fish_usdtrec_using_subcommand sql" -l buildid-dir -d 'Directory of the build-id cache [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand sql" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand import" -s o -l output -d 'Trace file; an existing file is renamed to FILE.old' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand import" -l buildid-dir -d 'Directory of the build-id cache [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand archive" -s i -l input -d 'Trace file' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand archive" -s o -l output -d 'With --debug, the tarball to write [default: FILE.tar.bz2]; an existing file is replaced' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand archive" -l unpack -d 'Add the files of a tarball, of archive --debug or of perf archive, to the build-id cache' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand archive" -l buildid-dir -d 'Directory of the build-id cache [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand archive" -l debug -d 'Write the programs and libraries in which the trace has hits or frames, and their separate files with debugging information, into a tarball in the layout of perf archive'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand archive" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and not __fish_seen_subcommand_from show check import export" -l buildid-dir -d 'Directory of the build-id cache [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and not __fish_seen_subcommand_from show check import export" -s h -l help -d 'Print help'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and not __fish_seen_subcommand_from show check import export" -f -a "show" -d 'Show the schemas in use, one signature per line, each with its source'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and not __fish_seen_subcommand_from show check import export" -f -a "check" -d 'Check schema files (.toml, .d), and with --file compare them with the probes of a program'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and not __fish_seen_subcommand_from show check import export" -f -a "import" -d 'Convert schema files (.toml, .d) to TOML and store them in the user\'s directory'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and not __fish_seen_subcommand_from show check import export" -f -a "export" -d 'Write schemas to standard output as TOML: those in use, or with -i those stored in a trace'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from show" -l schema -d 'Schema file (.toml, .d) that takes precedence; may be repeated, the last file wins' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from show" -l buildid-dir -d 'Directory of the build-id cache [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from show" -s v -l verbose -d 'Show descriptions, units, attributes of OpenTelemetry, and the words of enumerations and flags'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from check" -l file -d 'Program or library with the probes; may be repeated' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from check" -l buildid-dir -d 'Directory of the build-id cache [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from import" -l provider -d 'Provider of the probes, instead of the files\' own' -r
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from import" -l buildid-dir -d 'Directory of the build-id cache [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from import" -s f -l force -d 'Replace files imported earlier under the same names'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from import" -s h -l help -d 'Print help'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from export" -l schema -d 'Schema file (.toml, .d) that takes precedence; may be repeated, the last file wins' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from export" -s i -l input -d 'Trace file to read the schemas from' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from export" -l buildid-dir -d 'Directory of the build-id cache [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand schema; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand demo" -l buildid-dir -d 'Directory of the build-id cache [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand demo" -l workload -d 'Run only the traced workload (started by the demo)'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand demo" -s h -l help -d 'Print help'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand doctor" -l buildid-dir -d 'Directory of the build-id cache [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c usdtrec -n "__fish_usdtrec_using_subcommand doctor" -l heal -d 'Continue the processes that a killed recorder stopped (record --lossless), decrement the semaphores that it left incremented, remove its tracefs events, and restore the instructions at its sites'
complete -c usdtrec -n "__fish_usdtrec_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
