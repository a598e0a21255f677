//! What placeholders in templates, arguments, variables and headers stand for.
//!
//! Invariant: a name in braces that is no placeholder stays as it is; a port that nothing gives is found by
//! [`Places::unfilled`].
//! Not here: which files are templates (`subject`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::manifest::Client;

/// The values, for one start of one subject.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    pub(crate) port: u16,
    pub(crate) admin_port: u16,
    /// Of the first upstream.
    pub(crate) upstream_port: u16,
    /// Of upstreams by their names: `{NAME_port}`.
    pub(crate) further_ports: BTreeMap<String, u16>,
    pub(crate) issuer_port: u16,
    pub(crate) cores: usize,
    pub(crate) dir: PathBuf,
}

impl Places {
    pub(crate) fn fill(&self, template: &str) -> String {
        let mut template = template.to_owned();
        for (name, port) in &self.further_ports {
            template = template.replace(&format!("{{{name}_port}}"), &port.to_string());
        }
        template
            .replace("{port}", &self.port.to_string())
            .replace("{admin_port}", &self.admin_port.to_string())
            .replace("{upstream_port}", &self.upstream_port.to_string())
            .replace("{issuer_port}", &self.issuer_port.to_string())
            .replace("{cores}", &self.cores.to_string())
            .replace("{dir}", &self.dir.to_string_lossy())
    }

    /// The first `{NAME_port}` that is left in a filled template.
    pub(super) fn unfilled(filled: &str) -> Option<&str> {
        filled.match_indices("_port}").find_map(|(at, suffix)| {
            let (before, _) = filled.split_at_checked(at + suffix.len())?;
            let (_, name) = before.split_at_checked(before.rfind('{')?)?;
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"{_-}".contains(&byte);
            name.bytes().all(is_name).then_some(name)
        })
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
