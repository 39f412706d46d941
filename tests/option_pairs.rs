//! Every two options of `record`, `trace` and `top` have their effects together, or are refused in words.
//!
//! The options are those of docs/options.md, which a test keeps equal to the command line's own definition: one that is not known here
//! fails the test. Options go together in few recordings, so that each two are in one of them; each leaves out hits of its own of
//! testdata/targets/pairs.c, or shows in another way that it is obeyed, whatever is asked for besides.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{Build, Finished, Lab, Process, sites_of, test};

/// No wait is longer.
const PATIENCE: Duration = Duration::from_secs(240);

/// An option with a value.
struct Choice {
    /// As docs/options.md has it.
    option: &'static str,
    /// Its words. [`Run::command`] knows more of `-e`, `--filter` and `CMD`, and puts in what is in braces.
    words: &'static str,
    /// Whether its effect is seen.
    shows: fn(&Seen<'_>) -> bool,
}

const fn choice(option: &'static str, words: &'static str, shows: fn(&Seen<'_>) -> bool) -> Choice {
    Choice {
        option,
        words,
        shows,
    }
}

/// What was seen of a recorder.
struct Seen<'a> {
    run: &'a Run<'a>,
    lab: &'a Lab,
    /// What `record` has stored, what `trace` printed, the tables of `top`.
    text: String,
    ended: Finished,
    /// Ended before it was asked to.
    by_itself: bool,
    /// From the beginning of the recording to its end.
    took: Duration,
    looked: Looked,
}

impl Seen<'_> {
    /// Whether hits of this kind are there; `top` counts them.
    fn hits(&self, kind: Kind) -> bool {
        if self.run.verb == "top" {
            return self.total() & kind.count() != 0;
        }
        self.text.contains(&kind.first().to_string())
    }

    fn total(&self) -> u64 {
        let mut rows = self
            .text
            .lines()
            .filter(|line| line.starts_with("pairs:go "));
        let total = rows
            .next_back()
            .and_then(|row| row.split_whitespace().nth(3));
        total.and_then(|total| total.parse().ok()).unwrap_or(0)
    }

    fn exists(&self, name: &str) -> bool {
        self.lab.file(name).exists()
    }

    /// The files that `record` wrote.
    fn traces(&self) -> Vec<PathBuf> {
        let base = self.run.output();
        let names = (1..20).map(|number| format!("{base}.{number}"));
        let names = names.chain([base.to_owned()]);
        let files = names.map(|name| self.lab.file(&name));
        files.filter(|file| file.exists()).collect()
    }

    fn says(&self, text: &str) -> bool {
        self.ended.stderr.contains(text)
    }
}

/// Hits of testdata/targets/pairs.c that have something in common.
#[derive(Clone, Copy)]
enum Kind {
    Small,
    First,
    LastCpu,
    Child,
    Thread,
    Strange,
    Far,
    Forced,
    Deep,
}

impl Kind {
    /// The first number.
    const fn first(self) -> u32 {
        match self {
            Self::Small => 700_000_007,
            Self::First => 710_000_007,
            Self::LastCpu => 720_000_007,
            Self::Strange => 730_000_007,
            Self::Child => 740_000_007,
            Self::Far => 750_000_007,
            Self::Forced => 760_000_007,
            Self::Thread => 770_000_007,
            Self::Deep => 780_000_007,
        }
    }

    /// How many there are: a bit of its own in the sum of those of pairs:go.
    const fn count(self) -> u64 {
        match self {
            Self::Small => 4,
            Self::First | Self::Far | Self::Forced | Self::Deep => 8,
            Self::LastCpu => 16,
            Self::Child => 32,
            Self::Thread => 64,
            Self::Strange => 128,
        }
    }
}

