//! `man` and `completions`: what the program prints of itself for other programs.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::common::{Build, Lab, need_tool, run, test};

/// The verbs that the help lists.
fn verbs(lab: &Lab) -> Vec<String> {
    let help = lab.usdtrec(["-h"]).success().stdout;
    let (_, commands) = help.split_once("Commands:\n").expect("a list");
    let commands = commands.split("\n\n").next().expect("text");
    let lines = commands.lines().filter_map(|line| line.strip_prefix("  "));
    let names = lines.filter(|line| !line.starts_with(' '));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

/// What only tests, recorders and command lines of perf use.
const UNLISTED: [&str; 12] = [
    "guard-tracefs",
    "release-probes",
    "sync-file",
    "try-nop5",
    "serve-files",
    "--workload",
    "raw-samples",
    "perf-tracefs",
    "--reltime",
    "--deltatime",
    "--ns ",
    "stdio ",
];

#[test]
fn each_verb_has_a_page_with_examples() {
    let lab = Lab::new();
    lab.usdtrec(["man", "new/pages"]).success();
    let entries = fs::read_dir(lab.file("new/pages")).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names: BTreeSet<String> = names
        .map(|name| name.into_string().expect("UTF-8"))
        .collect();
    let verbs = verbs(&lab);
    assert!(verbs.len() > 15, "{verbs:?}");
    for verb in &verbs {
        assert!(names.contains(&format!("usdtrec-{verb}.1")), "{names:?}");
        let page = fs::read_to_string(lab.file(&format!("new/pages/usdtrec-{verb}.1")));
        let page = page.expect("a page").replace("\\-", "-");
        let (before, _) = page.split_once(".SH OPTIONS").expect("options");
        let (_, examples) = before.split_once(".SH EXAMPLES\n").expect("examples");
        assert_eq!(examples.matches("\n.nf\n").count(), 3, "{examples}");
        assert!(examples.contains(&format!("usdtrec {verb}")), "{examples}");
        for unlisted in UNLISTED {
            assert!(!page.contains(unlisted), "{unlisted} in {verb}");
        }
    }
    // One for the program, and one for each action of schema.
    assert_eq!(names.len(), verbs.len() + 5, "{names:?}");
    // Pages are replaced.
    lab.usdtrec(["man", "new/pages"]).success();
    fs::write(lab.file("file"), "").expect("a file");
    lab.usdtrec(["man", "file"]).exits(1).complains("file");
}

#[test]
fn shells_read_the_completions() {
    let lab = Lab::new();
    let verbs = verbs(&lab);
    for shell in ["bash", "zsh", "fish"] {
        let script = lab.usdtrec(["completions", shell]).success().stdout;
        for verb in &verbs {
            assert!(script.contains(verb), "{verb} of {shell}");
        }
        for unlisted in UNLISTED {
            assert!(!script.contains(unlisted), "{unlisted} in {shell}");
        }
    }
    let complete = r#"source <("$0" completions bash); COMP_WORDS=(usdtrec rep); COMP_CWORD=1
        _usdtrec usdtrec rep usdtrec; echo "${COMPREPLY[@]}"
        COMP_WORDS=(usdtrec record --engine ''); COMP_CWORD=3
        _usdtrec usdtrec '' --engine; echo "${COMPREPLY[@]}""#;
    let shell = lab.at_home(
        Path::new("bash"),
        ["-c", complete, env!("CARGO_BIN_EXE_usdtrec")],
    );
    assert_eq!(run(shell).success().stdout, "report\nauto bpf perf\n");
    lab.usdtrec(["completions", "csh"]).exits(2);
}

/// Reads the completions of a shell; in bash, `try LINE WORD WORD_BEFORE` prints how a line is completed.
fn prelude(shell: &str) -> &'static str {
    match shell {
        "bash" => {
            r#"source <("$0" completions bash)
        try() { COMP_LINE="$1"; COMP_POINT=${#1}; COMPREPLY=()
            _usdtrec_all "$0" "$2" "$3" 2> /dev/null; echo "${COMPREPLY[*]}"; }
"#
        }
        "zsh" => "autoload -U compinit; compinit -u -D; source <(\"$0\" completions zsh)\n",
        _ => "usdtrec completions fish | source\n",
    }
}

/// Runs a script of a shell until it prints this: a busy machine may not answer in time, and a shell does not wait.
#[track_caller]
fn prints(lab: &Lab, shell: &str, script: &str, expected: &str) {
    let script = format!("{}{script}", prelude(shell));
    let program = env!("CARGO_BIN_EXE_usdtrec");
    let directory = Path::new(program).parent().expect("a directory").display();
    let mut printed = String::new();
    for _ in 0..20 {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = lab.at_home(Path::new(shell), ["-c", &script, program]);
        command.env("PATH", format!("{directory}:{path}"));
        printed = run(command).success().stdout;
        if printed == expected {
            return;
        }
    }
    assert_eq!(printed, expected, "{shell}");
}

/// A lab with an index of the program's probes.
fn indexed() -> Lab {
    let lab = Lab::new();
    let program = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let program = program.to_str().expect("a path");
    lab.usdtrec(["buildid-cache", "--add", program]).success();
    lab
}

/// Bash divides words at colons, and replaces the last of them.
#[test]
fn bash_completes_patterns() {
    let complete = r#"        try "usdtrec record -a -e ticker:ti" ti :
        try "usdtrec trace --event=sdt_ticker:ti" ti :
        try "usdtrec top -e 'a:b,ticker:ti" "'a:b,ticker:ti" -e
        try "usdtrec list -a ticker:ti" ti :
        COMP_WORDS=("$0" list --format ''); COMP_CWORD=3
        try "usdtrec list --format " "" --format
        complete -p usdtrec | grep -c _usdtrec_all"#;
    let expected = "tick\ntick\n'a:b,ticker:tick\ntick\ntext json\n1\n";
    prints(&indexed(), "bash", complete, expected);
}

#[test]
fn fish_completes_patterns() {
    need_tool("fish");
    let complete = r#"for line in "record -e ticker:ti" "trace --event=sdt_ticker:ti" "list ticker:ti"
            complete -C "usdtrec $line" | string replace -r "\t.*" ""
        end
        true"#;
    let expected = "ticker:tick\n--event=sdt_ticker:tick\nticker:tick\n";
    prints(&indexed(), "fish", complete, expected);
}

/// A completion of zsh needs a terminal: the script is read, and each pattern is completed by its function.
#[test]
fn zsh_completes_patterns() {
    need_tool("zsh");
    let complete = r#"        "$0" completions zsh | grep -c ':_usdtrec_patterns'
        compadd() { [[ "$1" = -a ]] && print -l ${(P)2}; }
        PREFIX=sdt_ticker:ti; _usdtrec_patterns"#;
    prints(&indexed(), "zsh", complete, "9\nsdt_ticker:tick\n");
}

/// A lab with a trace of the program's probes, `usdtrec.data`, and a link to it.
fn recorded() -> Lab {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let event = format!("sdt_ticker:tick(first=arg1)@{}", program.display());
    let program = program.to_str().expect("a path");
    let record = ["record", "-q", "-e", &event, "--", program, "3"];
    lab.usdtrec(record).success();
    symlink("usdtrec.data", lab.file("other.data")).expect("a link");
    lab
}

#[test]
fn bash_completes_keys() {
    let complete = r#"        try "usdtrec report --sort fir" fir --sort
        try "usdtrec report -i other.data -s comm,fir" comm,fir -s
        try "usdtrec report --span x --by=ex" ex =
        try "usdtrec diff other.data other.data --by c" c --by
        try "usdtrec stat -a --by p" p --by
        try "usdtrec top -a --by=comm,u" comm,u ="#;
    let expected =
        "first\ncomm,first\nexe\ncaller cgroup comm container cpu\npid\ncomm,uid comm,unit\n";
    prints(&recorded(), "bash", complete, expected);
}

#[test]
fn fish_completes_keys() {
    need_tool("fish");
    let complete = r#"for line in "report --sort fir" "report -i other.data --by=comm,fir" "stat --by pi"
            complete -C "usdtrec $line" | string replace -r "\t.*" ""
        end
        true"#;
    let expected = "first\n--by=comm,first\npid\n";
    prints(&recorded(), "fish", complete, expected);
}

#[test]
fn zsh_completes_keys() {
    need_tool("zsh");
    let complete = r#"        "$0" completions zsh | grep -c ':_usdtrec_keys'
        compadd() { [[ "$1" = -a ]] && print -l ${(P)2}; }
        words=(report -i other.data --sort ''); PREFIX=fir; _usdtrec_keys"#;
    prints(&recorded(), "zsh", complete, "6\nfirst\n");
}

/// A lab with an index of a program whose probes form a span, and a trace of it.
fn with_spans() -> Lab {
    let lab = Lab::privileged();
    let built = Build {
        compiler: "gcc",
        options: &["-O2", "-pthread"],
    };
    let program = built.make(&lab, "slow.c", "slow");
    let event = format!("sdt_slow:request__*@{}", program.display());
    let program = program.to_str().expect("a path");
    lab.usdtrec(["buildid-cache", "--add", program]).success();
    let record = ["record", "-q", "-e", &event, "--", program, "odd", "1"];
    // It has nothing to read, and hits no probe.
    lab.usdtrec(record).exits(1);
    lab
}

/// Of live verbs, they are those of probes that are indexed, of others those of the trace.
#[test]
fn bash_completes_spans() {
    let complete = r#"        try "usdtrec top -a --span req" req --span
        try "usdtrec stat --span=slow:r" r :
        try "usdtrec report --span r" r --span"#;
    prints(
        &with_spans(),
        "bash",
        complete,
        "request\nrequest\nrequest\n",
    );
}

#[test]
fn fish_completes_spans() {
    need_tool("fish");
    let complete = r#"for line in "top --span req" "stat --span=slow:r" "report --span r"
            complete -C "usdtrec $line" | string replace -r "\t.*" ""
        end
        true"#;
    let expected = "request\n--span=slow:request\nrequest\n";
    prints(&with_spans(), "fish", complete, expected);
}

#[test]
fn zsh_completes_spans() {
    need_tool("zsh");
    let complete = r#"        "$0" completions zsh | grep -c ':_usdtrec_spans'
        compadd() { [[ "$1" = -a ]] && print -l ${(P)2}; }
        words=(stat --span ''); PREFIX=re; _usdtrec_spans"#;
    prints(&with_spans(), "zsh", complete, "9\nrequest\n");
}

/// Each key that is completed is one.
#[test]
fn completed_keys_are_keys() {
    let lab = recorded();
    let keys = lab.usdtrec(["complete-keys", "", "usdtrec", "report", "--sort"]);
    let keys = keys.success().stdout;
    assert!(keys.lines().count() > 15, "{keys}");
    for key in keys.lines() {
        let refused = lab.usdtrec(["report", "--sort", key]).stderr;
        assert!(!refused.contains("there is no"), "{key}: {refused}");
    }
    // A trace that is none, or cannot be read.
    let keys = lab.usdtrec(["complete-keys", "co", "usdtrec", "report", "-i", "none"]);
    assert_eq!(keys.success().stdout, "comm\ncontainer\n");
    let nothing = lab.usdtrec(["complete-keys", "co", "usdtrec", "script"]);
    assert_eq!(nothing.success().stdout, "");
}

/// The tasks for which a recorder starts the program are none of its verbs.
#[test]
fn inner_tasks_are_no_verbs() {
    let lab = Lab::new();
    for task in UNLISTED.iter().take(5) {
        let refused = lab.usdtrec([task, "--help", "x", "y"]).exits(2);
        refused.complains("unrecognized subcommand");
    }
}
