//! Debugging information that this host lacks, fetched by build-id from the servers of `$DEBUGINFOD_URLS` (debuginfod(8)), into the cache that gdb and perf have
//! (debuginfod_find_debuginfo(3)).
//!
//! Only verbs that read traces fetch, where the trace does not name a function itself; a recording never does. Size and
//! time are bounded, a server that fails is not asked again, and a file with another build-id is refused. The cache has
//! the layout of libdebuginfod, so gdb and perf share it. TLS is rustls, which trusts the certificates of the host. No
//! redirection leads from TLS to plain HTTP, because a build-id does not prove what a file contains.

use std::collections::HashSet;
use std::fmt;
use std::fs::{self, DirBuilder};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::crypto::ring;
use ureq::tls::{RootCerts, TlsConfig};
use usdtrec_format::BuildId;
use usdtrec_format::escape::escape;
use usdtrec_report::FetchDebug;

use crate::mutex::locked;
use crate::terminal::say;

/// Maximum number of redirections of a request.
const REDIRECTS: u32 = 3;

/// A client of debuginfod servers.
pub(crate) struct Debuginfod {
    agent: ureq::Agent,
    cache: ClientCache,
    limits: Limits,
    /// The servers; `None` if one has failed, which is not asked again.
    servers: Mutex<Vec<Option<String>>>,
    /// What no server had.
    missing: Mutex<HashSet<BuildId>>,
}

impl fmt::Debug for Debuginfod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Debuginfod").finish_non_exhaustive()
    }
}

impl Debuginfod {
    /// A client as the environment says; `None` if that names no server, or there is no place for a cache.
    pub(crate) fn from_env() -> Option<Self> {
        let urls = std::env::var("DEBUGINFOD_URLS").ok()?;
        let servers: Vec<_> = urls
            .split_ascii_whitespace()
            // Policies of signatures, which are elfutils' own.
            .filter(|url| !url.starts_with("ima:"))
            .map(|url| Some(url.trim_end_matches('/').to_owned()))
            .collect();
        if servers.is_empty() {
            return None;
        }
        let limits = Limits::from_env();
        let config = ureq::Agent::config_builder()
            .timeout_resolve(Some(limits.pause))
            .timeout_connect(Some(limits.pause))
            .timeout_recv_response(Some(limits.pause))
            .timeout_per_read(Some(limits.pause))
            .timeout_global(Some(limits.time))
            .max_redirects(REDIRECTS)
            // The server may close an idle connection while the next request is sent.
            .max_idle_connections(0)
            .user_agent(concat!("usdtrec/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls())
            .build();
        Some(Self {
            agent: config.into(),
            cache: ClientCache::from_env()?,
            limits,
            servers: Mutex::new(servers),
            missing: Mutex::default(),
        })
    }

    /// Fetches a file from the first server that has it.
    fn fetch(&self, id: BuildId, file: &CachedFile) -> Option<PathBuf> {
        let servers = locked(&self.servers).clone();
        for (number, server) in servers.iter().enumerate() {
            let Some(server) = server else { continue };
            match self.fetch_from(server, id, file) {
                Ok(path) => return Some(path),
                Err(ureq::Error::StatusCode(404)) => {}
                Err(error) => {
                    let (server, error) = (escape(server), error.to_string());
                    let error = escape(&error);
                    say(format_args!(
                        "usdtrec: debuginfod: {server}: {error}; it is not asked again"
                    ));
                    if let Some(failed) = locked(&self.servers).get_mut(number) {
                        *failed = None;
                    }
                }
            }
        }
        None
    }

    fn fetch_from(
        &self,
        server: &str,
        id: BuildId,
        file: &CachedFile,
    ) -> Result<PathBuf, ureq::Error> {
        let is_secure = server.starts_with("https://");
        if !is_secure && !server.starts_with("http://") {
            let error = "expected a URL of https:// or http://";
            return Err(io::Error::new(io::ErrorKind::Unsupported, error).into());
        }
        let url = format!("{server}/buildid/{id}/debuginfo");
        let request = self.agent.get(url);
        // A redirection must not lead from TLS to plain HTTP.
        let request = request.config().https_only(is_secure).build();
        let mut response = request.call()?;
        let body = response.body_mut();
        if let Some(length) = body
            .content_length()
            .filter(|length| *length > self.limits.size)
        {
            return Err(ureq::Error::BodyExceedsLimit(length));
        }
        let body = body.with_config().limit(self.limits.size).reader();
        Ok(file.keep(body, id)?)
    }
}

/// TLS with the certificates that this host trusts: `$SSL_CERT_FILE` and `$SSL_CERT_DIR`, otherwise those of the system.
fn tls() -> TlsConfig {
    TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .build()
}

impl FetchDebug for Debuginfod {
    fn debug_info(&self, id: BuildId) -> Option<PathBuf> {
        let file = self.cache.file(id);
        match file.known() {
            Some(known) => known,
            None if locked(&self.missing).contains(&id) => None,
            None => {
                let found = self.fetch(id, &file);
                if found.is_none() {
                    locked(&self.missing).insert(id);
                }
                found
            }
        }
    }
}

/// Limits of a request.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Maximum time without an answer, or without further bytes.
    pause: Duration,
    /// Maximum time of a request.
    time: Duration,
    /// Maximum size of a file, bytes.
    size: u64,
}

impl Limits {
    /// What `$DEBUGINFOD_TIMEOUT`, `$DEBUGINFOD_MAXTIME` and `$DEBUGINFOD_MAXSIZE` say. Unlike in libdebuginfod, the last two have a bound without that, too.
    fn from_env() -> Self {
        let seconds = |name, or| Duration::from_secs(number(name).unwrap_or(or).min(MAX_SECONDS));
        Self {
            pause: seconds("DEBUGINFOD_TIMEOUT", 90),
            time: seconds("DEBUGINFOD_MAXTIME", 600),
            size: number("DEBUGINFOD_MAXSIZE").unwrap_or(4 << 30),
        }
    }
}

/// Seconds of a year.
const MAX_SECONDS: u64 = 365 * 24 * 3600;

/// A number in the environment; 0, as for libdebuginfod, is no number.
fn number(name: &str) -> Option<u64> {
    let number = std::env::var(name).ok()?.trim().parse().ok()?;
    (number > 0).then_some(number)
}

/// For how long servers are not asked again for what they did not have (`cache_miss_s`).
const MISS_TIME: Duration = Duration::from_secs(600);

/// The cache of this user: a directory for each build-id, in it `debuginfo`, which is empty if servers do not have it.
#[derive(Debug)]
struct ClientCache(PathBuf);

/// The path of a debug file in the cache.
#[derive(Debug)]
struct CachedFile(PathBuf);

impl ClientCache {
    /// `$DEBUGINFOD_CACHE_PATH`, else `~/.debuginfod_client_cache` if it is there, else `debuginfod_client` in `$XDG_CACHE_HOME` or `~/.cache`.
    fn from_env() -> Option<Self> {
        let path = |name| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        if let Some(cache) = path("DEBUGINFOD_CACHE_PATH") {
            return Some(Self(cache));
        }
        let home = path("HOME");
        let old = home
            .as_ref()
            .map(|home| home.join(".debuginfod_client_cache"));
        if let Some(old) = old.filter(|old| old.is_dir()) {
            return Some(Self(old));
        }
        let caches = path("XDG_CACHE_HOME").or_else(|| Some(home?.join(".cache")))?;
        Some(Self(caches.join("debuginfod_client")))
    }

