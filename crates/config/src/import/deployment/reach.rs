//! How a deployment is reached: its address, its credential, and what each call to it has.
//!
//! Invariant: a key of a provider's goes to the provider alone, and what is written as an address is one.

use super::super::comment;
use super::super::credential::{Credential, NamedKey, variable_of};
use super::super::read::{Given, composed, flow, given, scalar};
use super::{Reach, Wanted, without};
use crate::decode::{Findings, Place, Written};
use crate::mask::looks_like_key;
use crate::scalar::{AccessKeyId, HeaderValue, Name, PassedHeader};
use crate::target::Target;

/// What OpenAI speaks, and its kin does not all.
const OPENAI_ITSELF: &str = "[openai, responses]";

impl Wanted<'_> {
    fn base(&self, findings: &mut Findings) -> Option<Given> {
        let base = self.params.text("api_base", findings);
        base.or_else(|| self.params.text("base_url", findings))
    }

    pub(super) fn plain(
        &self,
        notes: &mut Vec<String>,
        findings: &mut Findings,
    ) -> Result<(Reach, bool), String> {
        let provider = self.provider;
        let base = self.base(findings);
        let url = match base {
            None if !provider.root.is_empty() => provider.root.to_owned(),
            None if !provider.root_variable.is_empty() => {
                format!("${{{}}}", provider.root_variable)
            }
            None => return Err("nothing says its address (api_base)".into()),
            Some(Given::Variable(name)) => {
                if !provider.adds.is_empty() {
                    let says = format!("{} is added to what {name} holds.", provider.adds);
                    notes.push(says);
                }
                format!("${{{name}}}{}", provider.adds)
            }
            Some(Given::Text(text)) => composed(&root_of(&text, provider.adds)),
        };
        let is_elsewhere = url != provider.root;
        let dialect = match provider.name {
            "openai" if !is_elsewhere => OPENAI_ITSELF,
            _ => provider.dialect,
        };
        let mut manner = vec![("dialect".to_owned(), dialect.to_owned())];
        let is_known = !url.contains("${");
        if is_known && target(&url)?.base_path.is_empty() {
            manner.push(("at_root".into(), "true".into()));
        }
        let suggested = if is_elsewhere && (provider.key.is_empty() || provider.name == "openai") {
            format!("{}_API_KEY", variable_of(&self.group))
        } else {
            provider.key.to_owned()
        };
        let key = NamedKey::read(self.params, "api_key", &suggested, findings);
        let is_asked = self.params.get("api_key").is_none() && !provider.key.is_empty();
        let key = match key {
            None if is_asked && is_elsewhere => {
                // A key of the provider's is for the provider alone.
                notes.push(format!(
                    "No key is sent, where LiteLLM would send what {} holds: credential: {{ env: NAME }}.",
                    provider.key
                ));
                None
            }
            None if is_asked => Some(NamedKey::of_variable(provider.key)),
            key => key,
        };
        let reach = Reach {
            url,
            credential: key.map(|key| Credential::of_key(key, "")),
            manner,
        };
        Ok((reach, is_elsewhere))
    }

    pub(super) fn azure(&self, findings: &mut Findings) -> Result<Reach, String> {
        let base = match self.base(findings) {
            Some(Given::Text(text)) => {
                let root = root_of(&text, "");
                target(&root)?;
                composed(&root)
            }
            Some(Given::Variable(name)) => format!("${{{name}}}"),
            None => "${AZURE_API_BASE}".to_owned(),
        };
        let version = self.params.text("api_version", findings);
        let is_whole = base.contains("/openai/");
        let is_newest = match &version {
            Some(Given::Text(version)) => matches!(version.as_str(), "v1" | "preview" | "latest"),
            Some(Given::Variable(_)) => false,
            None => true,
        };
        let url = if is_whole {
            base
        } else if is_newest {
            format!("{base}/openai/v1")
        } else {
            format!("{base}/openai/deployments/{}", self.upstream)
        };
        // Its older paths, one for each deployment, are of chat completions and embeddings.
        let dialect = if url.ends_with("/openai/v1") {
            OPENAI_ITSELF
        } else {
            "openai"
        };
        let mut manner = vec![("dialect".to_owned(), dialect.to_owned())];
        let version = version.filter(|version| *version != Given::Text("v1".into()));
        if let Some(version) = version {
            let query = flow(&[("api-version".into(), quoted_text(&version))]);
            manner.push(("query".into(), query));
        }
        let token = NamedKey::read(self.params, "azure_ad_token", "AZURE_AD_TOKEN", findings);
        let secret = NamedKey::read(
            self.params,
            "client_secret",
            "AZURE_CLIENT_SECRET",
            findings,
        );
        let key = NamedKey::read(self.params, "api_key", "AZURE_API_KEY", findings);
        let mut member = |name| self.params.text(name, findings);
        let credential = match (key, secret, token) {
            (Some(key), ..) => Credential::of_key(key, "api-key"),
            (None, Some(secret), _) => {
                let id = member("client_id").unwrap_or(Given::Variable("AZURE_CLIENT_ID".into()));
                let tenant = member("tenant_id");
                let tenant = tenant.unwrap_or(Given::Variable("AZURE_TENANT_ID".into()));
                name_of(&tenant, "tenant_id")?;
                let before = format!(
                    "{{ azure: {{ tenant: {}, client_id: {}, client_secret: {{ env: ",
                    quoted_text(&tenant),
                    quoted_text(&id)
                );
                Credential::around(&before, secret, " } } }")
            }
            (None, None, Some(token)) => Credential::of_key(token, "authorization"),
            (None, None, None) => {
                Credential::of_key(NamedKey::of_variable("AZURE_API_KEY"), "api-key")
            }
        };
        Ok(Reach {
            url,
            credential: Some(credential),
            manner,
        })
    }

    pub(super) fn vertex(&self, notes: &mut Vec<String>, findings: &mut Findings) -> Reach {
        let mut member = |name, other| {
            let given = self.params.text(name, findings);
            given.unwrap_or_else(|| Given::Variable(String::from(other)))
        };
        let project = member("vertex_project", "VERTEXAI_PROJECT").composed();
        let location = member("vertex_location", "VERTEXAI_LOCATION").composed();
        let host = match location.as_str() {
            "global" => "aiplatform.googleapis.com".to_owned(),
            _ => format!("{location}-aiplatform.googleapis.com"),
        };
        let credential = match self.params.text("vertex_credentials", findings) {
            Some(Given::Text(text)) if text.starts_with('{') || looks_like_key(&text) => {
                let place = self.params.place_of("vertex_credentials");
                let hint = "put it into secrets/service-account.json, which only the gate can read";
                let says = "a secret stands in the file, and is not taken over";
                findings.warn(&place, says, hint);
                "{ google: { key_file: secrets/service-account.json } }".to_owned()
            }
            Some(file) => format!("{{ google: {{ key_file: {} }} }}", quoted_text(&file)),
            None => {
                let says = "The account of the machine; elsewhere write google: { key_file: PATH } \
                            with the file that GOOGLE_APPLICATION_CREDENTIALS names.";
                notes.push(says.into());
                "{ google: { metadata: true } }".to_owned()
            }
        };
        Reach {
            url: format!(
                "https://{host}/v1/projects/{project}/locations/{location}/endpoints/openapi"
            ),
            credential: Some(Credential::made(credential)),
            manner: vec![("dialect".into(), "openai".into())],
        }
    }

    /// Bedrock, where it speaks a model's API: OpenAI's for OpenAI's, which nobody has to translate, and its own for all others.
    pub(super) fn bedrock(
        &self,
        api: (&'static str, &'static str),
        notes: &mut Vec<String>,
        findings: &mut Findings,
    ) -> Result<Reach, String> {
        let (path, dialect) = api;
        let region = self.params.text("aws_region_name", findings);
        let region = region.unwrap_or(Given::Variable("AWS_REGION_NAME".into()));
        name_of(&region, "aws_region_name")?;
        // It names the key, and is none.
        let id = self.params.text("aws_access_key_id", findings);
        let id = id.filter(|id| match id {
            Given::Text(text) => AccessKeyId::read(text).is_ok(),
            Given::Variable(_) => true,
        });
        let id = id.unwrap_or(Given::Variable("AWS_ACCESS_KEY_ID".into()));
        let name = "aws_secret_access_key";
        let secret = NamedKey::read(self.params, name, "AWS_SECRET_ACCESS_KEY", findings);
        let before = format!(
            "{{ aws: {{ region: {}, access_key_id: {}, secret_access_key: {{ env: ",
            quoted_text(&region),
            quoted_text(&id)
        );
        let says = "Instead of keys the machine's role: aws: { region: REGION, imds: true }.";
        notes.push(says.into());
        let secret = secret.unwrap_or(NamedKey::of_variable("AWS_SECRET_ACCESS_KEY"));
        Ok(Reach {
            url: format!(
                "https://bedrock-runtime.{}.amazonaws.com{path}",
                region.composed()
            ),
            credential: Some(Credential::around(&before, secret, " } } }")),
            manner: vec![("dialect".into(), dialect.into())],
        })
    }

    /// Headers of every call; those that no backend can have are named.
    pub(super) fn headers(
        &self,
        manner: &mut Vec<(String, String)>,
        notes: &mut Vec<String>,
        findings: &mut Findings,
    ) {
        let mut headers = Vec::new();
        let extra = self.params.section("extra_headers", findings);
        let mut add = |name: &str, given: Given, place: Place| {
            let value = given.composed();
            let is_fine = PassedHeader::read(name).is_ok()
                && HeaderValue::read(&value).is_ok()
                && !looks_like_key(&value);
            if is_fine {
                headers.push((name.to_ascii_lowercase(), quoted_text(&given)));
            } else {
                let says = "a header that may carry a credential or cannot be added is left out.";
                notes.push(comment::of(&place, says));
            }
        };
        for entry in extra.entries() {
            if let Some(given) = given(&entry.node) {
                add(&entry.key, given, extra.place_of(&entry.key));
            }
        }
        if self.params.get("organization").is_some() {
            let place = self.params.place_of("organization");
            let says = "calls count for the organization of their key: one backend for each key.";
            notes.push(comment::of(&place, says));
        }
        if !headers.is_empty() {
            manner.push(("headers".into(), flow(&headers)));
        }
    }
}

