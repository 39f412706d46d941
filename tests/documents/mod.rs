//! The documents: the commands of README and of the guides are run against real programs and print what is shown; links lead to files.

mod bpftrace;
mod internals;
mod page;

use std::path::Path;
use std::process::Command;

use self::page::{Example, Page};
use crate::common::{
    Build, Lab, Postgres, Process, need_parquet, need_tool, path_text, run, signal, test,
};

/// A line without what differs from run to run: numbers and addresses, and all from the first text on.
fn shape(line: &str) -> String {
    let before = line.split('"').next().unwrap_or(line);
    let words = before.split_whitespace().map(|word| {
        let digits = |c: char| c.is_ascii_digit();
        if word.contains(digits) && !word.starts_with("sdt_") {
            "#"
        } else {
            word
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Runs a command in a lab with the binary under test in PATH; what it prints. While it records other processes, `meanwhile` is
/// done; if it would record until Ctrl-C, it is ended then.
#[track_caller]
fn run_command(lab: &Lab, command: &str, meanwhile: &dyn Fn()) -> String {
    if command.contains("--to parquet") {
        need_parquet();
    }
    let ours = ["usdtrec record ", "usdtrec trace "];
    let records = ours.iter().any(|verb| command.starts_with(verb)) && !command.contains(" -- ");
    let script = if records {
        let start = "sh -c 'echo $$ >pid; exec usdtrec \"$@\"' sh ";
        command.replacen("usdtrec ", start, 1)
    } else {
        command.to_owned()
    };
    let binary = Path::new(env!("CARGO_BIN_EXE_usdtrec")).parent();
    let binary = binary.expect("a directory").display();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = lab.at_home(Path::new("sh"), ["-c", &script]);
    shell.env("PATH", format!("{binary}:{path}"));
    let mut process = Process::spawn(shell);
    if records {
        process.until_error_line("[ usdtrec ");
        meanwhile();
        let pid = std::fs::read_to_string(lab.file("pid")).expect("a process id");
        // A reader that has enough ends it before.
        if !command.contains("--duration") && process.is_running() {
            signal(pid.trim().parse().expect("a number"), "INT");
        }
    }
    process.finish().success().stdout
}

/// Runs an example, and compares the first line that it prints with the one that is shown.
#[track_caller]
fn run_example(lab: &Lab, Example { command, prints }: &Example, meanwhile: &dyn Fn()) {
    let printed = run_command(lab, command, meanwhile);
    let is_ours = command.starts_with("usdtrec ");
    let silent = [" record ", " buildid-cache ", " export ", " archive "];
    if !is_ours || silent.iter().any(|verb| command.contains(verb)) {
        return;
    }
    assert!(!printed.is_empty(), "{command} prints nothing");
    let Some(shown) = prints.first() else {
        return;
    };
    if command.starts_with("usdtrec script ") {
        let first = printed.lines().next().unwrap_or_default();
        assert_eq!(shape(first), shape(shown), "{command}");
    } else {
        // The pages leave out the lines about the recording.
        let word = shown.split_whitespace().next().unwrap_or_default();
        let begins = |line: &str| line.split_whitespace().next() == Some(word);
        assert!(
            printed.lines().any(begins),
            "{command}: no line {word} in {printed}"
        );
    }
}

/// Runs those examples of a page that are `wanted`, in their order, at least so many.
#[track_caller]
fn run_page(
    lab: &Lab,
    page: &Page,
    least: usize,
    wanted: &dyn Fn(&str) -> bool,
    meanwhile: &dyn Fn(),
) {
    let mut examples = page.examples();
    examples.retain(|example| wanted(&example.command));
    assert!(examples.len() >= least, "{examples:?} of {page:?}");
    for example in &examples {
        run_example(lab, example, meanwhile);
    }
}

/// pgbench's own transaction, but that each client has a teller of its own: clients wait for each other at the branch only, as the guides show.
const TRANSACTION: &str = include_str!("transaction.sql");

/// Commands about PostgreSQL, while pgbench runs.
#[test]
fn pages_about_postgresql() {
    let lab = Lab::privileged();
    let postgres = Postgres::start();
    postgres.client("pgbench", ["-i", "-q", "-s", "1"]);
    let script = postgres.script(TRANSACTION);
    let pgbench = || {
        let arguments = ["-n", "-c", "4", "-t", "60", "-f", path_text(&script)];
        postgres.client("pgbench", arguments);
    };
    let is_other = |command: &str| command.contains("libstdcxx:");
    let pages = [
        ("README.md", 6),
        ("docs/guides/slow-sql.md", 14),
        ("docs/guides/lock-waits.md", 8),
        ("docs/guides/who-waits-for-whom.md", 4),
        ("docs/guides/where-in-the-code.md", 8),
        ("docs/guides/export.md", 3),
        ("docs/guides/fleet.md", 3),
        ("docs/guides/another-host.md", 5),
        ("docs/guides/hosts.md", 6),
    ];
    let bpftrace = Page::read("docs/guides/from-bpftrace.md");
    let is_query = |command: &str| command.contains("query");
    run_page(&lab, &bpftrace, 3, &is_query, &pgbench);
    for (path, least) in pages {
        let page = Page::read(path);
        run_page(&lab, &page, least, &|command| !is_other(command), &pgbench);
    }
}

/// Those about C++ exceptions.
#[test]
fn pages_about_exceptions() {
    let lab = Lab::privileged();
    let thrower = (Build {
        compiler: "g++",
        options: &["-O2"],
    })
    .make(&lab, "thrower.cc", "thrower");
    let wanted = |command: &str| command.contains("libstdcxx:");
    run_page(&lab, &Page::read("README.md"), 1, &wanted, &|| {
        run(Command::new(&thrower)).success();
    });
    let printed = lab.usdtrec(["script"]).success().stdout;
    assert!(printed.contains("sdt_libstdcxx:throw"), "{printed}");
}

/// Those about garbage collections, and about programs that must be asked for their probes.
#[test]
fn pages_about_runtimes() {
    const CHURN: &str = "public class App { public static void main(String[] a) { \
        for (int i = 0; i < 30000; i++) { byte[] b = new byte[10000]; } System.gc(); } }";
    let lab = Lab::privileged();
    for tool in ["java", "/usr/bin/python3.11", "ruby3.1"] {
        need_tool(tool);
    }
    std::fs::write(lab.file("App.java"), CHURN).expect("a file");
    std::fs::write(lab.file("app.rb"), "puts [3, 1].sort.inspect\n").expect("a file");
    for (path, least) in [
        ("docs/guides/gc-pauses.md", 11),
        ("docs/guides/no-events.md", 2),
    ] {
        run_page(&lab, &Page::read(path), least, &|_| true, &|| ());
    }
    let bpftrace = Page::read("docs/guides/from-bpftrace.md");
    let is_ruby = |command: &str| command.contains("ruby");
    run_page(&lab, &bpftrace, 1, &is_ruby, &|| ());
}

/// The programs whose sources are shown are built and recorded.
#[test]
fn pages_with_sources() {
    let lab = Lab::privileged();
    for tool in ["gcc", "g++", "/usr/bin/python3.11"] {
        need_tool(tool);
    }
    let page = Page::read("docs/guides/own-probes.md");
    for (name, text) in page.sources() {
        std::fs::write(lab.file(name), text).expect("a file");
    }
    // Go is large: it is not among what the tests install.
    let has_go = Command::new("go").arg("version").output().is_ok();
    let wanted = |command: &str| has_go || !(command.contains("-go ") || command.ends_with("-go"));
    run_page(&lab, &page, 13, &wanted, &|| ());
}

/// A process in a mount namespace of its own.
#[test]
fn pages_about_containers() {
    const SOURCE: &str = "#include <sys/sdt.h>\n#include <unistd.h>\n\
        int main(void) { for (int i = 0;; i++) { DTRACE_PROBE1(app, tick, i); usleep(2000); } }\n";
    let lab = Lab::privileged();
    need_tool("gcc");
    need_tool("pgrep");
    need_tool("unshare");
    std::fs::write(lab.file("app.c"), SOURCE).expect("a file");
    run(lab.at_home(Path::new("gcc"), ["-O2", "-o", "app", "app.c"])).success();
    let enter = "mount -t tmpfs none /opt && cp app /opt/app && echo ready && exec /opt/app";
    let mut inside = Process::spawn(lab.at_home(Path::new("unshare"), ["-m", "sh", "-c", enter]));
    assert_eq!(inside.line().as_deref(), Some("ready"));
    while std::fs::read_link(format!("/proc/{}/exe", inside.pid())).expect("a link")
        != Path::new("/opt/app")
    {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // Not another process of this name, which may be on this machine, too.
    let found = "$(pgrep -n -x app)";
    let page = Page::read("docs/guides/containers.md");
    let examples = page.examples();
    assert!(examples.len() >= 5, "{examples:?}");
    for example in examples {
        let reads = ["usdtrec report ", "usdtrec script "];
        let is_reading = reads.iter().any(|verb| example.command.starts_with(verb));
        let is_about_all = example.command.contains(" -a ");
        let is_about_it = example.command.contains(found);
        assert!(is_reading || is_about_all || is_about_it, "{example:?}");
        let command = example.command.replace(found, &inside.pid().to_string());
        run_command(&lab, &command, &|| ());
        if command.contains(" record ") {
            let printed = lab.usdtrec(["script"]).success().stdout;
            assert!(printed.contains("sdt_app:tick"), "{command}: {printed}");
        }
    }
    inside.signal("KILL");
}

/// README is a first page; each guide is in the list of documents, and each link leads to a file.
#[test]
fn pages_hang_together() {
    let pages = Page::all();
    for page in &pages {
        assert_eq!(page.dead_links(), Vec::<&str>::new(), "{:?}", page.path());
    }
    assert!(Page::read("README.md").lines() < 120);
    let list = Page::read("docs/README.md");
    let verbs = Page::read("docs/verbs.md");
    let docs = list.path().parent().expect("a directory");
    for page in &pages {
        let path = page.path();
        if path.starts_with(docs) && path != list.path() {
            let is_linked = list.leads_to(path) || verbs.leads_to(path);
            assert!(is_linked, "no link to {path:?}");
        }
    }
}