const CAPTURE: [Choice; 23] = [
    choice("-e, --event", "-e", |seen| seen.hits(Kind::First)),
    choice("--filter", "--filter", |seen| {
        seen.hits(Kind::First) && !seen.hits(Kind::Small)
    }),
    choice("-a, --all-cpus", "-a", |seen| seen.hits(Kind::Strange)),
    choice("-p, --pid", "-p {pid}", |seen| {
        seen.hits(Kind::First) && !seen.hits(Kind::Strange)
    }),
    choice("-t, --tid", "-t {pid}", |seen| {
        seen.hits(Kind::First) && !seen.hits(Kind::Thread)
    }),
    choice("<CMD>", "CMD", |seen| seen.exists("command.log")),
    choice("-i, --no-inherit", "-i", |seen| {
        seen.hits(Kind::First) && !seen.hits(Kind::Child)
    }),
    choice("-C, --cpu", "-C 0", |seen| {
        seen.hits(Kind::First) && !seen.hits(Kind::LastCpu)
    }),
    // It is rounded up to a power of two pages, and mapped with a page or two of the kernel's.
    choice("-m, --mmap-pages", "-m 5M", |seen| {
        let mut rings = seen.looked.rings.iter();
        rings.any(|ring| (8 << 20..=(16 << 20) + (8 << 10)).contains(ring))
    }),
    choice("--duration", "--duration {duration}", |seen| seen.by_itself),
    choice("--engine", "--engine bpf-perf", |seen| {
        seen.looked.descriptors.contains("bpf-prog")
            && seen.looked.descriptors.contains("[perf_event]")
    }),
    choice("--engine", "--engine perf-tracefs", |seen| {
        seen.looked.children.contains("guard-tracefs")
    }),
    choice("--strings", "--strings off", |seen| {
        !seen.text.contains("abc")
    }),
    choice("--strings", "--strings all", |seen| {
        let empty = ["arg3=\"\"", "empty=\"\"", ":\"\"", ",,"];
        empty.iter().any(|text| seen.text.contains(text))
    }),
    choice("--nonresident", "--nonresident never", |seen| {
        seen.hits(Kind::Far) && !seen.text.contains("far away")
    }),
    choice("--strlen", "--strlen 5", |seen| {
        seen.text.contains("abcde") && !seen.text.contains("abcdef")
    }),
    choice("--lossless", "--lossless", |seen| {
        seen.looked.children.contains("guard-stopped")
    }),
    choice("--stack-size", "--stack-size 32K", |seen| {
        seen.hits(Kind::Deep)
    }),
    choice("--schema", "--schema named.toml", |seen| {
        seen.text.contains("numbered")
    }),
    choice("-f, --force", "-f", |seen| {
        if seen.run.verb == "top" {
            return seen.text.contains("pairs:forced ");
        }
        seen.hits(Kind::Forced)
    }),
    choice("-q, --quiet", "-q", |seen| !seen.says("[ usdtrec")),
    choice("-v, --verbose", "-v", |seen| seen.says(" at offset 0x")),
    choice("--buildid-dir", "--buildid-dir other", |seen| {
        seen.exists("other/.build-id")
    }),
];

const RECORD: [Choice; 7] = [
    choice("-o, --output", "-o out", |seen| {
        seen.exists("out") || seen.exists("out.1") || seen.exists("out.3")
    }),
    choice("-z, --compression-level", "-z0", |seen| {
        let files = seen.traces();
        let files: Vec<Vec<u8>> = files.iter().flat_map(fs::read).collect();
        let stands = |number: u32| {
            let mut words = files.iter().flat_map(|file| file.windows(4));
            words.any(|word| word == number.to_le_bytes())
        };
        let first = Kind::First.first();
        (first..first + 8).all(stands)
    }),
    choice("--max-size", "--max-size 300K", |seen| seen.by_itself),
    choice("--switch-output", "--switch-output", |seen| {
        seen.exists("out.3") || seen.exists("usdtrec.data.3")
    }),
    choice("--switch-max-files", "--switch-max-files 1", |seen| {
        !seen.exists("out.1") && !seen.exists("usdtrec.data.1")
    }),
    choice("-R, --raw-samples", "-R", |seen| {
        let format = b"print fmt:";
        let files = seen.traces();
        let mut files = files.iter().flat_map(fs::read);
        files.all(|file| file.windows(format.len()).any(|window| window == format))
    }),
    // Always so.
    choice("-T, --timestamp", "-T", |seen| seen.hits(Kind::First)),
];

