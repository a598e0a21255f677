//! `--mcp-config` and `--mcp-json`: servers of tools in the form of editors.
//!
//! Not here: what they become (`config`).

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use config::EditorServers;
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
        let mut bytes = [0; SECRET_BYTES];
        let filled = SystemRandom::new().fill(&mut bytes);
        filled.map_err(|_| "the system gives no random bytes for sessions".to_owned())?;
        let mut secret = String::with_capacity(2 * SECRET_BYTES);
        for byte in bytes {
            let _fits = write!(secret, "{byte:02x}");
        }
        Ok(Some(EditorServers {
            file,
            text,
            secret: Secret::new(secret.into_bytes()),
        }))
    }
}
