//! The parents of processes, and what they call their services.

use serde_json::{Value, json};

use crate::common::{Build, Lab, run, test};

/// It prints its number. Programs run for a while after their hits.
const SCRIPT: &str = r#"
echo $$
say() { echo "fire $1"; echo "sleep 300"; }
say 3 | OTEL_SERVICE_NAME=shop "$0"
say 2 | OTEL_RESOURCE_ATTRIBUTES='host.name=a,service.name=web%20shop' "$0"
say 1 | "$0"
"#;

#[test]
fn hits_have_the_parent_and_the_service_of_their_process() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let event = format!("sdt_ticker:tick@{}", program.display());
    let mut record = lab.command(["record", "-o", "trace", "-e", &event, "--"]);
    record.args(["sh", "-c", SCRIPT]).arg(&program);
    let said = run(record).success().stdout;
    let shell = said.lines().next().expect("a pid");
    let shell: u32 = shell.trim().parse().expect("a pid");

    let print = |options: &[&str]| {
        let all = ["-i", "trace", "--format", "json"];
        let all = options.iter().copied().chain(all);
        let json = lab.usdtrec(all).success().stdout;
        let lines = json
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"));
        lines.collect::<Vec<Value>>()
    };
    let events = print(&["script", "-F", "+ppid,+parent,+service"]);
    assert_eq!(events.len(), 6);
    let services = [
        vec![json!("shop"); 3],
        vec![json!("web shop"); 2],
        vec![Value::Null],
    ]
    .concat();
    for (event, service) in events.iter().zip(services) {
        assert_eq!(event["ppid"], shell, "{event}");
        assert_eq!(event["parent"], "sh", "{event}");
        assert_eq!(event["service"], service, "{event}");
    }
    let groups = print(&["report", "--sort", "service,parent"]);
    let groups = groups
        .iter()
        .map(|group| (&group["service"], &group["samples"]));
    let expected = [
        (&json!("shop"), &json!(3)),
        (&json!("web shop"), &json!(2)),
        (&Value::Null, &json!(1)),
    ];
    assert_eq!(groups.collect::<Vec<_>>(), expected);
    let filtered = print(&[
        "script",
        "--filter",
        "service == \"shop\" && parent == \"sh\"",
    ]);
    assert_eq!(filtered.len(), 3);
}