const TRACE: [Choice; 10] = [
    choice("-o, --output", "-o out", |seen| seen.exists("out")),
    choice("-F, --fields", "-F -comm", |seen| {
        seen.hits(Kind::First) && !seen.text.contains("pairs  ") && !seen.text.contains("comm")
    }),
    choice("--reltime", "--reltime", |seen| {
        seen.text.contains("0.000000") || seen.text.contains("reltime_ns")
    }),
    choice("--deltatime", "--deltatime", |seen| {
        seen.text.contains("0.0000") || seen.text.contains("deltatime_ns")
    }),
    choice("--tod", "--tod", |seen| {
        // 2026-11-22T08:00:00
        let is_day = |word: &[u8]| {
            word.iter()
                .zip(b"0000-00-00")
                .all(|(byte, form)| match form {
                    b'0' => byte.is_ascii_digit(),
                    form => byte == form,
                })
        };
        seen.text.as_bytes().windows(10).any(is_day) || seen.text.contains("tod")
    }),
    choice("--ns", "--ns", |seen| {
        let mut fractions = seen.text.split('.').skip(1);
        fractions.any(|rest| {
            let digits = rest.bytes().take_while(u8::is_ascii_digit);
            digits.count() == 9
        })
    }),
    choice("--human", "--human", |seen| seen.text.contains("MiB")),
    choice("--format", "--format json", |seen| {
        seen.text.starts_with('{')
    }),
    choice("--format", "--format csv", |seen| {
        let head = seen.text.lines().next().unwrap_or_default();
        head.contains("time_ns,") && head.contains(",missing")
    }),
    choice("--format", "--format T:{time}\\t{args}", |seen| {
        seen.text.starts_with("T:")
    }),
];

const TOP: [Choice; 2] = [
    choice("-d, --delay", "-d {delay}", |seen| {
        seen.took >= Duration::from_millis(1200)
    }),
    choice("-n, --iterations", "-n 2", |seen| {
        let tables = seen.text.lines().filter(|line| line.starts_with("Probe "));
        seen.by_itself && tables.count() == 2
    }),
];

/// Options that do not go together, and words of the reason.
const REFUSED: &[(&str, &str, &str)] = &[
    ("-a", "-p {pid}", "cannot be used with"),
    ("-a", "-t {pid}", "cannot be used with"),
    ("-p {pid}", "-t {pid}", "cannot be used with"),
    ("-a", "-i", "cannot be used with"),
    ("-t {pid}", "-i", "cannot be used with"),
    ("-q", "-v", "cannot be used with"),
    (
        "--engine perf-tracefs",
        "--strings all",
        "--strings all needs the bpf engine",
    ),
    (
        "--engine perf-tracefs",
        "--strlen 5",
        "--strlen needs the bpf engine",
    ),
    (
        "--engine perf-tracefs",
        "--nonresident never",
        "--nonresident needs the bpf engine",
    ),
    (
        "--engine perf-tracefs",
        "--lossless",
        "--lossless needs the bpf engine",
    ),
    (
        "--engine bpf-perf",
        "--stack-size 32K",
        "--stack-size needs a perf engine",
    ),
    (
        "--strings off",
        "--strlen 5",
        "--strlen has no effect with --strings off",
    ),
    ("--reltime", "--deltatime", "cannot be used with"),
    ("--format json", "--ns", "--ns has no effect"),
    ("--format csv", "--ns", "--ns has no effect"),
    ("--format json", "--human", "--human has no effect"),
    ("--format csv", "--human", "--human has no effect"),
    ("--format T:{time}\\t{args}", "-F -comm", "-F and --tod"),
    ("--format T:{time}\\t{args}", "--tod", "-F and --tod"),
];

/// Options whose effect needs another one.
const NEEDS: &[(&str, &str)] = &[
    ("-i", "CMD"),
    ("--stack-size 32K", "--engine perf-tracefs"),
    ("--switch-max-files 1", "--switch-output"),
    ("--human", "--schema named.toml"),
];

/// Options that end the recording.
const ENDERS: [&str; 3] = ["--duration {duration}", "--max-size 300K", "-n 2"];

/// What is refused by `top` alone, which shows no arguments.
const OF_ARGUMENTS: [&str; 5] = [
    "--strings",
    "--strlen",
    "--nonresident",
    "--stack-size",
    "--schema",
];

/// Options that are tried together.
struct Run<'c> {
    verb: &'static str,
    choices: Vec<&'c Choice>,
}

/// What the traced programs are.
struct Programs {
    path: PathBuf,
    /// Those that go on by themselves: one that is recorded, and one that nobody names.
    main: Process,
    stranger: Process,
}

/// A traced program's log.
fn log(lab: &Lab, name: &str) -> String {
    fs::read_to_string(lab.file(&format!("{name}.log"))).unwrap_or_default()
}