    fn file(&self, id: BuildId) -> CachedFile {
        CachedFile(self.0.join(id.to_string()).join("debuginfo"))
    }
}

impl CachedFile {
    /// The file, or `None` if servers do not have it; `None` if servers must be asked.
    fn known(&self) -> Option<Option<PathBuf>> {
        let found = self.0.metadata().ok()?;
        if found.len() > 0 {
            return Some(Some(self.0.clone()));
        }
        let age = found.modified().ok()?.elapsed().unwrap_or_default();
        (age < MISS_TIME).then_some(None)
    }

    /// Keeps a file with this build-id. Others see it when it is whole.
    ///
    /// # Errors
    /// The error of reading or writing; `InvalidData` if it has another build-id, or none.
    fn keep(&self, mut from: impl Read, id: BuildId) -> io::Result<PathBuf> {
        let dir = self.0.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let mut file = tempfile::Builder::new()
            .prefix("debuginfo.")
            .tempfile_in(dir)?;
        io::copy(&mut from, &mut file)?;
        let found = usdtrec_buildid_cache::elf::build_id(file.path());
        let found = found.map_err(|error| invalid(error.to_string()))?;
        if found != Some(id) {
            let found = found.map_or_else(|| "none".to_owned(), |found| found.to_string());
            return Err(invalid(format!(
                "expected a file with build-id {id}, found {found}"
            )));
        }
        // What is there is a miss, which nobody may write.
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        file.persist(&self.0).map_err(|error| error.error)?;
        Ok(self.0.clone())
    }
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}
