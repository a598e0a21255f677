//! `model_list`: deployments, and where and as whom each of them is reached.
//!
//! Not here: which of them share a backend (`plan`).

mod reach;

pub(super) use self::reach::target;
use self::reach::{AZURE, BEDROCK, VERTEX, bedrock_api, vertex_model};
use super::comment;
use super::credential::Credential;
use super::left;
use super::price::Price;
use super::provider::{self, Kind, Provider};
use super::read::{Given, Section};
use super::settings::Settings;
use crate::decode::{Findings, Place, Written};
use crate::mask::quoted;
use crate::scalar::{Model, Pattern};

/// Members of `litellm_params` that are read here or by what is asked here.
const READ: &[&str] = &[
    "model",
    "api_key",
    "api_base",
    "base_url",
    "custom_llm_provider",
    "litellm_credential_name",
    "organization",
    "extra_headers",
    "timeout",
    "weight",
    "rpm",
    "tpm",
    "order",
];

/// Providers that a name without one may be meant for, where all are.
const ANY: [&str; 3] = ["openai", "anthropic", "gemini"];

/// One way to reach a model.
pub(super) struct Deployment {
    pub(super) place: Place,
    /// The name that clients ask for.
    pub(super) group: String,
    pub(super) id: Option<String>,
    pub(super) provider: &'static Provider,
    /// What the model is called there; with a `*` at its end where it stands for several.
    pub(super) upstream: String,
    /// Its address is not the provider's own.
    pub(super) is_elsewhere: bool,
    pub(super) reach: Reach,
    pub(super) weight: Option<u64>,
    pub(super) rpm: Option<u64>,
    pub(super) tpm: Option<u64>,
    pub(super) order: u64,
    pub(super) price: Option<Price>,
    pub(super) notes: Vec<String>,
}

/// Where, as whom and how.
#[derive(Clone)]
pub(super) struct Reach {
    /// With variables.
    pub(super) url: String,
    pub(super) credential: Option<Credential>,
    /// Members of its backend, by name.
    pub(super) manner: Vec<(String, String)>,
}

/// What was read, and what was left.
pub(super) struct Deployments {
    pub(super) list: Vec<Deployment>,
    pub(super) notes: Vec<String>,
}

/// All deployments that a backend can stand for.
pub(super) fn all(
    root: &Section<'_>,
    settings: &Settings,
    findings: &mut Findings,
) -> Option<Deployments> {
    let items = root.list("model_list");
    if items.is_empty() {
        let hint = if root.get("include").is_some() {
            "import the files that `include` names, each for itself"
        } else {
            "name a configuration of LiteLLM's proxy"
        };
        findings.fault(&root.place_of("model_list"), "there are no models", hint);
        return None;
    }
    let mut all = Deployments {
        list: Vec::new(),
        notes: Vec::new(),
    };
    for (index, item) in items.iter().enumerate() {
        let path = format!("model_list[{index}]");
        if let Some(item) = Section::open(item, &path, findings) {
            one(&item, root, settings, &mut all, findings);
        }
    }
    Some(all)
}

fn one(
    item: &Section<'_>,
    root: &Section<'_>,
    settings: &Settings,
    all: &mut Deployments,
    findings: &mut Findings,
) {
    let Some(group) = named(item, "model_name", findings) else {
        return;
    };
    if item.get("litellm_params").is_none() {
        let hint = "write litellm_params: { model: PROVIDER/NAME }";
        findings.fault(&item.place, "has no litellm_params", hint);
        return;
    }
    let params = item.section("litellm_params", findings);
    let Some(model) = named(&params, "model", findings) else {
        return;
    };
    let params = with_credential(params, root, findings);
    let providers = match providers(&model, &params, findings) {
        Ok(providers) => providers,
        Err(says) => return leave(&item.place, &group, &says, all, findings),
    };
    if Pattern::read(&group).is_err() && Model::read(&group).is_err() {
        let says = "no route can match this name: names have no spaces, and a `*` only at the end";
        return leave(&item.place, &group, says, all, findings);
    }
    let is_any = providers.len() > 1;
    for (provider, upstream) in providers {
        let wanted = Wanted {
            item,
            params: &params,
            group: if is_any {
                format!("{}/*", provider.name)
            } else {
                group.clone()
            },
            provider,
            upstream,
        };
        match wanted.read(settings, findings) {
            Ok(deployment) => all.list.push(deployment),
            Err(says) => leave(&item.place, &group, &says, all, findings),
        }
    }
}

/// A deployment that is not taken over: a warning, and a comment.
fn leave(place: &Place, group: &str, says: &str, all: &mut Deployments, findings: &mut Findings) {
    let says = format!("{} is left out: {says}", quoted(group));
    all.notes.push(comment::of(place, &says));
    findings.warn(place, says, "");
}

/// A name that has to be there, and is no variable's.
fn named(section: &Section<'_>, key: &str, findings: &mut Findings) -> Option<String> {
    if section.get(key).is_none() {
        findings.fault(&section.place, format!("has no {key}"), "");
        return None;
    }
    match section.text(key, findings)? {
        Given::Text(text) => Some(text),
        Given::Variable(_) => {
            let says = "is a variable's name, and what it holds decides what is written here";
            findings.fault(&section.place_of(key), says, "write the model's name");
            None
        }
    }
}