pub(super) const AZURE: &[&str] = &[
    "api_version",
    "azure_ad_token",
    "tenant_id",
    "client_id",
    "client_secret",
];
pub(super) const VERTEX: &[&str] = &["vertex_project", "vertex_location", "vertex_credentials"];
pub(super) const BEDROCK: &[&str] = &[
    "aws_region_name",
    "aws_access_key_id",
    "aws_secret_access_key",
];

pub(super) fn vertex_model(name: &str) -> Result<String, String> {
    if name.starts_with("gemini") || name.starts_with("google/") {
        return Ok(format!("google/{}", without(name, &["google/"])));
    }
    Err("of Vertex only Google's own models are reached, at its OpenAI-compatible address".into())
}

/// The path and the dialect at which Bedrock has a model.
pub(super) fn bedrock_api(name: &str) -> Result<(&'static str, &'static str), String> {
    if name.starts_with("openai.") {
        return Ok(("/openai/v1", "openai"));
    }
    if NO_CONVERSATION.iter().any(|part| name.contains(part)) {
        return Err("of Bedrock only models of conversations are reached, by Converse".into());
    }
    if name.contains('/') && !name.starts_with("arn:") {
        return Err("it names more than a model: say its region in aws_region_name".into());
    }
    Ok(("", "bedrock"))
}

