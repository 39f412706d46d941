//! A PostgreSQL server of our own, on a socket in a directory of its own.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use usdtrec_testing::note_directory;

use super::{Finished, Process, alone_with, need_tool, run};

/// Where Debian keeps the server's programs.
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";

/// A running server; ended and removed when dropped.
#[derive(Debug)]
pub(crate) struct Postgres {
    server: Process,
    directory: TempDir,
    _alone: File,
}

impl Postgres {
    /// Makes a cluster and starts its server, as user postgres. Skips the test without PostgreSQL 15.
    #[track_caller]
    pub(crate) fn start() -> Self {
        need_tool(&format!("{PROGRAMS}/postgres"));
        // Recorders of all processes see every server: one test at a time runs one.
        let alone = alone_with(&format!("{PROGRAMS}/postgres"));
        let directory = tempfile::Builder::new()
            .prefix("usdtrec-postgres-")
            .tempdir()
            .expect("a temporary directory");
        note_directory(directory.path());
        let mut chown = Command::new("chown");
        chown.arg("postgres").arg(directory.path());
        run(chown).success();
        let data = directory.path().join("data");
        let mut initdb = as_postgres("initdb", directory.path());
        initdb.arg("-D").arg(&data);
        initdb.args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]);
        run(initdb).success();
        let mut server = as_postgres("postgres", directory.path());
        server.arg("-D").arg(&data).arg("-k").arg(directory.path());
        // Nothing but what the test does.
        for setting in ["listen_addresses=", "autovacuum=off", "fsync=off"] {
            server.args(["-c", setting]);
        }
        let mut server = Process::spawn(server);
        server.until_error_line("ready to accept connections");
        Self {
            server,
            directory,
            _alone: alone,
        }
    }

    /// Process id of the server.
    pub(crate) fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// The server's program, which carries the probes.
    pub(crate) fn program() -> PathBuf {
        Path::new(PROGRAMS).join("postgres")
    }

    /// A client program with its arguments.
    pub(crate) fn client<S: AsRef<OsStr>>(
        &self,
        name: &str,
        arguments: impl IntoIterator<Item = S>,
    ) -> Finished {
        let mut client = as_postgres(name, self.directory.path());
        client
            .arg("-h")
            .arg(self.directory.path())
            .args(["-U", "postgres"]);
        client.args(arguments).arg("postgres");
        run(client).success()
    }

    /// What the server answers to a query, one line a row.
    pub(crate) fn ask(&self, query: &str) -> String {
        self.client("psql", ["-AtXc", query]).stdout
    }

    /// Writes a file that the clients may read; its path.
    pub(crate) fn script(&self, text: &str) -> PathBuf {
        let path = self.directory.path().join("script.sql");
        std::fs::write(&path, text).expect("a file");
        path
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // A fast shutdown, so that it takes its own children and its shared memory along.
        self.server.signal("INT");
        let deadline = Instant::now() + Duration::from_secs(120);
        while self.server.is_running() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A program of PostgreSQL as its user, in a directory that it may enter.
fn as_postgres(program: &str, directory: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=postgres", "--regid=postgres", "--init-groups"])
        .arg(Path::new(PROGRAMS).join(program))
        .current_dir(directory);
    command
}
