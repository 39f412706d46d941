//! Debugging information that this host lacks, fetched by build-id from the servers of `$DEBUGINFOD_URLS` (debuginfod(8)), into the cache that gdb and perf have
//! (debuginfod_find_debuginfo(3)).
//!
//! Only verbs that read traces fetch, where the trace does not name a function itself; a recording never does. Size and
//! time are bounded, a server that fails is not asked again, and a file with another build-id is refused. The cache has
//! the layout of libdebuginfod, so gdb and perf share it. TLS is rustls, which trusts the certificates of the host. No
//! redirection leads from TLS to plain HTTP, because a build-id does not prove what a file contains.

mod cache;
mod limits;

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rustls::crypto::ring;
use ureq::tls::{RootCerts, TlsConfig};

use usdtrec_format::BuildId;
use usdtrec_format::escape::escape;
use usdtrec_report::FetchDebug;

use self::cache::{CachedFile, ClientCache};
use self::limits::Limits;
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
