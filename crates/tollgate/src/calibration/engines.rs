//! Who is asked what prompts count: engines of backends, for the models that are counted with a public template.
//!
//! Invariant: nobody is asked but the addresses that the configuration has for backends. The credential of an address is
//! sent to it alone, whose certificate is trusted as for calls.
//! Not here: asking (`round`), and when (`calibration`).

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use callout::{Bounds, Client, EnginePlace, EngineTokens, Protocol, Questions};
use callout::{Tls, Url};
use config::{AskedAt, Host, Vocabulary};
use policy::counting::{label, tokenizer};
use policy::credential::{Credential, UpstreamAuth};
use policy::revision::Revision;
use policy::secret::Secret;
use policy::snapshot::{self, Backend, Endpoint};
use proxy::gate::{Trusted, trusted};

use crate::services::Services;

/// What the questions to engines are counted as.
const SERVICE: &str = "tokens";
/// How long a connection may take, where a question may take longer.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);
/// How long a question may take where the configuration has nobody asked, and a person asks all the same.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection is kept for the next question.
const IDLE: Duration = Duration::from_secs(5);

/// All who are asked, by one configuration.
pub(crate) struct Engines {
    /// How often; none where nobody is asked but by a person.
    pub(crate) every: Option<Duration>,
    pub(crate) all: Vec<Engine>,
    /// Models that nobody is asked for, with their backends, and why.
    pub(crate) passed_over: Vec<PassedOver>,
    revision: Arc<Revision>,
    kinds: HashMap<u64, Kind>,
    /// Where each backend stands and is asked.
    places: BTreeMap<Arc<str>, Place>,
    /// Tells it from one that asks others, or for other models.
    likeness: String,
}

/// Where a backend stands.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    /// Its addresses, with their paths.
    addresses: BTreeSet<(bool, String, String)>,
    asked: AskedAt,
    /// Addresses that nobody is asked at, although the backend is asked at its own.
    unasked: usize,
}

/// Why an engine cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoWay {
    /// By this configuration nobody asks it.
    Never(&'static str),
    /// It cannot be asked now.
    Now(String),
}

impl NoWay {
    /// In words.
    pub(crate) fn why(&self) -> &str {
        match self {
            Self::Never(why) => why,
            Self::Now(why) => why,
        }
    }
}

/// A model that nobody is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PassedOver {
    pub(crate) backend: Arc<str>,
    pub(crate) model: Arc<str>,
    pub(crate) why: &'static str,
}

/// One address, or what stands in for a backend's addresses.
pub(crate) struct Engine {
    pub(crate) backend: Arc<str>,
    /// The backend's place in the snapshot.
    index: usize,
    client: Client,
    api: Url,
    pub(super) auth: UpstreamAuth,
    headers: Vec<(String, Secret)>,
    query: String,
    questions: Arc<Questions>,
}

/// How a tokenizer's prompts are rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Harmony,
    Template,
    /// Nobody outside its provider knows.
    Unknown,
}

/// A model that an engine is asked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Model {
    /// As metrics have it.
    pub(crate) label: Arc<str>,
    /// As the engine calls it.
    pub(crate) name: String,
    /// The tokenizer.
    pub(crate) key: u64,
    pub(crate) is_harmony: bool,
}

impl Engines {
    /// Those of a configuration. Without services nobody is asked.
    pub(crate) fn of(
        revision: &Arc<Revision>,
        host: &Host,
        sources: &dyn config::Sources,
        services: Option<&Services>,
    ) -> Result<Self, String> {
        let kind = |source: &config::TokenizerSource| match source.vocabulary {
            Vocabulary::Harmony => Kind::Harmony,
            Vocabulary::Files { .. } => Kind::Template,
            Vocabulary::O200k | Vocabulary::Cl100k => Kind::Unknown,
        };
        let kinds = host.tokenizers.iter().map(|of| (of.key, kind(of)));
        let mut engines = Self {
            every: host.calibration.map(|calibration| calibration.every),
            all: Vec::new(),
            passed_over: Vec::new(),
            revision: Arc::clone(revision),
            kinds: kinds.collect(),
            places: places(&revision.snapshot, host),
            likeness: format!("{:?}", host.calibration),
        };
        let Some(services) = services else {
            return Ok(engines);
        };
        let making = Making {
            host,
            sources,
            services,
            trust: RefCell::default(),
            timeout: host
                .calibration
                .map_or(TIMEOUT, |calibration| calibration.timeout),
        };
        let snapshot = &revision.snapshot;
        let has_public = engines.kinds.values().any(|kind| *kind != Kind::Unknown);
        for (index, backend) in snapshot.backends.iter().enumerate() {
            let asked = host.asked.get(index).unwrap_or(&AskedAt::Off);
            for model in backend.known_models() {
                if let Some(why) = engines.not_asked(model, asked) {
                    let (backend, model) = (Arc::clone(&backend.name), Arc::clone(model));
                    engines.passed_over.push(PassedOver {
                        backend,
                        model,
                        why,
                    });
                }
            }
            if has_public {
                let made = making.engines(index, backend, asked, snapshot);
                let made = made.map_err(|fault| format!("backends.{}: {fault}", backend.name))?;
                if let Some(place) = engines.places.get_mut(&backend.name)
                    && *asked == AskedAt::Own
                {
                    place.unasked = backend.endpoints.len().saturating_sub(made.len());
                }
                engines.all.extend(made);
            }
        }
        engines.likeness = engines.written();
        Ok(engines)
    }

