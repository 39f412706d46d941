//! PHP 8.2: `php:function__entry`.

use crate::common::{Lab, need_tool, test};

const SCRIPT: &str = r#"<?php
function add($a, $b) {
    return $a + $b;
}
class Greeter {
    function greet($name) {
        return "hello $name";
    }
}
for ($i = 0; $i < 5; $i++) {
    add($i, 1);
}
$greeter = new Greeter;
$greeter->greet("world");
"#;

/// Every call with the line it is at: the script itself, `add` five times, `greet`.
#[test]
fn function_entry() {
    let lab = Lab::privileged();
    need_tool("php8.2");
    std::fs::write(lab.file("script.php"), SCRIPT).expect("a file");
    lab.usdtrec(["buildid-cache", "--add", "php8.2"]).success();
    let mut record = lab.command(["record", "-o", "trace", "-e", "sdt_php:function__entry"]);
    record
        .args(["--", "php8.2", "script.php"])
        .env("USE_ZEND_DTRACE", "1");
    crate::common::run(record).success();
    let events = lab.events("trace");
    assert!(
        events
            .iter()
            .all(|event| event.event == "sdt_php:function__entry")
    );
    let lines: Vec<i128> = events.iter().map(|event| event.integer(3)).collect();
    assert_eq!(lines, [10, 3, 3, 3, 3, 3, 7]);
    let functions: Vec<&str> = events.iter().map(|event| event.string(1)).collect();
    assert_eq!(
        functions,
        ["main", "add", "add", "add", "add", "add", "greet"]
    );
    let file = lab.file("script.php");
    assert!(
        events
            .iter()
            .all(|event| event.string(2) == file.to_str().expect("a path"))
    );
    assert_eq!(events[6].string(4), "Greeter", "the class of the method");
    assert_eq!(events[0].argument_count(), 5);
}

/// What is thrown comes as a string, what is caught as PHP's own string object, whose bytes follow its head.
#[test]
fn exceptions() {
    let lab = Lab::privileged();
    need_tool("php8.2");
    let script = "<?php try { throw new DomainException(\"x\"); } catch (LogicException $e) {} ?>";
    std::fs::write(lab.file("script.php"), script).expect("a file");
    lab.usdtrec(["buildid-cache", "--add", "php8.2"]).success();
    let events = [
        "php:exception__thrown",
        "php:exception__caught(class=str(class+24))",
    ];
    let mut record = lab.command(["record", "-o", "trace", "-e", events[0], "-e", events[1]]);
    record
        .args(["--", "php8.2", "script.php"])
        .env("USE_ZEND_DTRACE", "1");
    crate::common::run(record).success();
    let events = lab.events("trace");
    let strings: Vec<_> = events
        .iter()
        .map(|event| (event.name(), event.string(1)))
        .collect();
    assert_eq!(
        strings,
        [
            ("exception__thrown", "DomainException"),
            ("exception__caught", "DomainException")
        ]
    );
}
