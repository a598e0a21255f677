//! `--mcp-config` and `--mcp-json`: servers of tools in the form of editors; and what sessions are sealed with where nothing says it.
//!
//! Not here: what they become (`config`).

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::Args;
use config::{EditorServers, SESSIONS_VARIABLE, Sources};
use jose::sign::{SecureRandom, SystemRandom};
use policy::secret::Secret;

/// Bytes of a secret that is made for sessions.
const SECRET_BYTES: usize = 32;

/// Servers of tools beside those of the configuration.
#[derive(Debug, Args)]
pub(crate) struct McpServers {
    /// MCP servers, as editors keep them: {"mcpServers": {"NAME": {"url": "…", "headers": {…}}}}. The file is watched.
    ///
    /// Whoever may call models may use them, at /mcp. Their sessions are sealed with TOLLGATE_MCP_SECRET; where
    /// neither that nor `mcp.secret` is set, with chance that ends with the process.
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config: Option<PathBuf>,
    /// The same, in place.
    #[arg(long, value_name = "JSON", conflicts_with = "mcp_config")]
    pub(crate) mcp_json: Option<String>,
}

impl McpServers {
    /// Those that are named.
    ///
    /// # Errors
    /// There is no chance.
    pub(crate) fn servers(&self) -> Result<Option<EditorServers>, String> {
        let (file, text) = match (&self.mcp_config, &self.mcp_json) {
            (Some(file), _) => (file.clone(), None),
            (None, Some(text)) => (PathBuf::from("--mcp-json"), Some(text.clone())),
            (None, None) => return Ok(None),
        };
        let secret = chance().ok_or("the system gives no random bytes for sessions")?;
        Ok(Some(EditorServers {
            file,
            text,
            secret: Secret::new(secret.into_bytes()),
        }))
    }
}

/// What sessions are sealed with where nothing says it: the same for the whole process, and gone with it.
fn chance() -> Option<String> {
    static MADE: OnceLock<Option<Secret>> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let mut bytes = [0; SECRET_BYTES];
        SystemRandom::new().fill(&mut bytes).ok()?;
        let mut secret = String::with_capacity(2 * SECRET_BYTES);
        for byte in bytes {
            let _fits = write!(secret, "{byte:02x}");
        }
        Some(Secret::new(secret.into_bytes()))
    });
    let made = made.as_ref()?.expose();
    Some(String::from_utf8_lossy(made).into_owned())
}

/// The world, in which sessions of tools are sealed with chance where the variable for it is not set: objects of Kubernetes say nothing of it.
pub(crate) struct Sealed<'s>(pub(crate) &'s dyn Sources);

impl Sources for Sealed<'_> {
    fn read(&self, path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
        self.0.read(path, bytes_max)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        self.0.list(directory)
    }

    fn mode(&self, path: &Path) -> io::Result<u32> {
        self.0.mode(path)
    }

    fn var(&self, name: &str) -> Option<String> {
        let said = self.0.var(name).filter(|value| !value.is_empty());
        match said {
            None if name == SESSIONS_VARIABLE => chance(),
            said => said.or_else(|| self.0.var(name)),
        }
    }
}