    /// Whether others ask the same of the same.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.likeness == other.likeness
    }

    /// Whether another configuration has others answer for a backend: it stands or is asked elsewhere, sends other names,
    /// headers or parameters, or is in one of both alone.
    pub(crate) fn moves(&self, other: &Self, backend: &str) -> bool {
        let place = |of: &Self| {
            let place = of.places.get(backend)?;
            Some((
                place.addresses.clone(),
                place.asked.clone(),
                of.sent(backend),
            ))
        };
        place(self) != place(other)
    }

    /// What chooses who answers, beside the address; to be compared.
    fn sent(&self, backend: &str) -> String {
        let mut all = self.revision.snapshot.backends.iter();
        let backend = all.find(|one| *one.name == *backend);
        let sent = backend.map(|backend| {
            let headers = backend.headers.iter().map(|one| (&one.name, &one.value));
            let query = backend.query.iter().map(|one| (&one.name, &one.value));
            let (headers, query): (Vec<_>, Vec<_>) = (headers.collect(), query.collect());
            format!("{:?}{headers:?}{query:?}", backend.model_names)
        });
        sent.unwrap_or_default()
    }

    /// Addresses of a backend that nobody is asked at, although the backend is asked at its own.
    pub(crate) fn unasked(&self, backend: &str) -> usize {
        self.places.get(backend).map_or(0, |place| place.unasked)
    }

    /// Whether a tokenizer is one of the configuration; a model of an engine that does not say which it serves has none.
    pub(crate) fn has(&self, key: u64) -> bool {
        self.kinds.contains_key(&key) || key == Model::any().key
    }

    fn not_asked(&self, model: &str, asked: &AskedAt) -> Option<&'static str> {
        let tokenizer = tokenizer(&self.revision.snapshot, model)?;
        match self.kinds.get(&tokenizer.key)? {
            Kind::Unknown => Some("its template is not public"),
            _ if *asked == AskedAt::Off => Some("`tokens` of the backend is off"),
            Kind::Harmony | Kind::Template => None,
        }
    }

    fn written(&self) -> String {
        let mut text = self.likeness.clone();
        for engine in &self.all {
            let backend = self.revision.snapshot.backends.get(engine.index);
            let names = backend.map(|of| (&of.models, &of.model_names));
            let place = (&engine.backend, engine.api.authority(), engine.api.target());
            let sent = self.sent(&engine.backend);
            let _ = write!(text, "{place:?}{names:?}{sent}");
        }
        let _ = write!(text, "{:?}", self.places);
        for tokenizer in &self.revision.snapshot.tokenizers {
            let _ = write!(text, "{:?}{}", tokenizer.models, tokenizer.key);
        }
        text
    }

    /// The models that an engine is asked for, of those that the configuration says it has, else of those that it says
    /// it serves.
    pub(crate) fn models(&self, engine: &Engine, served: &[String]) -> Vec<Model> {
        let snapshot = &self.revision.snapshot;
        let Some(backend) = snapshot.backends.get(engine.index) else {
            return Vec::new();
        };
        let known: Vec<&str> = backend.known_models().map(|name| &**name).collect();
        let names: Vec<&str> = if known.is_empty() {
            served.iter().map(String::as_str).collect()
        } else {
            known
        };
        let mut models: Vec<Model> = names
            .into_iter()
            .filter_map(|name| self.model(backend, name))
            .collect();
        models.sort();
        models.dedup();
        // A pattern stands for all its models, which one tokenizer counts.
        models.dedup_by(|a, b| (&a.label, a.key) == (&b.label, b.key));
        models
    }

    /// Whether the engine has to say which models it serves.
    pub(crate) fn asks_for_models(&self, engine: &Engine) -> bool {
        let backend = self.revision.snapshot.backends.get(engine.index);
        backend.is_some_and(|backend| backend.known_models().next().is_none())
    }

    fn model(&self, backend: &Backend, name: &str) -> Option<Model> {
        let snapshot = &self.revision.snapshot;
        let tokenizer = tokenizer(snapshot, name)?;
        let kind = *self.kinds.get(&tokenizer.key)?;
        (kind != Kind::Unknown).then(|| Model {
            label: label(snapshot, tokenizer, name),
            name: backend.model_name(name).to_owned(),
            key: tokenizer.key,
            is_harmony: kind == Kind::Harmony,
        })
    }
}