/// The members with those of the credential that they name.
fn with_credential<'a>(
    params: Section<'a>,
    root: &Section<'a>,
    findings: &mut Findings,
) -> Section<'a> {
    let Some(Given::Text(wanted)) = params.text("litellm_credential_name", findings) else {
        return params;
    };
    for (index, item) in root.list("credential_list").iter().enumerate() {
        let path = format!("credential_list[{index}]");
        let Some(item) = Section::open(item, &path, findings) else {
            continue;
        };
        if item.text("credential_name", findings) == Some(Given::Text(wanted.clone())) {
            let values = item.section("credential_values", findings);
            return params.or(&values);
        }
    }
    let place = params.place_of("litellm_credential_name");
    let says = format!(
        "there is no credential {} in credential_list",
        quoted(&wanted)
    );
    findings.fault(&place, says, "");
    params
}

/// The provider and what the model is called there; three for a `*` that stands for all.
fn providers(
    model: &str,
    params: &Section<'_>,
    findings: &mut Findings,
) -> Result<Vec<(&'static Provider, String)>, String> {
    if model == "*" {
        let providers = ANY.iter().filter_map(|prefix| provider::of_prefix(prefix));
        return Ok(providers.map(|it| (it, "*".to_owned())).collect());
    }
    let unknown = |prefix: &str| {
        format!(
            "the API of the provider {} is not spoken here",
            quoted(prefix)
        )
    };
    let (provider, name) = match params.text("custom_llm_provider", findings) {
        Some(Given::Text(prefix)) => {
            let provider = provider::of_prefix(&prefix).ok_or_else(|| unknown(&prefix))?;
            let rest = model.strip_prefix(&format!("{prefix}/"));
            (provider, rest.unwrap_or(model))
        }
        _ => match model.split_once('/') {
            Some((prefix, name)) => {
                let provider = provider::of_prefix(prefix).ok_or_else(|| unknown(prefix))?;
                (provider, name)
            }
            None => {
                let says = "nothing says whose model it is; write PROVIDER/NAME";
                (provider::of_bare(model).ok_or(says)?, model)
            }
        },
    };
    let name = match provider.kind {
        Kind::Azure => without(name, &["o_series/", "gpt5_series/", "responses/"]),
        Kind::Bedrock => without(name, &["converse/", "invoke/"]),
        Kind::Plain if provider.name == "openai" => without(name, &["responses/"]),
        Kind::Plain | Kind::Vertex => name,
    };
    if Pattern::read(name).is_err() {
        return Err(format!("{} is not a model's name", quoted(name)));
    }
    Ok(vec![(provider, name.to_owned())])
}

fn without<'a>(name: &'a str, starts: &[&str]) -> &'a str {
    let mut rests = starts.iter().filter_map(|start| name.strip_prefix(start));
    rests.next().unwrap_or(name)
}

/// A deployment of a provider that is known.
struct Wanted<'a> {
    item: &'a Section<'a>,
    params: &'a Section<'a>,
    group: String,
    provider: &'static Provider,
    upstream: String,
}

impl Wanted<'_> {
    fn read(self, settings: &Settings, findings: &mut Findings) -> Result<Deployment, String> {
        if self.provider.kind != Kind::Plain && self.upstream.contains('*') {
            return Err("its models have to be named, each for itself".into());
        }
        let mut notes = Vec::new();
        let (mut reach, is_elsewhere, upstream, read) = match self.provider.kind {
            Kind::Plain => {
                let (reach, is_elsewhere) = self.plain(&mut notes, findings)?;
                (reach, is_elsewhere, self.upstream.clone(), &[][..])
            }
            Kind::Azure => (self.azure(findings)?, false, self.upstream.clone(), AZURE),
            Kind::Vertex => {
                let upstream = vertex_model(&self.upstream)?;
                (self.vertex(&mut notes, findings), false, upstream, VERTEX)
            }
            Kind::Bedrock => {
                let api = bedrock_api(&self.upstream)?;
                (
                    self.bedrock(api, &mut notes, findings)?,
                    false,
                    self.upstream.clone(),
                    BEDROCK,
                )
            }
        };
        target(&reach.url)?;
        self.headers(&mut reach.manner, &mut notes, findings);
        let timeout = self.params.seconds("timeout", findings);
        if let Some(timeout) = timeout.as_ref().or(settings.timeout.as_ref()) {
            let value = format!("{{ first_byte: {timeout} }}");
            reach.manner.push(("timeouts".into(), value));
        }
        if let Some(ejection) = &settings.ejection {
            reach.manner.push(("ejection".into(), ejection.clone()));
        }
        let info = self.item.section("model_info", findings);
        let id = info.text("id", findings);
        let price = Price::read(self.params, &info, &mut notes, findings);
        left::of_params(self.params, &[READ, read], &mut notes);
        left::of_info(&info, &mut notes);
        left::of_item(self.item, &mut notes);
        let mut number = |key| self.params.count(key, findings);
        Ok(Deployment {
            place: self.item.place.clone(),
            id: id.and_then(|id| match id {
                Given::Text(id) => Some(id),
                Given::Variable(_) => None,
            }),
            upstream,
            is_elsewhere,
            reach,
            weight: number("weight"),
            rpm: number("rpm"),
            tpm: number("tpm"),
            order: number("order").unwrap_or(u64::MAX),
            group: self.group,
            provider: self.provider,
            price,
            notes,
        })
    }
}
