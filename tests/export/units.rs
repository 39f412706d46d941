//! The units of systemd in fleet/: systemd accepts them, and what they start works.

use std::fs;
use std::path::Path;

use crate::common::{Lab, Postgres, Process, find_tool, need_parquet, need_tool, run, test};

const FLEET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fleet");
const PROGRAM: &str = env!("CARGO_BIN_EXE_usdtrec");

fn unit(name: &str) -> String {
    fs::read_to_string(format!("{FLEET}/{name}")).expect("a file")
}

#[test]
fn systemd_accepts_the_units() {
    need_tool("systemd-analyze");
    need_tool("rsync");
    let lab = Lab::new();
    let service = unit("usdtrec-window.service").replace("/usr/bin/usdtrec", PROGRAM);
    fs::write(lab.file("usdtrec-window.service"), service).expect("a file");
    let timer = unit("usdtrec-window.timer");
    fs::write(lab.file("usdtrec-window.timer"), timer).expect("a file");
    let timer = unit("usdtrec-same-second.timer");
    fs::write(lab.file("usdtrec-same-second.timer"), timer).expect("a file");
    let analyze = find_tool("systemd-analyze").expect("a program");
    let units = [
        "verify",
        "./usdtrec-window.service",
        "./usdtrec-window.timer",
        "./usdtrec-same-second.timer",
    ];
    run(lab.at_home(&analyze, units)).success().silent();
    // What it says of a unit that is wrong.
    let wrong = unit("usdtrec-window.service").replace("/usr/bin/usdtrec", "/usr/bin/nowhere");
    fs::write(lab.file("usdtrec-window.service"), wrong).expect("a file");
    let verified = run(lab.at_home(&analyze, units));
    assert!(verified.stderr.contains("nowhere"), "{verified:?}");
}

/// Hosts of all time zones begin at the same moment, which systemd neither delays nor moves to save wake-ups.
#[test]
fn hosts_begin_in_the_same_second() {
    need_tool("systemd-analyze");
    let lab = Lab::new();
    let timer = unit("usdtrec-same-second.timer");
    let setting = |name: &str| timer.lines().find_map(|line| line.strip_prefix(name));
    assert_eq!(setting("AccuracySec="), Some("1us"));
    assert_eq!(setting("RandomizedDelaySec="), None);
    let calendar = setting("OnCalendar=").expect("a time");
    let analyze = find_tool("systemd-analyze").expect("a program");
    for (zone, now) in [
        ("UTC", "2026-11-23 11:30:00 UTC"),
        ("Asia/Kolkata", "2026-11-23 11:59:59 UTC"),
    ] {
        let base = format!("--base-time={now}");
        let mut command = lab.at_home(&analyze, ["calendar", &base, calendar]);
        command.env("TZ", zone);
        let next = run(command).success().stdout;
        assert!(next.contains("2026-11-23 12:00:00 UTC"), "{zone}: {next}");
    }
}

/// The commands of the service, with a recording that a signal ends and another target.
#[test]
fn the_service_records_exports_and_sends() {
    need_parquet();
    need_tool("rsync");
    let lab = Lab::privileged();
    let postgres = Postgres::start();
    let program = Postgres::program();
    let index = [Path::new("buildid-cache"), Path::new("--add"), &program];
    lab.usdtrec(index).success();
    fs::write(lab.file("hash.key"), "a key of 16 byte").expect("a file");
    let service = unit("usdtrec-window.service");
    let settings = service
        .lines()
        .find_map(|line| line.strip_prefix("Environment="));
    let settings = settings.expect("settings").split(' ');
    let mut commands = 0;
    for line in service.lines() {
        let Some(command) = line.strip_prefix("ExecStart=") else {
            continue;
        };
        let mut command = command.to_owned();
        for (name, value) in settings.clone().filter_map(|one| one.split_once('=')) {
            let value = if name == "TARGET" { "sent/" } else { value };
            command = command.replace(&format!("${{{name}}}"), value);
        }
        let command = command.replace("/etc/usdtrec/", "");
        let mut words = command.split(' ');
        let program = words.next().expect("a program");
        let program = program.replace("/usr/bin/usdtrec", PROGRAM);
        let mut started = Process::spawn(lab.at_home(program.as_ref(), words));
        if command.contains(" record ") {
            started.until_error_line("[ usdtrec ");
            postgres.ask("select 'customer'");
            started.signal("INT");
        }
        started.finish().success();
        commands += 1;
    }
    assert_eq!(commands, 3);
    let sent = lab.usdtrec(["sql", "--engine", "duckdb", "sent"]).success();
    assert!(
        sent.stdout.contains("span_postgresql_query"),
        "{}",
        sent.stdout
    );
}
