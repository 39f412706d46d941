//! A page of the documents: the commands and the source files that it shows.

use std::fs;
use std::path::{Path, PathBuf};

/// Parts of commands that cannot run here, and of what they print, one a line. `packaging/tests/guide` reads the list, too.
const ELSEWHERE: &str = include_str!("elsewhere");

/// A command and the lines that it prints on the page, if they are shown.
#[derive(Debug)]
pub(super) struct Example {
    pub(super) command: String,
    pub(super) prints: Vec<String>,
}

/// One Markdown file.
#[derive(Debug)]
pub(super) struct Page {
    path: PathBuf,
    text: String,
}

impl Page {
    /// A file of the repository.
    pub(super) fn read(path: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        Self { path, text }
    }

    /// All pages: those beside README, and all below `docs`.
    pub(super) fn all() -> Vec<Self> {
        let mut names = Vec::new();
        for directory in ["", "docs", "docs/guides", "docs/verbs"] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
            for entry in fs::read_dir(path).expect("a directory") {
                let name = entry.expect("an entry").file_name();
                let name = name.to_str().expect("a name in UTF-8");
                if name.ends_with(".md") {
                    names.push(Path::new(directory).join(name));
                }
            }
        }
        names.sort();
        let read = |name: &PathBuf| Self::read(name.to_str().expect("a name in UTF-8"));
        names.iter().map(read).collect()
    }

    /// The fenced blocks: the language that they name, and their lines.
    fn blocks(&self) -> impl Iterator<Item = (&str, &str)> {
        let blocks = self.text.split("```").skip(1).step_by(2);
        blocks.filter_map(|block| block.split_once('\n'))
    }

    /// The files whose sources are shown: blocks that begin with a comment of nothing but a file name.
    pub(super) fn sources(&self) -> Vec<(&str, &str)> {
        let named = self.blocks().filter_map(|(language, text)| {
            let first = text.lines().next().filter(|_| !language.is_empty())?;
            let name = first.strip_prefix("// ").or(first.strip_prefix("# "))?;
            name.contains('.').then_some((name, text))
        });
        named.collect()
    }

    /// The commands that can run here, without `sudo` and remarks.
    pub(super) fn examples(&self) -> Vec<Example> {
        let mut examples: Vec<Example> = Vec::new();
        for (_, block) in self.blocks().filter(|(_, block)| block.contains("$ ")) {
            let mut lines = block.lines().peekable();
            while let Some(line) = lines.next() {
                let Some(mut command) = line.strip_prefix("$ ").map(str::to_owned) else {
                    continue;
                };
                while command.ends_with('\\') {
                    command.pop();
                    command.push_str(lines.next().expect("a command goes on").trim());
                }
                // A text in quotes goes on as well.
                while command.matches('\'').count() % 2 == 1 {
                    command.push(' ');
                    command.push_str(lines.next().expect("a text goes on").trim());
                }
                let command = command.split("  #").next().unwrap_or(&command).trim();
                let command = command.strip_prefix("sudo ").unwrap_or(command);
                let mut prints = Vec::new();
                while let Some(line) = lines.next_if(|line| !line.starts_with("$ ")) {
                    prints.push(line.to_owned());
                }
                examples.push(Example {
                    command: command.to_owned(),
                    prints,
                });
            }
        }
        let elsewhere = ELSEWHERE.lines().filter(|line| !line.starts_with('#'));
        let is_here = |text: &str| !elsewhere.clone().any(|word| text.contains(word));
        examples.retain(|Example { command, prints }| {
            is_here(command) && prints.first().is_none_or(|line| is_here(line))
        });
        examples
    }

    /// The links to files, without those that lead nowhere else but into this page; what is after `#` is cut off.
    fn links(&self) -> impl Iterator<Item = &str> {
        let links = self.text.split("](").skip(1);
        let targets = links.filter_map(|rest| rest.split(')').next());
        let local = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
        local.map(|target| target.split('#').next().unwrap_or(target))
    }

    /// The links to files that do not exist.
    pub(super) fn dead_links(&self) -> Vec<&str> {
        let directory = self.path.parent().expect("a directory");
        let is_dead = |target: &&str| !directory.join(target).exists();
        self.links().filter(is_dead).collect()
    }

    /// Whether a link leads to a file.
    pub(super) fn leads_to(&self, path: &Path) -> bool {
        let directory = self.path.parent().expect("a directory");
        self.links().any(|target| directory.join(target) == path)
    }

    /// The text of the only block of a language.
    pub(super) fn block(&self, language: &str) -> &str {
        let mut blocks = self.blocks().filter(|(named, _)| *named == language);
        let (_, text) = blocks.next().expect(language);
        assert!(blocks.next().is_none(), "two blocks of {language}");
        text
    }

    /// The files and folders of the repository that the text names, not in blocks. The name of a source file alone is of the folder that was named last.
    pub(super) fn named_files(&self) -> Vec<PathBuf> {
        let prose = self.text.split("```").step_by(2);
        let quoted = prose.flat_map(|text| text.split('`').skip(1).step_by(2));
        let names = quoted.filter(|name| !name.contains(' ') && *name != "sys/sdt.h");
        let mut folder = PathBuf::new();
        let path = |name: &str| {
            if !name.contains('/') {
                return name.ends_with(".rs").then(|| folder.join(name));
            }
            let path = PathBuf::from(name);
            let is_folder = name.ends_with('/');
            folder = match path.parent() {
                Some(parent) if !is_folder => parent.to_owned(),
                _ => path.clone(),
            };
            Some(path)
        };
        names.filter_map(path).collect()
    }

    /// How many lines it has.
    pub(super) fn lines(&self) -> usize {
        self.text.lines().count()
    }

    /// Its file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
