//! `FIELDS.md` names the members of `list --format json`, and there are those that it names.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{listed, program};
use crate::common::{Build, Lab, path_text, test};

/// Of each member that the document has, its path.
fn documented() -> BTreeSet<&'static str> {
    let document = include_str!("../../report/FIELDS.md");
    let (_, section) = document.split_once("\n## list\n").expect("a section");
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect()
}

/// Adds the paths of all members; those of tables of words are words.
fn members(path: &str, value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            let dot = if path.is_empty() { "" } else { "." };
            for (name, value) in object {
                let member = format!("{path}{dot}{name}");
                if !matches!(name.as_str(), "enum" | "flags") {
                    members(&member, value, found);
                }
                found.insert(member);
            }
        }
        Value::Array(all) => all
            .iter()
            .for_each(|value| members(&format!("{path}[]"), value, found)),
        _ => {}
    }
}

#[test]
fn members_are_those_of_the_document() {
    let lab = Lab::new();
    let ticker = program(&lab, "t");
    let with_lines = Build {
        compiler: "gcc",
        options: &["-O2", "-g"],
    };
    let node = with_lines.make(&lab, "node.c", "n");
    for file in [&ticker, &node] {
        lab.usdtrec(["buildid-cache", "--add", path_text(file)])
            .success();
    }
    std::fs::remove_file(&ticker).expect("it is there");
    let documented = documented();
    let mut found = BTreeSet::new();
    let schema = "[[probe]]\nprovider = \"node\"\nname = \"gc__start\"\nneeds = \"a switch\"\n\
                  description = \"begins\"\narguments = [\"type\", \"flags\", \"isolate\"]\n";
    std::fs::write(lab.file("node.toml"), schema).expect("a file");
    for line in listed(&lab, &["-v", "--schema", "node.toml"]) {
        members("", &line, &mut found);
    }
    for member in &found {
        assert!(
            documented.contains(&**member),
            "{member} is not in FIELDS.md"
        );
    }
    // Operands that these programs have not, and what their schemas do not say.
    let unmet = |member: &str| {
        member.starts_with("sites[].operands[].")
            || member.starts_with("arguments[].")
            || member == "needs"
    };
    for member in documented {
        assert!(
            found.contains(member) || unmet(member),
            "there is no {member}"
        );
    }
    for member in ["state", "arguments[].enum", "sites[].operands[].reg"] {
        assert!(found.contains(member), "{member} should be met");
    }
}