/// Waits until a program has said a word so many times; whether it did while the recorder ran.
fn said(lab: &Lab, name: &str, word: &str, recorder: &mut Process) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if log(lab, name).lines().any(|line| line == word) {
            return true;
        }
        if !recorder.is_running() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

impl Programs {
    fn start(lab: &Lab, built: &Path) -> Self {
        let path = lab.file("pairs");
        fs::copy(built, &path).expect("a copy");
        fs::write(lab.file("far"), format!("{:4096}", "far away\0")).expect("a file");
        let schema = "provider = \"pairs\"\n[[probe]]\nname = \"go\"\n\
                      arguments = [\"numbered: s32\", \"_\", \"_\", \"size: u64 bytes\"]\n";
        fs::write(lab.file("named.toml"), schema).expect("a file");
        let start = |name: &str| {
            let log = lab.file(&format!("{name}.log"));
            let mut command = Command::new(&path);
            command.arg(log).arg(lab.file("far"));
            let mut process = Process::spawn(command);
            let is_there =
                |process: &mut Process| said(lab, name, &format!("pid {}", process.pid()), process);
            assert!(is_there(&mut process), "{name} does not begin");
            process
        };
        let (main, stranger) = (start("main"), start("stranger"));
        Self {
            path,
            main,
            stranger,
        }
    }
}

impl Run<'_> {
    fn has(&self, words: &str) -> bool {
        self.choices.iter().any(|choice| choice.words == words)
    }

    /// Whether a process that the recorder did not start is asked for by its number.
    fn is_attached(&self) -> bool {
        self.has("-p {pid}") || self.has("-t {pid}")
    }

    /// The words, with times that suit a machine which is so many times slower.
    fn command(&self, lab: &Lab, programs: &Programs, slower: u32) -> Vec<String> {
        let path = programs.path.to_str().expect("a path");
        let mut words = vec![
            self.verb.to_owned(),
            "-e".to_owned(),
            format!("sdt_pairs:*@{path}"),
        ];
        if self.has("--filter") {
            words.extend(["--filter".to_owned(), "arg1 >= 710000000".to_owned()]);
        }
        let far = if self.has("--engine perf-tracefs") {
            format!("away:far@{path}")
        } else {
            format!("away:far(number=arg1,text=str(arg2))@{path}")
        };
        words.extend(["-e".to_owned(), far]);
        let pid = programs.main.pid().to_string();
        let duration = if self.has("--max-size 300K") || self.has("-n 2") {
            "1h".to_owned()
        } else {
            format!("{}s", 2 * slower)
        };
        let delay = format!("{}ms", 1200 * slower);
        let known = ["-e", "--filter", "CMD"];
        let choices = self.choices.iter().map(|choice| choice.words);
        for choice in choices.filter(|words| !known.contains(words)) {
            let filled = choice
                .replace("{pid}", &pid)
                .replace("{duration}", &duration)
                .replace("{delay}", &delay);
            words.extend(filled.splitn(2, ' ').map(str::to_owned));
        }
        if self.has("CMD") {
            words.extend(["--".to_owned(), path.to_owned()]);
            let files = ["command.log", "far"].map(|name| lab.file(name));
            words.extend(files.map(|file| file.to_str().expect("a path").to_owned()));
        }
        words
    }

    /// Records, and gives what was seen; what the recorder said if it failed.
    fn execute<'r>(&'r self, lab: &'r Lab, built: &Path, slower: u32) -> Result<Seen<'r>, String> {
        let mut programs = Programs::start(lab, built);
        let words = self.command(lab, &programs, slower);
        let mut recorder = Process::spawn(lab.command(&words));
        // Who is told what to do: the command has the recorder's input.
        let is_command = self.has("CMD") && !self.is_attached();
        let subject = if is_command { "command" } else { "main" };
        let mut tell = |recorder: &mut Process, word: &str| {
            if is_command {
                recorder.say_perhaps(word);
            } else {
                programs.main.say(word);
            }
        };
        tell(&mut recorder, "wait");
        let mut goes_on = said(lab, subject, "seen", &mut recorder);
        if goes_on && self.has("-q") {
            // It does not say when it has begun.
            std::thread::sleep(Duration::from_millis(500) * slower);
        } else if goes_on {
            recorder.until_error_line("[ usdtrec");
        }
        let begun = Instant::now();
        if goes_on && self.has("--switch-output") {
            self.switch(lab, &mut recorder);
        }
        let looked = Looked::at(recorder.pid());
        if goes_on {
            tell(&mut recorder, "go");
            programs.stranger.say("strange");
            goes_on = said(lab, subject, "done", &mut recorder)
                && said(lab, "stranger", "done", &mut recorder);
        }
        let ends_by_itself = ENDERS.iter().any(|ender| self.has(ender));
        if goes_on && self.has("--max-size 300K") {
            tell(&mut recorder, "burst");
        } else if goes_on && !ends_by_itself {
            if self.has("-d {delay}") {
                // The first table comes when the time has passed.
                let is_table = |line: String| line.starts_with("Probe ");
                while !recorder.line().is_none_or(is_table) {}
            }
            if self.has("CMD") {
                recorder.say_perhaps("quit");
            } else {
                recorder.signal("INT");
            }
        }
        let deadline = Instant::now() + PATIENCE;
        while recorder.is_running() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        // A command that lives on ends with its input.
        let ended = recorder.finish();
        if !ended.status.success() {
            return Err(ended.stderr);
        }
        let mut seen = Seen {
            run: self,
            lab,
            text: String::new(),
            ended,
            by_itself: ends_by_itself,
            took: begun.elapsed(),
            looked,
        };
        seen.text = seen.read();
        Ok(seen)
    }

    /// Asks for two more files, and waits until they are there.
    fn switch(&self, lab: &Lab, recorder: &mut Process) {
        for number in 2..=3 {
            recorder.signal("USR2");
            let next = lab.file(&format!("{}.{number}", self.output()));
            let deadline = Instant::now() + PATIENCE;
            while recorder.is_running() && !next.exists() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    fn output(&self) -> &str {
        if self.has("-o out") {
            "out"
        } else {
            "usdtrec.data"
        }
    }
}

/// What can be seen of a recorder from outside while it records.
#[derive(Default)]
struct Looked {
    /// Lengths of what it maps of the kernel, bytes.
    rings: Vec<u64>,
    /// Command lines of its children.
    children: String,
    /// What its descriptors are.
    descriptors: String,
}

impl Looked {
    fn at(pid: u32) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let maps = read(&format!("/proc/{pid}/maps"));
        let ring = |line: &str| {
            let (range, rest) = line.split_once(' ')?;
            let (start, end) = range.split_once('-')?;
            let address = |text| u64::from_str_radix(text, 16).ok();
            let length = address(end)? - address(start)?;
            rest.contains("anon_inode:").then_some(length)
        };
        let children = read(&format!("/proc/{pid}/task/{pid}/children"));
        let children = children.split_whitespace();
        let children = children.map(|child| read(&format!("/proc/{child}/cmdline")));
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten();
        let descriptors = descriptors
            .flatten()
            .flat_map(|fd| fs::read_link(fd.path()));
        Self {
            rings: maps.lines().filter_map(ring).collect(),
            children: children.collect(),
            descriptors: descriptors.map(|path| path.display().to_string()).collect(),
        }
    }
}

