//! What files of a crate import from each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{read_dir, read_to_string};
use std::path::Path;

use super::tokens::tokens;
use crate::common::test;

/// Maximum number of re-exports that are followed to what they name.
const MAX_EXPORTS: usize = 10;

/// A module, or an item in one, from the crate's root.
type Names = Vec<String>;

/// An item that a file imports from another one, or names by its path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Import {
    pub(crate) from: String,
    /// The file that defines it, or the one that it is named by, which re-exports it.
    pub(crate) to: String,
    pub(crate) item: String,
}

/// The modules of a crate that are files.
pub(crate) struct Crate {
    /// By their names, the tokens of their source.
    modules: BTreeMap<Names, Vec<String>>,
    /// What modules re-export: the module, the name there, and what it is.
    exports: BTreeMap<(Names, String), Names>,
}

/// One name of a `use` declaration.
struct Used {
    path: Names,
    name: String,
    is_export: bool,
}

impl Crate {
    /// The crate with this folder of sources.
    pub(crate) fn read(src: &Path) -> Self {
        let mut modules = BTreeMap::new();
        read_folder(src, &[], &mut modules);
        Self::new(modules)
    }

    fn new(modules: BTreeMap<Names, Vec<String>>) -> Self {
        let mut all = Self {
            modules,
            exports: BTreeMap::new(),
        };
        for (module, source) in &all.modules {
            for used in uses(source).into_iter().filter(|used| used.is_export) {
                if let Some(path) = absolute(&all.modules, module, &used.path) {
                    all.exports.insert((module.clone(), used.name), path);
                }
            }
        }
        all
    }

    /// The files, each with the tokens of its source.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (String, &[String])> {
        let modules = self.modules.iter();
        modules.map(|(module, source)| (file(module), source.as_slice()))
    }

    /// All imports, in order: of the files that define what is imported. With `by_name`, also of those that it is named by, and re-exports are imports.
    pub(crate) fn imports(&self, by_name: bool) -> Vec<Import> {
        let mut imports = BTreeSet::new();
        for (module, source) in &self.modules {
            for path in self.paths(module, source, by_name) {
                let named = by_name.then(|| self.definition(&path, MAX_EXPORTS));
                let files = named.into_iter().chain([self.definition(&path, 0)]);
                imports.extend(
                    files
                        .filter(|(to, _)| to != module)
                        .filter_map(|(to, item)| {
                            Some(Import {
                                from: file(module),
                                to: file(&to),
                                item: item?,
                            })
                        }),
                );
            }
        }
        imports.into_iter().collect()
    }

    /// What a module names in this crate: in paths, and in `use` declarations, of which re-exports count if `has_exports`.
    fn paths(&self, module: &Names, source: &[String], has_exports: bool) -> Vec<Names> {
        let mut names = BTreeMap::new();
        let mut paths = Vec::new();
        for used in uses(source) {
            if let Some(path) = absolute(&self.modules, module, &used.path) {
                names.insert(used.name, path.clone());
                paths.extend((has_exports || !used.is_export).then_some(path));
            }
        }
        for path in inline_paths(source) {
            let rest = path.get(1..).unwrap_or_default();
            match path.first().and_then(|first| names.get(first)) {
                Some(known) => paths.push([known, rest].concat()),
                None => paths.extend(absolute(&self.modules, module, &path)),
            }
        }
        paths
    }

    /// The module that defines what a path means, and the item, if it is none itself.
    fn definition(&self, path: &[String], depth: usize) -> (Names, Option<String>) {
        let mut module = Names::new();
        for (at, name) in path.iter().enumerate() {
            let inner = [module.as_slice(), std::slice::from_ref(name)].concat();
            if self.modules.contains_key(&inner) {
                module = inner;
                continue;
            }
            let export = self.exports.get(&(module.clone(), name.clone()));
            return match export.filter(|_| depth < MAX_EXPORTS) {
                Some(export) => {
                    let rest = &path[at + 1..];
                    self.definition(&[export, rest].concat(), depth + 1)
                }
                None => (module, Some(name.clone())),
            };
        }
        (module, None)
    }
}

fn read_folder(folder: &Path, module: &[String], modules: &mut BTreeMap<Names, Vec<String>>) {
    for entry in read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        let stem = path.file_stem().expect("a name").to_string_lossy();
        let mut inner = module.to_vec();
        if path.is_dir() {
            inner.push(stem.into_owned());
            read_folder(&path, &inner, modules);
        } else if path.extension().is_some_and(|extension| extension == "rs") && stem != "tests" {
            if !["mod", "lib"].contains(&&*stem) {
                inner.push(stem.into_owned());
            }
            let source = read_to_string(&path).expect("a source");
            modules.insert(inner, tokens(&source));
        }
    }
}

fn file(module: &Names) -> String {
    match module.is_empty() {
        true => "lib".to_owned(),
        false => module.join("/"),
    }
}