impl Model {
    /// Stands for the models of an engine that does not say which it serves.
    pub(crate) fn any() -> Self {
        Self {
            label: Arc::from("*"),
            name: String::new(),
            key: 0,
            is_harmony: false,
        }
    }
}

impl Engine {
    /// The way to ask it, with its credential as it is now.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) async fn tokens(&self) -> Result<EngineTokens, NoWay> {
        let mut headers = self.headers.clone();
        match &self.auth {
            UpstreamAuth::None => {}
            UpstreamAuth::Header { name, value } => headers.push((name.clone(), value.clone())),
            UpstreamAuth::Minted(minter) if minter.is_for_caller() => {
                return Err(NoWay::Never("its credential is made of a caller's own"));
            }
            UpstreamAuth::Minted(minter) => {
                let ready = minter.ready(None);
                let made = match ready {
                    Some(ready) => Some(ready),
                    None => minter.mint(None).await,
                };
                match made.as_deref() {
                    None => {
                        return Err(NoWay::Now("the gate cannot get its credential".to_owned()));
                    }
                    Some(Credential::Signer(_)) => {
                        return Err(NoWay::Never("its requests are signed"));
                    }
                    Some(Credential::Header { name, value }) => {
                        headers.push((name.clone(), value.clone()));
                    }
                }
            }
        }
        let place = EnginePlace {
            api: self.api.clone(),
            headers,
            query: self.query.clone(),
        };
        let (client, questions) = (self.client.clone(), Arc::clone(&self.questions));
        Ok(EngineTokens::new(client, place, questions))
    }
}

fn places(snapshot: &snapshot::Snapshot, host: &Host) -> BTreeMap<Arc<str>, Place> {
    let backends = snapshot.backends.iter().enumerate();
    let place = |(index, backend): (usize, &Backend)| {
        let endpoints = backend.endpoints.iter();
        let endpoints = endpoints.filter_map(|id| snapshot.endpoints.get(id.index()));
        let address = |it: &Endpoint| (it.origin.tls, it.authority.clone(), it.base_path.clone());
        let place = Place {
            addresses: endpoints.map(address).collect(),
            asked: host.asked.get(index).cloned().unwrap_or(AskedAt::Off),
            unasked: 0,
        };
        (Arc::clone(&backend.name), place)
    };
    backends.map(place).collect()
}

/// What engines are made of.
struct Making<'m> {
    host: &'m Host,
    sources: &'m dyn config::Sources,
    services: &'m Services,
    timeout: Duration,
    /// Trust that was made already, by its roots and the certificate that the gate shows.
    trust: RefCell<BTreeMap<Trusted, Tls>>,
}