impl Seen<'_> {
    /// What was captured, as text.
    fn read(&self) -> String {
        if self.run.verb == "record" {
            let script = |file: &PathBuf| {
                let file = file.to_str().expect("a path");
                self.lab.usdtrec(["script", "-i", file]).success().stdout
            };
            return self.traces().iter().map(script).collect();
        }
        if self.run.has("-o out") {
            return fs::read_to_string(self.lab.file("out")).unwrap_or_default();
        }
        self.ended.stdout.clone()
    }
}

/// The program, with an instruction that is no nop at the site of pairs:forced.
fn build(lab: &Lab) -> PathBuf {
    /// `cld`, which changes nothing here.
    const OTHER: u8 = 0xfc;
    let program = Build::USUAL.make(lab, "pairs.c", "built");
    let sites = sites_of(lab, &program);
    let site = sites.iter().find(|site| site.event == "sdt_pairs:forced");
    let at = usize::try_from(site.expect("its site").pc).expect("a small address");
    let mut bytes = fs::read(&program).expect("our program");
    assert_eq!(
        bytes[at], 0x90,
        "in this file, addresses of code are offsets"
    );
    bytes[at] = OTHER;
    fs::write(&program, bytes).expect("our program");
    program
}

/// The options of a verb, as docs/options.md has them.
fn documented(verb: &str) -> BTreeSet<String> {
    let document = include_str!("../docs/options.md");
    let title = format!("\n## usdtrec {verb}\n");
    let (_, section) = document.split_once(&title).expect("a section of the verb");
    let section = section.split("\n## ").next().expect("text");
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let names = rows.filter_map(|row| row.split_once('`')).map(|(name, _)| {
        // Without the name of the value.
        let name = name.split(" <").next().expect("a name");
        name.to_owned()
    });
    names.filter(|name| name != "-h, --help").collect()
}

