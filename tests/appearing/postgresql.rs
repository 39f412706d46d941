//! PostgreSQL of another Debian release than this host's, in a container: overlay, and namespaces of users, mounts, processes, networks and control
//! groups.

use std::path::Path;

use super::need_tools;
use crate::common::{
    DebianPackages, Lab, Process, alone_with, debian_packages, events_named, need_tool, run,
    signal, test,
};

/// What a server needs, with the C library that it was built with.
const PACKAGES: [&str; 37] = [
    "postgresql-17",
    "postgresql-client-17",
    "dash",
    "libaudit1",
    "libbsd0",
    "libc6",
    "libcap-ng0",
    "libcap2",
    "libcom-err2",
    "libedit2",
    "libgcc-s1",
    "libgssapi-krb5-2",
    "libicu76",
    "libk5crypto3",
    "libkeyutils1",
    "libkrb5-3",
    "libkrb5support0",
    "libldap2",
    "liblz4-1",
    "liblzma5",
    "libmd0",
    "libpam0g",
    "libpcre2-8-0",
    "libpq5",
    "libreadline8t64",
    "libsasl2-2",
    "libselinux1",
    "libssl3t64",
    "libstdc++6",
    "libsystemd0",
    "libtinfo6",
    "libuuid1",
    "libxml2",
    "libxxhash0",
    "libzstd1",
    "tzdata",
    "zlib1g",
];

/// Runs `$RUN` below `$PACKAGES` as user 70, who is root here, since root may not run a server.
const CONTAINER: &str = r#"
exec unshare --user --map-root-user --mount --pid --fork --kill-child --uts --ipc --net --cgroup sh -c '
  mount -t overlay none -o "lowerdir=$PACKAGES,upperdir=upper,workdir=work" root && mount -t proc proc root/proc &&
  mount --rbind /dev root/dev && exec unshare --user --map-user=70 --map-group=70 --root=root sh -c "$RUN"'
"#;
const FILES: &str = "mkdir -p upper/data upper/dev upper/etc upper/proc upper/tmp work root && chmod 700 upper/data && \
                     ln -s usr/bin usr/lib usr/lib64 upper/ && echo 'postgres:x:70:70::/:/bin/sh' >upper/etc/passwd";

const QUERIES: usize = 20;

#[test]
fn a_server_in_a_container_is_recorded() {
    let lab = Lab::privileged();
    need_tools();
    let psql = "/usr/lib/postgresql/15/bin/psql";
    need_tool(psql);
    // Recorders of all processes see every server: one test at a time runs one.
    let _alone = alone_with("/usr/lib/postgresql/15/bin/postgres");
    let packages = debian_packages(DebianPackages {
        name: "postgresql-17",
        suite: "trixie",
        packages: &PACKAGES,
        is_complete: false,
    });
    let container = |command: &str| {
        let mut container = lab.at_home(Path::new("sh"), ["-c", CONTAINER]);
        container.env("PACKAGES", &packages);
        container.env(
            "RUN",
            format!("PATH=/usr/lib/postgresql/17/bin:/usr/bin; {command}"),
        );
        container
    };
    run(lab.at_home(Path::new("sh"), ["-c", FILES])).success();
    run(container(
        "initdb -D /data -U postgres -A trust -E UTF8 --no-sync --locale=C",
    ))
    .success();
    let events = "postgresql:query__start,postgresql:query__done";
    let mut recorder = Process::spawn(lab.command(["record", "-a", "-o", "trace", "-e", events]));
    recorder.until_error_line("[ usdtrec record: 0 probes");
    let server =
        "exec postgres -D /data -k /tmp -c listen_addresses= -c fsync=off -c autovacuum=off";
    let mut server = Process::spawn(container(server));
    server.until_error_line("ready to accept connections");
    recorder.until_error_line("attached 2 probes ");
    // Its first child is the server, as process 1 of its namespace.
    let pid = server.pid();
    let child = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let child = child.expect("children").trim().to_owned();
    let mut client = lab.at_home(Path::new(psql), ["-AtX", "-U", "postgres", "-h"]);
    client.arg(format!("/proc/{child}/root/tmp"));
    let texts: Vec<String> = (0..QUERIES)
        .map(|number| format!("SELECT {number}, version()"))
        .collect();
    for text in &texts {
        client.args(["-c", text]);
    }
    client.arg("postgres");
    let answers = run(client).success().stdout;
    assert_eq!(
        answers.matches("|PostgreSQL 17.").count(),
        QUERIES,
        "{answers}"
    );
    recorder.signal("INT");
    let said = recorder.finish().success();
    said.complains("followed: ").complains(" 0 lost");
    let events = lab.events("trace");
    let started = events_named(&events, "query__start");
    let recorded: Vec<&str> = started.iter().map(|event| event.string(1)).collect();
    assert_eq!(recorded, texts);
    let done = events_named(&events, "query__done");
    let done: Vec<&str> = done.iter().map(|event| event.string(1)).collect();
    assert_eq!(done, texts);
    let spans = lab.usdtrec([
        "report", "-i", "trace", "--span", "query", "--format", "json",
    ]);
    let spans: serde_json::Value =
        serde_json::from_str(&spans.success().stdout).expect("an object");
    assert_eq!(spans["spans"][0]["count"], QUERIES, "{spans}");
    signal(child.parse().expect("a number"), "INT");
    server.finish();
}