impl Making<'_> {
    fn engines(
        &self,
        index: usize,
        backend: &Backend,
        asked: &AskedAt,
        snapshot: &snapshot::Snapshot,
    ) -> Result<Vec<Engine>, String> {
        let endpoints = backend.endpoints.iter();
        let endpoints = endpoints.filter_map(|id| snapshot.endpoints.get(id.index()));
        // Whoever is reached through a proxy alone is not asked past it.
        let mut straight = endpoints.filter(|endpoint| endpoint.origin.proxy.is_none());
        match asked {
            AskedAt::Off => Ok(Vec::new()),
            AskedAt::Own => straight
                .filter_map(|endpoint| self.own(index, backend, endpoint).transpose())
                .collect(),
            AskedAt::Other(url) => {
                let api = parsed(url)?;
                let at = |endpoint: &&Endpoint| {
                    endpoint.origin.tls == api.is_tls()
                        && endpoint.authority == api.authority()
                        && callout::api_root(&endpoint.base_path) == callout::api_root(api.target())
                };
                let own = match straight.find(at) {
                    Some(endpoint) => self.own(index, backend, endpoint)?,
                    None => None,
                };
                let mut engine = match own {
                    Some(engine) => engine,
                    None => {
                        let ca_file = backend.endpoints.first();
                        let ca_file = ca_file.and_then(|id| snapshot.endpoints.get(id.index()));
                        let ca_file = ca_file.map_or("", |endpoint| &endpoint.origin.ca_file);
                        let trusted = (ca_file.to_owned(), String::new(), Arc::default());
                        let client = self.client(api.is_tls(), trusted, Protocol::Either)?;
                        Engine {
                            backend: Arc::clone(&backend.name),
                            index,
                            client,
                            auth: UpstreamAuth::None,
                            headers: Vec::new(),
                            query: String::new(),
                            questions: self.services.questions(SERVICE, &api),
                            api: api.clone(),
                        }
                    }
                };
                engine.api = api;
                Ok(vec![engine])
            }
        }
    }

    /// One that is asked at an address of its backend; none where nobody is asked at such an address.
    fn own(
        &self,
        index: usize,
        backend: &Backend,
        endpoint: &Endpoint,
    ) -> Result<Option<Engine>, String> {
        let origin = &endpoint.origin;
        let scheme = if origin.tls { "https" } else { "http" };
        let address = format!("{scheme}://{}{}", endpoint.authority, endpoint.base_path);
        let Ok(api) = parsed(&address) else {
            return Ok(None);
        };
        let protocol = match origin.protocol {
            snapshot::Protocol::Http2 => Protocol::Http2,
            snapshot::Protocol::Http1 | snapshot::Protocol::Auto => Protocol::Either,
        };
        let header = |added: &snapshot::AddedHeader| {
            let name = String::from_utf8_lossy(&added.name).into_owned();
            // Of a client's header there is nothing here.
            let value = added.value.of(std::iter::empty())?;
            Some((name, Secret::new(value.into_vec())))
        };
        let members: BTreeMap<_, _> = backend.query.iter().map(|m| (&m.name, &m.value)).collect();
        let members = members.into_iter();
        let members: Vec<String> = members
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        Ok(Some(Engine {
            backend: Arc::clone(&backend.name),
            index,
            client: self.client(origin.tls, trusted(origin), protocol)?,
            questions: self.services.questions(SERVICE, &api),
            api,
            auth: endpoint.auth.clone(),
            headers: backend.headers.iter().filter_map(header).collect(),
            query: members.join("&"),
        }))
    }

    fn client(&self, is_tls: bool, trusted: Trusted, protocol: Protocol) -> Result<Client, String> {
        let trust = if is_tls {
            self.trust(trusted)?
        } else {
            Tls::nobody().map_err(|fault| fault.to_string())?
        };
        let bounds = Bounds {
            connect: CONNECT_WITHIN.min(self.timeout),
            head: self.timeout,
            total: self.timeout,
            requests: 1,
            kept: 1,
            idle: IDLE,
            allow_link_local: false,
            protocol,
        };
        Ok(Client::new(&trust, bounds))
    }

    fn trust(&self, of: Trusted) -> Result<Tls, String> {
        let (ca_file, certificate, alt_names) = &of;
        if let Some(made) = self.trust.borrow().get(&of) {
            return Ok(made.clone());
        }
        let bundle = (!ca_file.is_empty())
            .then(|| {
                self.sources
                    .read(Path::new(&ca_file), config::FILE_BYTES_MAX)
            })
            .transpose()
            .map_err(|error| format!("{ca_file}: {error}"))?;
        let mut shown = self.host.client_certificates.iter();
        let shown = shown.find(|of| of.digest == *certificate);
        let identity = shown.map(|of| (&*of.certificate_pem, of.key_pem.expose()));
        let made = proxy::tls::client(bundle.as_deref(), identity, alt_names);
        let made = Tls::of(made.map_err(|fault| fault.to_string())?);
        self.trust.borrow_mut().insert(of, made.clone());
        Ok(made)
    }
}

fn parsed(url: &str) -> Result<Url, String> {
    Url::parse(url).map_err(|fault| format!("{url}: {fault}"))
}

#[cfg(test)]
pub(super) mod tests;