/// A path from the crate's root; `None` if it leads elsewhere.
fn absolute(
    modules: &BTreeMap<Names, Vec<String>>,
    module: &Names,
    path: &[String],
) -> Option<Names> {
    let mut base = module.clone();
    let mut rest = path;
    match &**path.first()? {
        "crate" => {
            base.clear();
            rest = &path[1..];
        }
        "self" => rest = &path[1..],
        "super" => {
            while rest.first().is_some_and(|name| name == "super") {
                base.pop();
                rest = &rest[1..];
            }
        }
        child => {
            let inner = [base.as_slice(), &[child.to_owned()]].concat();
            modules.get(&inner)?;
        }
    }
    Some([&base, rest].concat())
}

/// All names of all `use` declarations.
fn uses(source: &[String]) -> Vec<Used> {
    let mut all = Vec::new();
    for (at, _) in source.iter().enumerate().filter(|(_, word)| *word == "use") {
        let before = at.checked_sub(1).and_then(|at| source.get(at));
        let is_export = before.is_some_and(|word| word == "pub" || word == ")");
        let tree = source[at + 1..].split(|word| word == ";").next();
        let mut found = Vec::new();
        tree_of(tree.unwrap_or_default(), &[], &mut found);
        all.extend(found.into_iter().map(|(path, name)| Used {
            path,
            name,
            is_export,
        }));
    }
    all
}

/// The names of a tree: `a::{b, c::{self, d as e}}`.
fn tree_of(tree: &[String], outer: &[String], found: &mut Vec<(Names, String)>) {
    let mut depth = 0;
    let parts = tree.split(|word| {
        depth += i32::from(word == "{") - i32::from(word == "}");
        depth == 0 && word == ","
    });
    for part in parts.filter(|part| !part.is_empty()) {
        let brace = part.iter().position(|word| word == "{");
        let (head, inner) = match brace {
            Some(at) => (&part[..at], Some(&part[at + 1..part.len() - 1])),
            None => (part, None),
        };
        let alias = head.iter().position(|word| word == "as");
        let names = head[..alias.unwrap_or(head.len())].iter();
        let names = names.filter(|word| *word != "::").cloned();
        let mut path: Names = outer.iter().cloned().chain(names).collect();
        match inner {
            Some(inner) => tree_of(inner, &path, found),
            None => {
                if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                    path.pop();
                }
                let name = match alias {
                    Some(at) => head.get(at + 1),
                    None => path.last(),
                };
                if let Some(name) = name.cloned() {
                    found.push((path, name));
                }
            }
        }
    }
}

/// Paths of two names or more outside `use` declarations.
fn inline_paths(source: &[String]) -> Vec<Names> {
    let mut paths = Vec::new();
    let mut at = 0;
    while let Some(word) = source.get(at) {
        if word == "use" {
            at += source[at..]
                .iter()
                .position(|word| word == ";")
                .unwrap_or(1);
        } else if source.get(at + 1).is_some_and(|next| next == "::") && word != "::" {
            let mut path = vec![word.clone()];
            while let [colons, name, ..] = &source[at + 1..]
                && colons == "::"
                && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            {
                path.push(name.clone());
                at += 2;
            }
            paths.push(path);
        }
        at += 1;
    }
    paths
}

#[test]
fn a_file_that_reexports_a_name_is_imported_by_that_name() {
    let module = |path: &str, source: &str| {
        let names = path.split('/').filter(|name| !name.is_empty());
        (names.map(str::to_owned).collect(), tokens(source))
    };
    let sources = [
        module("", ""),
        module("a", "pub use self::b::X;"),
        module("a/b", "pub struct X; use super::c::Y;"),
        module("a/c", "pub struct Y; use crate::a::X;"),
    ];
    let known = Crate::new(sources.into());
    let pairs = |by_name| {
        let imports = known.imports(by_name).into_iter();
        let pairs = imports.map(|import| format!("{} {}", import.from, import.to));
        pairs.collect::<Vec<_>>()
    };
    assert_eq!(pairs(false), ["a/b a/c", "a/c a/b"]);
    assert_eq!(pairs(true), ["a a/b", "a/b a/c", "a/c a", "a/c a/b"]);
}

#[test]
fn trees_and_paths_are_found() {
    let source =
        tokens("pub use a::{b, c::{self, d as e}}; use super::x; fn f() { g::h::<T>(); y }");
    let found: Vec<(String, String, bool)> = uses(&source)
        .into_iter()
        .map(|used| (used.path.join("::"), used.name, used.is_export))
        .collect();
    let expected = [
        ("a::b", "b", true),
        ("a::c", "c", true),
        ("a::c::d", "e", true),
        ("super::x", "x", false),
    ];
    let expected = expected.map(|(path, name, export)| (path.to_owned(), name.to_owned(), export));
    assert_eq!(found, expected);
    assert_eq!(inline_paths(&source), [["g", "h"]]);
}
