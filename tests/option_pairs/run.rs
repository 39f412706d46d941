//! One recording with several options.

use std::path::Path;
use std::time::{Duration, Instant};

use super::choice::{Choice, ENDERS};
use super::programs::{Programs, WAIT_LIMIT, said};
use super::seen::{Looked, Seen};
use crate::common::{Lab, Process};

/// Options that are tried together.
pub(super) struct Run<'c> {
    pub(super) verb: &'static str,
    pub(super) choices: Vec<&'c Choice>,
}

impl Run<'_> {
    pub(super) fn has(&self, words: &str) -> bool {
        self.choices.iter().any(|choice| choice.words == words)
    }

    /// Whether a process that the recorder did not start is asked for by its number.
    pub(super) fn is_attached(&self) -> bool {
        self.has("-p {pid}") || self.has("-t {pid}")
    }

    /// The words, with times that suit a machine which is so many times slower.
    pub(super) fn command(&self, lab: &Lab, programs: &Programs, slower: u32) -> Vec<String> {
        let path = programs.path.to_str().expect("a path");
        let mut words = vec![
            self.verb.to_owned(),
            "-e".to_owned(),
            format!("sdt_pairs:*@{path}"),
        ];
        if self.has("--filter") {
            words.extend(["--filter".to_owned(), "arg1 >= 710000000".to_owned()]);
        }
        let has_no_list = self.verb == "stat" || self.has("--engine perf-tracefs");
        let far = if has_no_list {
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
    pub(super) fn execute<'r>(
        &'r self,
        lab: &'r Lab,
        built: &Path,
        slower: u32,
    ) -> Result<Seen<'r>, String> {
        let mut programs = Programs::start(lab, built);
        let words = self.command(lab, &programs, slower);
        let mut recorder = Process::spawn(lab.command(&words));
        // What reads commands: the command has the recorder's input.
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
        let deadline = Instant::now() + WAIT_LIMIT;
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
    pub(super) fn switch(&self, lab: &Lab, recorder: &mut Process) {
        for number in 2..=3 {
            // It may have ended by itself.
            if !recorder.is_running() {
                return;
            }
            recorder.signal("USR2");
            let next = lab.file(&format!("{}.{number}", self.output()));
            let deadline = Instant::now() + WAIT_LIMIT;
            while recorder.is_running() && !next.exists() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    pub(super) fn output(&self) -> &str {
        if self.has("-o out") {
            "out"
        } else {
            "usdtrec.data"
        }
    }
}
