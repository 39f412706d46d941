//! Control groups of processes in formats of other programs.

use std::fs;
use std::process::Command;

use serde_json::json;

use super::otlp::of_json;
use super::trace_processor::{asked, user_interface};
use crate::cgroups::Group;
use crate::common::{Lab, Process, Recorder, test};
use crate::node::{NODE, tell};

/// Records requests of a program in a control group.
#[track_caller]
fn record_in(group: &Group, lab: &Lab) {
    let program = NODE.make(lab, "node.c", "node");
    let mut node = Process::spawn(Command::new(&program));
    group.take(node.pid());
    let event = format!("node:http__*@{}", program.display());
    let recorder = Recorder::start(lab, ["-a", "-o", "trace", "-e", &event]);
    tell(&mut node, "request 5");
    recorder.stop();
}

#[track_caller]
fn exported(lab: &Lab, format: &str) -> Vec<u8> {
    lab.usdtrec(["export", "-i", "trace", "--to", format, "-o", format])
        .success();
    fs::read(lab.file(format)).expect("a file")
}

#[test]
fn processes_have_their_group_and_container() {
    let lab = Lab::privileged();
    let id = "0123456789abcdef".repeat(4);
    let group = Group::new(&lab, &format!("docker-{id}.scope"));
    record_in(&group, &lab);

    let spans = String::from_utf8(exported(&lab, "otlp")).expect("UTF-8");
    let spans = of_json(&spans);
    assert!(spans.len() > 5);
    for span in spans {
        assert_eq!(span.resource["process.linux.cgroup"], json!(group.path));
        assert_eq!(span.resource["container.id"], json!(id));
        assert!(span.resource["host.arch"].is_string());
    }
}

/// What Perfetto's user interface shows beside the name of a process.
#[test]
fn perfetto_has_the_group_as_a_label() {
    let lab = Lab::privileged();
    let ui = user_interface();
    let group = Group::new(&lab, "labelled");
    record_in(&group, &lab);
    exported(&lab, "perfetto");
    let labels = "select process.name as process, string_value as label from process \
                  join args using (arg_set_id) where flat_key = 'chrome.process_label'";
    let faults = "select name from stats where value > 0 and severity in ('error', 'data_loss')";
    let answer = asked(&lab, &ui, &lab.file("perfetto"), &[labels, faults]);
    let expected = json!([[{"process": "node", "label": group.path}], []]);
    assert_eq!(answer["results"], expected, "{answer}");
}