/// What the names of models have that embed, rank or paint.
const NO_CONVERSATION: [&str; 5] = ["embed", "rerank", "image", "canvas", "stability."];

/// An address without the path of a call, and with the root that its API has.
fn root_of(text: &str, adds: &str) -> String {
    let text = text.trim_end_matches('/');
    let text = text.strip_suffix("/chat/completions").unwrap_or(text);
    let text = text.strip_suffix("/messages").unwrap_or(text);
    match adds {
        "" => text.to_owned(),
        adds if text.ends_with(adds) => text.to_owned(),
        adds => format!("{text}{adds}"),
    }
}

/// An address, whatever its variables may hold.
pub(in crate::import) fn target(url: &str) -> Result<Target, String> {
    let mut sample = String::new();
    let mut rest = url;
    while let Some((before, after)) = rest.split_once("${") {
        sample.push_str(before);
        let is_whole = sample.is_empty();
        sample.push_str(if is_whole {
            "https://host.example"
        } else {
            "x"
        });
        rest = after.split_once('}').map_or("", |(_, after)| after);
    }
    sample.push_str(rest);
    Target::read(&sample.replace("$$", "$")).map_err(|problem| {
        // The address may hold a password.
        format!("its address {}; {}", problem.is, problem.hint)
    })
}

/// Whether a text is one that the gate takes for a name.
fn name_of(given: &Given, what: &str) -> Result<(), String> {
    match given {
        Given::Text(text) if Name::read(text).is_err() => Err(format!("its {what} is no name")),
        Given::Text(_) | Given::Variable(_) => Ok(()),
    }
}

fn quoted_text(given: &Given) -> String {
    scalar(&given.composed())
}
