//! The packages that we depend on: licences, versions and sources that `deny.toml` allows, and the Rust that they need.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::common::{run, test};

/// What `cargo metadata` says of the packages of a workspace on this platform, ours among them. It downloads those of features that are off.
fn packages(workspace: &str) -> Vec<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let mut metadata = Command::new(cargo);
    metadata.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(workspace));
    metadata.args(["metadata", "--format-version=1", "--locked"]);
    metadata.args([
        "--all-features",
        "--filter-platform",
        "x86_64-unknown-linux-gnu",
    ]);
    let metadata = run(metadata).success().stdout;
    let mut metadata: Value = serde_json::from_str(&metadata).expect("JSON");
    let nodes = metadata["resolve"]["nodes"].as_array().expect("nodes");
    let used: BTreeSet<String> = nodes.iter().map(|node| text(&node["id"])).collect();
    let Value::Array(mut packages) = metadata["packages"].take() else {
        panic!("no packages")
    };
    packages.retain(|package| used.contains(&text(&package["id"])));
    assert!(packages.len() > 50, "{packages:?}");
    packages
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// `deny.toml`.
fn rules() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deny.toml");
    std::fs::read_to_string(path).expect("deny.toml")
}

/// The texts of a list of `deny.toml`, and the `crate` of its tables.
fn list(rules: &str, section: &str, name: &str) -> BTreeSet<String> {
    let rules = DeTable::parse(rules).expect("TOML");
    let section = rules.get_ref().get(section).expect("a section");
    let list = section
        .get_ref()
        .get(name)
        .and_then(|list| list.get_ref().as_array());
    let text = |item: &DeValue<'_>| {
        let item = item.get("crate").map_or(item, Spanned::get_ref);
        item.as_str().expect("a text").to_owned()
    };
    let list = list.expect("a list").iter();
    list.map(|item| text(item.get_ref())).collect()
}

/// The licences that `deny.toml` allows a package besides.
fn exceptions(rules: &str, package: &str) -> BTreeSet<String> {
    let rules = DeTable::parse(rules).expect("TOML");
    let section = rules.get_ref().get("licenses").expect("a section");
    let list = section.get_ref().get("exceptions").expect("exceptions");
    let list = list.get_ref().as_array().expect("a list").iter();
    let of_package = list.filter(|item| {
        let name = item.get_ref().get("crate").expect("a package");
        name.get_ref().as_str() == Some(package)
    });
    let licences = of_package.flat_map(|item| {
        let allow = item.get_ref().get("allow").expect("licences");
        let allow = allow.get_ref().as_array().expect("a list").iter();
        allow.map(|licence| licence.get_ref().as_str().expect("a text").to_owned())
    });
    licences.collect()
}

/// Whether an SPDX expression holds with these licences: any of an `OR`, all of an `AND`, which binds tighter.
fn permits(expression: &str, allowed: &BTreeSet<String>) -> bool {
    if let Some(open) = expression.find('(') {
        let close = expression[open..].find(')').map(|at| open + at);
        let close = close.expect("a closing parenthesis");
        // What is in parentheses counts as one licence, which is allowed or not.
        let inner = permits(&expression[open + 1..close], allowed);
        let inner = if inner { "MIT" } else { "refused" };
        return permits(
            &[&expression[..open], inner, &expression[close + 1..]].concat(),
            allowed,
        );
    }
    let expression = expression.replace('/', " OR ");
    expression.split(" OR ").any(|all| {
        let licences = all.split(" AND ").map(str::trim);
        licences
            .into_iter()
            .all(|licence| allowed.contains(licence))
    })
}

#[test]
fn expressions_of_licences() {
    let allowed = ["MIT", "Apache-2.0"].map(str::to_owned).into();
    for good in [
        "MIT",
        "GPL-3.0 OR MIT",
        "Apache-2.0/MIT",
        "(GPL-2.0 OR MIT) AND Apache-2.0",
    ] {
        assert!(permits(good, &allowed), "{good}");
    }
    for bad in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "(MIT OR GPL-2.0) AND GPL-3.0",
        "MIT WITH some-exception",
    ] {
        assert!(!permits(bad, &allowed), "{bad}");
    }
}

