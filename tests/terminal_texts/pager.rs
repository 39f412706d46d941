//! The pager: what is in it, when there is none, and who ends first.

use std::fs;
use std::process::Command;

use super::{DEMO, on_terminal, terminal};
use crate::common::{Lab, Process, Ticker, need_tool, run, test};

const SIZE: [u32; 2] = [80, 24];
/// A pager that shows nothing, and keeps what it got.
const KEEP: &str = "tee paged > /dev/null";

/// A command on a terminal with a pager.
#[track_caller]
fn paged(lab: &Lab, pager: &str, command: &str) -> Command {
    let mut terminal = terminal(lab, SIZE, command);
    terminal.env("PAGER", pager);
    terminal
}

/// What a pager got; `None` if there was none.
fn kept(lab: &Lab) -> Option<String> {
    let kept = fs::read_to_string(lab.file("paged")).ok();
    let _ = fs::remove_file(lab.file("paged"));
    kept
}

#[test]
fn verbs_that_read_print_into_a_pager() {
    let lab = Lab::new();
    let python = "/usr/bin/python3.11";
    need_tool(python);
    for command in [
        format!("report -i {DEMO}"),
        format!("report -i {DEMO} --format json"),
        format!("script -i {DEMO}"),
        format!("diff {DEMO} {DEMO}"),
        format!("list --file {python}"),
        format!("list -v --file {python} function__entry --width 100"),
        format!("script -i - < {DEMO}"),
    ] {
        let words = command.split(" < ").next().unwrap_or(&command);
        let piped = match words == command {
            true => lab.usdtrec(words.split(' ')).success().stdout,
            false => lab.usdtrec(["script", "-i", DEMO]).success().stdout,
        };
        let seen = run(paged(&lab, KEEP, &format!("$usdtrec {command}")));
        assert_eq!(kept(&lab).as_deref(), Some(&*piped), "{command}");
        assert!(!seen.success().stdout.contains("sdt_"), "{command}");
    }
    run(paged(&lab, KEEP, "$usdtrec report --help")).success();
    let help = kept(&lab).expect("a pager");
    assert!(help.contains("--span"), "{help}");
}

/// `$USDTREC_PAGER` is before `$PAGER`; an empty one, `cat` and `--no-pager` are none, as a pipe and a dumb terminal have none.
#[test]
fn a_pager_can_be_left_out() {
    let lab = Lab::new();
    let report = format!("$usdtrec report -i {DEMO}");
    let text = lab.usdtrec(["report", "-i", DEMO]).success().stdout;
    for command in [
        format!("{report} --no-pager"),
        format!("PAGER=cat {report}"),
        format!("PAGER= {report}"),
        format!("TERM=dumb {report}"),
        format!("USDTREC_PAGER=cat {report}"),
        format!("{report} | cat"),
    ] {
        let seen = run(paged(&lab, KEEP, &command)).success();
        assert_eq!(seen.stdout.replace('\r', ""), text, "{command}");
        assert_eq!(kept(&lab), None, "{command}");
    }
    run(paged(
        &lab,
        "cat",
        &format!("USDTREC_PAGER='{KEEP}' {report}"),
    ))
    .success();
    assert_eq!(kept(&lab).as_deref(), Some(&*text));
    // One that is not there loses no text.
    let seen = run(paged(&lab, "no-such-pager -x", &report))
        .success()
        .stdout
        .replace('\r', "");
    assert!(
        seen.starts_with("usdtrec: cannot run the pager no-such-pager -x: "),
        "{seen}"
    );
    assert!(seen.ends_with(&text), "{seen}");
    // What fails has no pager.
    run(paged(&lab, KEEP, "$usdtrec report -i nowhere")).exits(1);
    assert_eq!(kept(&lab), None);
}

/// Who leaves the pager ends the verb, whatever it does at that time, and that is a normal end.
#[test]
fn a_verb_ends_with_its_pager() {
    let lab = Lab::new();
    let script = format!("$usdtrec script -i {DEMO}");
    let command = format!("{script}; echo status $?");
    let seen = run(paged(&lab, "head -n 1", &command)).success().stdout;
    assert_eq!(seen.lines().count(), 2, "{seen}");
    assert!(seen.contains("status 0"), "{seen}");
}

/// Its input goes on, and nothing more is printed: the end of the pager is noticed all the same.
#[test]
fn a_stream_ends_with_its_pager() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let (event, pid) = (target.event("tick"), target.pid());
    let command = format!(
        "$usdtrec record -q -o - -p {pid} -e {event} | $usdtrec script -i -; echo status $?"
    );
    let mut process = Process::spawn(paged(&lab, "head -n 1", &command));
    // Its first hit may come before the probes are planted.
    while process.is_running() {
        target.tell("fire 1");
        std::thread::sleep(std::time::Duration::from_millis(300));
        if process
            .line_within(std::time::Duration::from_millis(200))
            .is_some()
        {
            break;
        }
    }
    // From here on there are no hits.
    let ended = process.finish().success();
    assert!(ended.stdout.contains("status 0"), "{}", ended.stdout);
}

/// Messages follow the text: the pager has ended when they are printed.
#[test]
fn notices_are_below_the_text() {
    let lab = Lab::new();
    let trace = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/testdata/traces/chunks-killed.data"
    );
    let piped = lab.usdtrec(["script", "-i", trace]).success();
    assert!(!piped.stderr.is_empty(), "notices");
    let command = format!("$usdtrec script -i {trace}");
    let seen = run(paged(&lab, "sh -c 'cat; sleep 0.5; echo paged'", &command)).success();
    let seen = seen.stdout.replace('\r', "");
    let (_, after) = seen.split_once("\npaged\n").expect("the end of the pager");
    assert_eq!(after, piped.stderr);
}

/// What goes on for as long as its user wants has none.
#[test]
fn live_verbs_have_no_pager() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let event = target.event("tick");
    let pid = target.pid();
    let limits = format!("-p {pid} -e {event} --duration 300ms");
    for verb in ["record -o trace", "trace", "top", "stat", "stat -I 100"] {
        let process = Process::spawn(paged(&lab, KEEP, &format!("$usdtrec {verb} {limits}")));
        target.tell("fire 3");
        process.finish().success();
        assert_eq!(kept(&lab), None, "{verb}");
    }
}

/// On a terminal that `less` shows, what fits is printed as without it.
#[test]
fn less_shows_what_fits_and_ends() {
    let lab = Lab::new();
    need_tool("less");
    let gc = format!("$usdtrec report -i {DEMO} --span gc --min 2500us");
    // It writes more than a line that is as wide as the terminal.
    let size = [100, 24];
    let plain = on_terminal(&lab, size, &format!("{gc} --no-pager"));
    let mut command = terminal(&lab, size, &gc);
    command.env("PAGER", "less").env_remove("LESS");
    let seen = run(command).success().stdout.replace('\r', "");
    let lines: Vec<&str> = plain.lines().collect();
    assert!(lines.len() < 24, "{plain}");
    for line in lines {
        assert!(seen.contains(line), "{line}: {seen}");
    }
}
