//! The API that an AIServiceBackend speaks, and what stands before its paths.
//!
//! Not here: where it is (`backend`), its credential (`credential`).

use config::quoted;

use crate::credential::Credential;
use crate::fields::Item;
use crate::findings::Findings;
use crate::object::Object;
use crate::target::Path;

/// The version of Anthropic's API at Vertex AI.
const ANTHROPIC_VERSION: &str = "vertex-2023-10-16";

/// What stands before the paths of Vertex AI.
pub(crate) fn project(
    service: &Object<'_>,
    credential: Option<&Credential>,
    findings: &mut Findings,
) -> Option<Path> {
    let said = credential.and_then(|credential| credential.project.as_ref());
    let Some([project, region]) = said else {
        let says = "goes to a project of Google's, and which it is is not known";
        let hint = "write projectName and region in gcpCredentials of a policy for it";
        findings.fault(&service.spot, says, hint);
        return None;
    };
    let is_odd = |b: u8| !b.is_ascii_alphanumeric() && !matches!(b, b'-' | b':' | b'.');
    for part in [project, region] {
        if part.value.is_empty() || part.value.starts_with('.') || part.value.bytes().any(is_odd) {
            findings.fault(
                &part.spot,
                "is no name of Google's",
                "write it as the console shows it",
            );
            return None;
        }
    }
    let (project, region) = (&project.value, &region.value);
    Some(Path::Is(format!(
        "/v1/projects/{project}/locations/{region}"
    )))
}

/// The API of a service, and what stands before its paths.
pub(crate) fn schema(item: &Item<'_>, findings: &mut Findings) -> Option<(Path, &'static str)> {
    let mut of = item.fields(findings);
    let name = of.needed_text("name", findings);
    let version = of.text("version", findings);
    let prefix = of.text("prefix", findings);
    of.end(findings);
    let name = name?;
    let prefixed = |unless: &str| {
        let prefix = prefix.as_ref().map_or(unless, |said| said.value.as_str());
        Path::Is(match prefix.trim_matches('/') {
            "" => String::new(),
            prefix => format!("/{prefix}"),
        })
    };
    let found = match name.value.as_str() {
        "OpenAI" => (prefixed("v1"), "openai"),
        "Anthropic" => (prefixed("v1"), "anthropic"),
        "AWSOpenAI" => (prefixed("openai/v1"), "openai"),
        "AWSBedrock" => (prefixed(""), "bedrock"),
        // Anthropic's models there answer Converse as all others do, with the same names, address and credential.
        "AWSAnthropic" => (prefixed(""), "bedrock"),
        "Cohere" => (prefixed("v2"), "cohere"),
        "AzureOpenAI" => {
            if let Some(prefix) = &prefix {
                findings.fault(&prefix.spot, "is not of Azure's API", "leave it out");
            }
            let Some(version) = &version else {
                let says = "says no version: Azure's API that has none (/openai/v1) is called, where a model is its deployment's name";
                findings.warn(&item.spot, says, "");
                return Some((Path::Is("/openai/v1".to_owned()), "openai"));
            };
            return Some((Path::Deployment(version.value.clone()), "openai"));
        }
        "GCPVertexAI" => {
            if let Some(prefix) = &prefix {
                findings.fault(&prefix.spot, "is not of Google's API", "leave it out");
            }
            (Path::Project, "vertex")
        }
        "GCPAnthropic" => {
            if let Some(prefix) = &prefix {
                findings.fault(&prefix.spot, "is not of Google's API", "leave it out");
            }
            if let Some(said) = version
                .as_ref()
                .filter(|said| said.value != ANTHROPIC_VERSION)
            {
                let says = format!("is another version than {ANTHROPIC_VERSION}, which is spoken");
                findings.fault(&said.spot, says, "leave it out");
            }
            return Some((Path::Project, "anthropic-on-vertex"));
        }
        other => {
            let says = match other {
                "TypeSafe" => "the schema TypeSafe is not spoken".to_owned(),
                other => format!("the schema {} is not known", quoted(other)),
            };
            let hint = "write OpenAI, AzureOpenAI, Anthropic, GCPVertexAI, GCPAnthropic, AWSBedrock, AWSAnthropic, AWSOpenAI or Cohere";
            findings.fault(&name.spot, says, hint);
            return None;
        }
    };
    if let Some(version) = version {
        findings.warn(
            &version.spot,
            "is left out: this schema has no version; what stands before its paths is prefix",
            "",
        );
    }
    Some(found)
}
