//! What placeholders in templates, arguments, variables and headers stand for.
//!
//! Invariant: a name in braces that is no placeholder stays as it is.
//! Not here: which files are templates (`subject`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::manifest::Client;

/// The values, for one start of one subject.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    pub(crate) port: u16,
    pub(crate) admin_port: u16,
    pub(crate) upstream_port: u16,
    pub(crate) issuer_port: u16,
    pub(crate) cores: usize,
    pub(crate) dir: PathBuf,
}

impl Places {
    pub(crate) fn fill(&self, template: &str) -> String {
        template
            .replace("{port}", &self.port.to_string())
            .replace("{admin_port}", &self.admin_port.to_string())
            .replace("{upstream_port}", &self.upstream_port.to_string())
            .replace("{issuer_port}", &self.issuer_port.to_string())
            .replace("{cores}", &self.cores.to_string())
            .replace("{dir}", &self.dir.to_string_lossy())
    }

    pub(super) fn fill_values(
        &self,
        templates: &BTreeMap<String, String>,
    ) -> BTreeMap<String, String> {
        let filled = templates
            .iter()
            .map(|(name, value)| (name.clone(), self.fill(value)));
        filled.collect()
    }

    pub(super) fn fill_client(&self, client: &Client) -> Client {
        Client {
            headers: self.fill_values(&client.headers),
            ..client.clone()
        }
    }
}