#[test]
fn licences_versions_and_sources() {
    let rules = rules();
    let (allowed, skipped) = (
        list(&rules, "licenses", "allow"),
        list(&rules, "bans", "skip"),
    );
    let registries = list(&rules, "sources", "allow-registry");
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in ["", "python"].into_iter().flat_map(packages) {
        let name = text(&package["name"]);
        let licence = text(&package["license"]);
        let mut allowed = allowed.clone();
        allowed.extend(exceptions(&rules, &name));
        assert!(
            permits(&licence, &allowed),
            "{name}: {licence:?} is not in deny.toml"
        );
        let source = text(&package["source"]);
        let registry = source.strip_prefix("registry+").unwrap_or(&source);
        let is_ours = source.is_empty() && name.starts_with("usdtrec");
        assert!(
            is_ours || registries.contains(registry),
            "{name} comes from {source:?}"
        );
        versions
            .entry(name)
            .or_default()
            .insert(text(&package["version"]));
    }
    let mut unneeded = skipped.clone();
    for (name, versions) in &versions {
        let names: Vec<String> = versions
            .iter()
            .map(|version| format!("{name}@{version}"))
            .collect();
        let kept = names.iter().filter(|name| !skipped.contains(*name));
        assert!(
            kept.count() <= 1,
            "several versions of a package, which deny.toml does not skip: {names:?}"
        );
        if names.len() > 1 {
            unneeded.retain(|name| !names.contains(name));
        }
    }
    assert!(
        unneeded.is_empty(),
        "deny.toml skips what is not there twice: {unneeded:?}"
    );
}

/// All crates that are published can be packaged: their manifests are complete, and what they depend on is published, too.
#[test]
fn published_crates_can_be_packaged() {
    let target = tempfile::tempdir().expect("a directory");
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let mut package = Command::new(cargo);
    package.current_dir(env!("CARGO_MANIFEST_DIR"));
    package.args([
        "package",
        "--workspace",
        "--offline",
        "--no-verify",
        "--allow-dirty",
        "--quiet",
    ]);
    package.arg("--target-dir").arg(target.path());
    let mut expected = BTreeSet::new();
    for ours in packages("")
        .iter()
        .filter(|package| package["source"].is_null())
    {
        let name = text(&ours["name"]);
        // An empty list of registries: `publish = false`.
        if ours["publish"].as_array().is_some_and(Vec::is_empty) {
            package.args(["--exclude", &name]);
        } else {
            expected.insert(format!("{name}-{}.crate", text(&ours["version"])));
        }
    }
    assert!(expected.len() > 5, "{expected:?}");
    run(package).success();
    for file in expected {
        let path = target.path().join("package").join(&file);
        assert!(path.is_file(), "{file} was not made");
    }
}

/// Everything builds with the Rust that we promise, as far as packages say. That our own code does is for clippy's `incompatible_msrv`.
#[test]
fn no_package_needs_a_later_rust() {
    let number = |version: &str| -> Vec<u32> {
        let parts = version
            .split('.')
            .map(|part| part.parse().expect("a number"));
        parts.collect()
    };
    let promised = env!("CARGO_PKG_RUST_VERSION");
    for package in packages("") {
        let (name, needed) = (text(&package["name"]), text(&package["rust_version"]));
        if package["source"].is_null() {
            assert_eq!(needed, promised, "{name}");
            for field in ["description", "license", "readme", "keywords", "categories"] {
                let value = &package[field];
                let is_there = value.as_str().is_some_and(|text| !text.is_empty())
                    || value.as_array().is_some_and(|list| !list.is_empty());
                assert!(is_there, "{name} has no {field}");
            }
        } else if !needed.is_empty() {
            assert!(
                number(&needed)[..2] <= number(promised)[..],
                "{name} needs Rust {needed}"
            );
        }
    }
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/Cargo.toml");
    let fuzz = std::fs::read_to_string(fuzz).expect("the fuzz targets' manifest");
    assert!(
        fuzz.contains(&format!("rust-version = \"{promised}\"")),
        "{fuzz}"
    );
}
