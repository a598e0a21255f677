//! `aws.container`: keys that the agent of a container gives, as its environment says (ECS task roles, EKS Pod Identity).
//!
//! Invariant: what proves the container to its agent goes to this machine, to the addresses of the agents, or over TLS;
//! an environment that names another place is a fault.
//! Not here: asking (`callout`).

use std::net::IpAddr;
use std::path::PathBuf;

use crate::decode::Place;
use crate::host::{AwsFrom, ContainerToken};

/// What AWS's own SDKs read.
const RELATIVE: &str = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
const FULL: &str = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
const TOKEN_FILE: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
const TOKEN: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN";
/// Where a relative address is: the agent of ECS.
const AGENT: &str = "http://169.254.170.2";
/// Agents of ECS and of EKS, which are asked without TLS.
const AGENTS: [&str; 3] = ["169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"];

/// Whether the environment names an agent.
pub(super) fn is_said(var: impl Fn(&'static str) -> Option<String>) -> bool {
    [RELATIVE, FULL].into_iter().any(|name| var(name).is_some())
}

impl super::super::Lowering<'_> {
    pub(super) fn container(&mut self, place: &Place) -> Option<(String, AwsFrom)> {
        let var = |name| self.sources.var(name).filter(|value| !value.is_empty());
        let url = match (var(RELATIVE), var(FULL)) {
            (Some(path), _) if path.starts_with('/') => Ok(format!("{AGENT}{path}")),
            (Some(_), _) => Err(format!("the variable {RELATIVE} is no path")),
            (None, Some(url)) if is_trusted(&url) => Ok(url),
            (None, Some(_)) => Err(format!(
                "the variable {FULL} names a place that is neither https, this machine nor an agent of AWS"
            )),
            (None, None) => Err(format!("neither {RELATIVE} nor {FULL} is set")),
        };
        let url = match url {
            Ok(url) => url,
            Err(says) => {
                let hint = "AWS sets it where a role is given to the container";
                self.findings.fault(place, says, hint);
                return None;
            }
        };
        let file = var(TOKEN_FILE).map(|file| ContainerToken::File(PathBuf::from(file)));
        let token = file.or_else(|| {
            let text = var(TOKEN)?;
            Some(ContainerToken::Text(policy::secret::Secret::new(
                text.into_bytes(),
            )))
        });
        Some((
            "aws container".to_owned(),
            AwsFrom::Container { url, token },
        ))
    }
}

/// Whether a token may be sent to this URL.
fn is_trusted(url: &str) -> bool {
    if url.starts_with("https://") {
        return true;
    }
    let Some(rest) = url.strip_prefix("http://") else {
        return false;
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = rest.get(..end).unwrap_or_default();
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => host,
        _ => authority,
    };
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let address = bare.unwrap_or(host).parse::<IpAddr>();
    AGENTS.contains(&host) || host == "localhost" || address.is_ok_and(|of| of.is_loopback())
}

#[cfg(test)]
mod tests;