/// What two options that do not go together say.
fn refusal(one: &Choice, other: &Choice) -> Option<&'static str> {
    let is = |choice: &Choice, words: &str| choice.words == words;
    let mut known = REFUSED.iter();
    let known = known.find(|(first, second, _)| {
        is(one, first) && is(other, second) || is(one, second) && is(other, first)
    });
    known.map(|(.., reason)| *reason)
}

/// All choices of a verb.
struct Verb {
    name: &'static str,
    choices: Vec<&'static Choice>,
}

impl Verb {
    fn named(&self, words: &str) -> usize {
        let mut choices = self.choices.iter();
        choices
            .position(|choice| choice.words == words)
            .expect("a choice")
    }

    /// Choices with what they need.
    fn with_needs(&self, set: &BTreeSet<usize>) -> BTreeSet<usize> {
        let mut whole = set.clone();
        for (what, needed) in NEEDS {
            if whole.iter().any(|at| self.choices[*at].words == *what) {
                whole.insert(self.named(needed));
            }
        }
        whole
    }

    /// Two choices of a set that do not go together, with the reason; without a reason if they are values of one option, or both end the
    /// recording.
    fn conflict(&self, set: &BTreeSet<usize>) -> Option<(usize, usize, Option<&'static str>)> {
        let pairs = set
            .iter()
            .flat_map(|one| set.range(one + 1..).map(move |other| (*one, *other)));
        let mut conflicts = pairs.filter_map(|(at, next)| {
            let (one, other) = (self.choices[at], self.choices[next]);
            let is_ender = |choice: &Choice| ENDERS.contains(&choice.words);
            if let Some(reason) = refusal(one, other) {
                return Some((at, next, Some(reason)));
            }
            let alike = one.option == other.option || is_ender(one) && is_ender(other);
            alike.then_some((at, next, None))
        });
        conflicts.next()
    }

    /// Sets of choices, so that each two that go together are in one of them.
    fn sets(&self) -> Vec<BTreeSet<usize>> {
        let all = 0..self.choices.len();
        let pairs = all
            .clone()
            .flat_map(|one| (one + 1..all.end).map(move |other| (one, other)));
        let goes = |set: &BTreeSet<usize>| self.conflict(set).is_none();
        let mut open: BTreeSet<(usize, usize)> = pairs
            .filter(|(one, other)| goes(&self.with_needs(&[*one, *other].into())))
            .collect();
        let mut sets = Vec::new();
        while let Some((one, other)) = open.first() {
            let mut set = self.with_needs(&[*one, *other].into());
            loop {
                let gain = |at: &usize| {
                    let new = |with: &&usize| open.contains(&(*at.min(*with), *at.max(*with)));
                    set.iter().filter(new).count()
                };
                let fits = |at: &usize| {
                    let mut more = set.clone();
                    more.insert(*at);
                    !set.contains(at) && goes(&self.with_needs(&more))
                };
                let best = all.clone().filter(fits).max_by_key(gain);
                let Some(best) = best.filter(|best| gain(best) > 0) else {
                    break;
                };
                set.insert(best);
                set = self.with_needs(&set);
            }
            open.retain(|(one, other)| !(set.contains(one) && set.contains(other)));
            sets.push(set);
        }
        sets
    }

