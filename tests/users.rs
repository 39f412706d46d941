//! The users of processes, at their hits.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::common::{Build, Lab, Perf, need_tool, test};

/// Any user but root.
const USER: u32 = 1234;

/// Records three hits of root, and four of [`USER`], with these options after the event, which is returned.
#[track_caller]
fn record(lab: &Lab, options: &[&str]) -> String {
    need_tool("setpriv");
    let program = Build::USUAL.make(lab, "ticker.c", "ticker");
    // The other user executes a program in it.
    fs::set_permissions(lab.path(), Permissions::from_mode(0o755)).expect("a directory");
    let program = program.display();
    let event = format!("sdt_ticker:tick@{program}");
    let other = format!("setpriv --reuid {USER} --regid {USER} --clear-groups {program} 4");
    let script = format!("{program} 3; {other}");
    let command = ["record", "-o", "trace", "-e", &event];
    let command = command.iter().chain(options);
    lab.usdtrec(command.chain(&["--", "sh", "-c", &script]))
        .success();
    event
}

/// What a command prints of the trace.
#[track_caller]
fn printed(lab: &Lab, command: &str, options: &[&str]) -> String {
    let all = [command, "-i", "trace"];
    lab.usdtrec(all.iter().chain(options)).success().stdout
}

/// A member of each line of JSON.
#[track_caller]
fn members(lab: &Lab, command: &str, options: &[&str], name: &str) -> Vec<Value> {
    let json = printed(lab, command, &[options, &["--format", "json"]].concat());
    let lines = json.lines().filter(|line| !line.is_empty());
    let lines = lines.map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    lines.map(|line| line[name].clone()).collect()
}

/// The users of all hits.
#[track_caller]
fn users(lab: &Lab) -> Vec<Value> {
    members(lab, "script", &["-F", "+uid"], "uid")
}

#[test]
fn hits_have_the_user_of_their_process() {
    let lab = Lab::privileged();
    record(&lab, &["--engine", "bpf"]);
    let of_rows = |name: &str| members(&lab, "report", &["--sort", "uid"], name);
    assert_eq!(of_rows("uid"), [json!(USER), json!(0)]);
    assert_eq!(of_rows("samples"), [json!(4), json!(3)]);
    assert_eq!(
        users(&lab),
        [vec![json!(0); 3], vec![json!(USER); 4]].concat()
    );
    let text = printed(&lab, "script", &["-F", "comm,uid"]);
    let count = |end: &str| text.lines().filter(|line| line.ends_with(end)).count();
    assert_eq!((count(" 1234"), count(" 0")), (4, 3), "{text}");
    let filter = ["--filter", "uid == 1234 && arg1 < 2"];
    for (options, shown) in [
        (&["-F", "uid", "--format", "csv"][..], "uid\n1234\n1234\n"),
        (&["--format", "{uid:>6}"], "  1234\n  1234\n"),
    ] {
        let options = [options, &filter].concat();
        assert_eq!(printed(&lab, "script", &options), shown);
    }
    // perf reads the CPU, which is next to it.
    let perf = Perf::new(&lab);
    let cpus = perf.run(["script", "-i", "trace", "-F", "cpu"]);
    let cpus = cpus.success().stdout;
    assert_eq!(cpus.lines().count(), 7, "{cpus}");
    for line in cpus.lines() {
        let cpu = line.trim().trim_matches(['[', ']']).parse::<u32>();
        assert!(cpu.is_ok_and(|cpu| cpu < 1 << 16), "{line}");
    }
}

/// Also where hits have stacks.
#[test]
fn filters_of_recordings_take_users() {
    let lab = Lab::privileged();
    let filter = ["--filter", "uid == 1234"];
    let event = record(&lab, &[&["-g", "--engine", "bpf"][..], &filter].concat());
    assert_eq!(users(&lab), vec![json!(USER); 4]);
    // Perf events do not sample it.
    let command = ["record", "--engine", "perf", "-e", &event];
    let command = command.iter().chain(&filter);
    lab.usdtrec(command.chain(&["--", "true"]))
        .exits(2)
        .complains("a filter of uid needs the bpf engine");
}

#[test]
fn traces_without_users_say_so() {
    let lab = Lab::privileged();
    record(&lab, &["--engine", "perf"]);
    assert_eq!(users(&lab), vec![Value::Null; 7]);
    let text = printed(&lab, "script", &["-F", "comm,uid"]);
    let reason = " <user not recorded: the bpf engine records it>";
    let count = text.lines().filter(|line| line.ends_with(reason)).count();
    assert_eq!(count, 7, "{text}");
    // That is older than the field.
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/demo.data");
    for trace in ["trace", demo] {
        lab.usdtrec(["report", "-i", trace, "--sort", "uid"])
            .exits(1)
            .complains("uid needs the users of processes, which the bpf engine records");
        lab.usdtrec(["script", "-i", trace, "--filter", "uid == 0"])
            .exits(1)
            .complains("has no argument uid");
    }
}