    fn run(&self, set: &BTreeSet<usize>) -> Run<'static> {
        Run {
            verb: self.name,
            choices: set.iter().map(|at| self.choices[*at]).collect(),
        }
    }

    /// What is wrong with a set of options that go together.
    fn wrong(&self, set: &BTreeSet<usize>, built: &Path) -> Vec<String> {
        let run = self.run(set);
        let depends_on_time = ["-q", "--duration {duration}", "-d {delay}", "-n 2"];
        let mut slower = 1;
        loop {
            let lab = Lab::new();
            let wrong = match run.execute(&lab, built, slower) {
                Err(said) => vec![format!("refused: {said}")],
                Ok(seen) => {
                    let silent = run.choices.iter().filter(|choice| !(choice.shows)(&seen));
                    let silent = silent.map(|choice| {
                        let text: String = seen.text.chars().take(600).collect();
                        format!("{}: {text}\n{}", choice.words, seen.ended.stderr)
                    });
                    silent.collect()
                }
            };
            if wrong.is_empty() {
                return wrong;
            }
            if slower > 30 || !depends_on_time.iter().any(|words| run.has(words)) {
                let words: Vec<&str> = run.choices.iter().map(|choice| choice.words).collect();
                let all = words.join(" ");
                return wrong
                    .iter()
                    .map(|wrong| format!("{} {all}: {wrong}", self.name))
                    .collect();
            }
            slower *= 4;
        }
    }

    /// Two options that do not go together are refused with the reason.
    fn refuses(&self, set: &BTreeSet<usize>, reason: &str, built: &Path) -> Option<String> {
        let lab = Lab::new();
        let run = self.run(set);
        let programs = Programs::start(&lab, built);
        let words = run.command(&lab, &programs, 1);
        let ended = lab.usdtrec(&words);
        let is_refused = !ended.status.success() && ended.stderr.contains(reason);
        (!is_refused).then(|| format!("{words:?} is not refused with {reason:?}: {}", ended.stderr))
    }

    #[track_caller]
    fn check(&self) {
        let known: BTreeSet<String> = self
            .choices
            .iter()
            .map(|choice| choice.option.to_owned())
            .collect();
        let alone = OF_ARGUMENTS.map(str::to_owned);
        let known: BTreeSet<String> = if self.name == "top" {
            known.into_iter().chain(alone).collect()
        } else {
            known
        };
        assert_eq!(known, documented(self.name));
        let lab = Lab::privileged();
        let built = build(&lab);
        let mut wrong = Vec::new();
        for (first, second, reason) in REFUSED {
            let find = |words: &str| self.choices.iter().position(|choice| choice.words == words);
            if let (Some(first), Some(second)) = (find(first), find(second)) {
                wrong.extend(self.refuses(&[first, second].into(), reason, &built));
            }
        }
        let sets = self.sets();
        for set in &sets {
            wrong.extend(self.wrong(set, &built));
        }
        eprintln!(
            "{}: {} recordings of {} options",
            self.name,
            sets.len(),
            self.choices.len()
        );
        assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    }
}

#[test]
fn of_record() {
    let choices = CAPTURE.iter().chain(&RECORD).collect();
    Verb {
        name: "record",
        choices,
    }
    .check();
}

#[test]
fn of_trace() {
    let choices = CAPTURE.iter().chain(&TRACE).collect();
    Verb {
        name: "trace",
        choices,
    }
    .check();
}

/// `top` shows no arguments: what is about them alone is refused.
#[test]
fn of_top() {
    let is_of_arguments = |choice: &&Choice| OF_ARGUMENTS.contains(&choice.option);
    let capture = CAPTURE.iter().filter(|choice| !is_of_arguments(choice));
    let choices = capture.chain(&TOP).collect();
    Verb {
        name: "top",
        choices,
    }
    .check();
    let lab = Lab::privileged();
    for choice in CAPTURE.iter().filter(is_of_arguments) {
        let words = ["top", "-e", "x:y"]
            .into_iter()
            .chain(choice.words.split(' '));
        let ended = lab.usdtrec(words);
        let is_off = choice.words == "--strings off";
        let said = format!("{} has no effect on top without --filter", choice.option);
        assert_eq!(ended.stderr.contains(&said), !is_off, "{}", ended.stderr);
    }
}

/// Of two options that end the recording, the first to be fulfilled does.
#[test]
fn of_two_ends_the_first_counts() {
    let lab = Lab::privileged();
    let built = build(&lab);
    let path = built.to_str().expect("a path");
    let event = format!("sdt_pairs:*@{path}");
    let recorded = lab.usdtrec([
        "record",
        "--max-size",
        "1G",
        "--duration",
        "300ms",
        "-e",
        &event,
    ]);
    recorded.success();
    let shown = lab.usdtrec([
        "top",
        "-n",
        "1000",
        "-d",
        "100ms",
        "--duration",
        "300ms",
        "-e",
        &event,
    ]);
    shown.success();
}
