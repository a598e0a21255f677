//! `backends`: names to endpoints with their credentials.
//!
//! Invariant: backends stand in the snapshot by name, whatever the order in the document; each
//! that is not closed has at least one endpoint.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use policy::credential::{KnownSet, OF_APIS, UpstreamAuth};
use policy::id::{BackendId, EndpointId};
use policy::snapshot::{self, AskUsage, Chain, Origin, Protocol, Snapshot, Spellings};
use translate::{Dialect, Translation};

use super::balancing::Balanced;
use super::proxy::Way;
use crate::decode::{At, Field, MapOf, Place};
use crate::host::AskedAt;
use crate::mask::quoted;
use crate::scalar::{Flag, Name};
use crate::schema::Backend;
use crate::schema::credential::UpstreamCredential;
use crate::target::Target;
use policy::plain::actions::FieldEdits;

/// An endpoint before it is numbered.
pub(super) struct Address<'a> {
    pub(super) target: &'a At<Target>,
    weight: u32,
    credential: &'a Field<UpstreamCredential>,
    owner: Place,
    edits: Option<Box<FieldEdits>>,
}

/// What all endpoints of a backend have of it.
struct OfEach {
    id: BackendId,
    protocol: Protocol,
    ca_file: String,
    certificate: String,
    way: Way,
    tls_name: Option<Arc<str>>,
    alt_names: Arc<[Box<str>]>,
    is_plain: bool,
    has_tools: bool,
    is_elsewhere: bool,
    at_root: bool,
}

/// What a backend is for.
#[derive(Clone, Copy)]
pub(super) enum Serves<'a> {
    /// Models, or plain HTTP.
    Models,
    /// It is a server of tools.
    Tools,
    /// Likewise, and its address is said elsewhere.
    ToolsAt(&'a At<Target>),
}

impl super::Lowering<'_> {
    pub(super) fn backends(&mut self, written: &MapOf<Name, Backend>, snapshot: &mut Snapshot) {
        let mut ordered: Vec<_> = written.0.iter().collect();
        ordered.sort_by(|a, b| a.0.value.cmp(&b.0.value));
        for (name, backend) in ordered {
            if let Some(backend) = backend {
                self.backend(name, backend, Serves::Models, snapshot);
            }
        }
        self.shared_pools(written, snapshot);
    }

    /// A server of tools is checked as one.
    pub(super) fn backend(
        &mut self,
        name: &At<Name>,
        written: &Backend,
        serves: Serves<'_>,
        snapshot: &mut Snapshot,
    ) {
        let addresses = match serves {
            Serves::ToolsAt(target) => vec![Address {
                target,
                weight: 1,
                credential: &written.credential,
                owner: name.place.clone(),
                edits: None,
            }],
            Serves::Models | Serves::Tools => self.addresses(name, written),
        };
        let has_tools = !matches!(serves, Serves::Models);
        let id = BackendId(number(snapshot.backends.len()));
        let of = self.of_each(id, name, written, has_tools, &addresses);
        let headers = self.added_headers(written);
        let filters = self.translation(name, written, &addresses);
        let spellings = spellings(written, &addresses);
        let several = addresses.len() > 1;
        let mut endpoints = Vec::new();
        let mut exchanges_tokens = false;
        for (index, address) in addresses.into_iter().enumerate() {
            let shown = match several {
                true => format!("{}#{}", name.value.0, index + 1),
                false => name.value.0.clone(),
            };
            let endpoint = EndpointId(number(snapshot.endpoints.len()));
            let made = self.endpoint(endpoint, shown.into(), written, address, &of);
            exchanges_tokens |=
                matches!(&made.auth, UpstreamAuth::Minted(minter) if minter.is_for_caller());
            endpoints.push(endpoint);
            snapshot.endpoints.push(made);
        }
        let asked = match of.is_plain {
            true => AskedAt::Off,
            false => self.asked(written, of.at_root),
        };
        self.made.asked.push(asked);
        let balanced = match has_tools {
            true => Balanced::default(),
            false => self.balancing(name, written, endpoints.len()),
        };
        let Balanced {
            balancer,
            metrics,
            picker,
        } = balanced;
        snapshot.is_balanced |= balancer.is_some() || picker.is_some();
        self.made.engine_metrics.push(metrics);
        self.made.pickers.push(picker);
        snapshot.backends.push(snapshot::Backend {
            name: Arc::from(name.value.0.as_str()),
            is_plain: of.is_plain,
            endpoints,
            is_unready: written.unready.get().is_some_and(|at| at.value.0),
            models: self.models(written),
            model_names: self.model_names(written),
            spellings,
            filters,
            timeouts: self.timeouts(written),
            ejection: self.ejection(written),
            pool: self.pool(written),
            exchanges_tokens,
            headers,
            withheld_headers: withheld_headers(written),
            ask_usage: written
                .ask_usage
                .get()
                .map_or_else(AskUsage::default, |at| at.value.0),
            query: self.added_query(written),
            balancer,
            // The host gives who asks it.
            picker: None,
        });
    }

    /// What all its endpoints have of it.
    fn of_each(
        &mut self,
        id: BackendId,
        name: &At<Name>,
        written: &Backend,
        has_tools: bool,
        addresses: &[Address<'_>],
    ) -> OfEach {
        let ca_file = self.roots(name, written, addresses);
        let way = self.way(&written.proxy);
        let is_plain = has_tools || written.serves.get().is_some_and(|at| at.value.0);
        if is_plain && !has_tools {
            self.check_plain_backend(&name.place, written);
        }
        let at_root = match &written.at_root {
            Field::Absent => is_plain || written.serves.is_bad() || is_at_root(written),
            // What it was meant to say is not known.
            Field::Bad => true,
            Field::Is(at) => at.value.0,
        };
        OfEach {
            id,
            protocol: written
                .protocol
                .get()
                .map_or(Protocol::Auto, |at| at.value.0),
            ca_file,
            certificate: self.client_certificate(name, written, addresses),
            way,
            tls_name: written
                .tls_name
                .value()
                .map(|name| Arc::from(name.0.as_str())),
            alt_names: self.alt_names(written),
            is_plain,
            has_tools,
            is_elsewhere: written.local.value().is_some_and(|local| !local.0),
            at_root,
        }
    }

    fn endpoint(
        &mut self,
        id: EndpointId,
        name: Arc<str>,
        written: &Backend,
        address: Address<'_>,
        of: &OfEach,
    ) -> snapshot::Endpoint {
        let target = &address.target.value;
        let auth = self.upstream_auth(address.credential, key_header(written), &address.owner, id);
        if auth != UpstreamAuth::None && !target.tls {
            self.in_clear(&address.target.place, target);
        }
        self.header_of_credential(written, address.credential);
        self.check_path(written, address.target, of.at_root);
        if of.has_tools {
            self.not_on_the_link(address.target);
        }
        let proxy = match &of.way {
            Way::Written(proxy) => proxy.clone(),
            Way::Environment => self.environment_proxy(address.target),
        };
        // What is of certificates counts under TLS alone.
        let certified = |text: &String| match target.tls {
            true => text.clone(),
            false => String::new(),
        };
        snapshot::Endpoint {
            name,
            backend: of.id,
            origin: Origin {
                tls: target.tls,
                host: target.host.clone(),
                port: target.port,
                protocol: of.protocol,
                ca_file: certified(&of.ca_file),
                certificate: certified(&of.certificate),
                proxy,
                is_kept_off_the_link: of.has_tools || of.is_elsewhere,
                is_kept_off_the_machine: of.is_elsewhere,
                tls_name: of.tls_name.clone().filter(|_| target.tls),
                alt_names: match target.tls {
                    true => Arc::clone(&of.alt_names),
                    false => Arc::default(),
                },
            },
            authority: target.authority.clone(),
            base_path: target.base_path.clone(),
            weight: address.weight,
            auth,
            edits: address.edits,
        }
    }

    /// Whether an address ends where the API begins.
    fn check_path(&mut self, written: &Backend, target: &At<Target>, at_root: bool) {
        let base_path = &target.value.base_path;
        if base_path.is_empty() && !at_root {
            let is = "has no path, so calls would go to /chat/completions";
            let hint = format!("{ADD_ROOT}{OR_AT_ROOT}");
            self.refuse(target, is, hint);
        }
        if is_at_root(written) && base_path.ends_with(OPENAI_OF_BEDROCK) {
            let hint = "end the address before that path; or write dialect: openai";
            let is = "is where Bedrock speaks openai, and its own API is at the root";
            self.refuse(target, is, hint);
        }
        if let Some(call) = policy::operation::call_at_end(base_path) {
            let says = format!(
                "{} ends with the path of a call, so calls would go to …/{call}/{call}",
                target.shown
            );
            let hint = "end it at the API's root, before the path of the call";
            self.fault(&target.place, says, hint);
        }
    }

    /// What translates its calls, where it says what it speaks.
    fn translation(
        &mut self,
        name: &At<Name>,
        written: &Backend,
        addresses: &[Address<'_>],
    ) -> Chain {
        let spoken = written.dialect.items().iter();
        let mut spoken: Vec<_> = spoken.map(|at| at.value.0).collect();
        if spoken.contains(&Dialect::Azure) {
            let has_deployments = self.deployments(name, written, addresses);
            let azure = spoken.iter_mut().filter(|of| **of == Dialect::Azure);
            azure
                .filter(|_| !has_deployments)
                .for_each(|of| *of = Dialect::OpenAi);
        }
        let first = spoken.split_first();
        first
            .map(|(first, others)| Arc::new(Translation::new(*first, others)) as _)
            .into_iter()
            .collect()
    }

    /// Whether a backend of Azure's is asked at a path for each deployment: its newer API has none, and an address may name one.
    fn deployments(
        &mut self,
        name: &At<Name>,
        written: &Backend,
        addresses: &[Address<'_>],
    ) -> bool {
        let has = |address: &Address<'_>| {
            let root = &address.target.value.base_path;
            !root.ends_with("/v1") && !root.contains("/deployments/")
        };
        let mut forms = addresses.iter().map(has);
        let first = forms.next().unwrap_or(false);
        if forms.any(|form| form != first) {
            let says = format!(
                "the addresses of {} are of two forms of Azure's API",
                name.shown
            );
            let hint = "end all with /openai, or all with /openai/v1";
            self.fault(&name.place, says, hint);
        }
        let names = written.query.items();
        let says_version = names.iter().any(|(name, _)| name.value.0 == "api-version");
        if first && !says_version && !addresses.is_empty() {
            let says = format!("no version of Azure's API is said for {}", name.shown);
            let hint =
                "write query: { api-version: 2024-10-21 }, or an address that ends with /openai/v1";
            self.warn(&name.place, says, hint);
        }
        first
    }

    /// The one `url` or the several `endpoints`, and never both.
    fn addresses<'a>(&mut self, name: &At<Name>, written: &'a Backend) -> Vec<Address<'a>> {
        let is = |flag: &Field<At<Flag>>| match flag {
            Field::Absent => false,
            // What it was meant to say is not known.
            Field::Bad => true,
            Field::Is(at) => at.value.0,
        };
        let is_closed = is(&written.closed) || is(&written.unready);
        match (written.url.is_absent(), written.endpoints.is_absent()) {
            (true, true) if is_closed => {}
            (false, _) | (_, false)
                if is_closed && !written.closed.is_bad() && !written.unready.is_bad() =>
            {
                let hint = "leave the address out, or `closed` and `unready`";
                self.fault(&name.place, "is closed, and says an address", hint);
            }
            (true, true) => {
                let hint = "write url: http://host:port/v1";
                self.fault(&name.place, "says no address", hint);
            }
            (false, false) => {
                let hint = "move the `url` into `endpoints`";
                self.fault(&name.place, "says both url and endpoints", hint);
            }
            _ => {}
        }
        if let Some(target) = written.url.get() {
            let (credential, owner) = (&written.credential, name.place.clone());
            return vec![Address {
                target,
                weight: 1,
                credential,
                owner,
                edits: None,
            }];
        }
        let mut addresses = Vec::new();
        for (place, endpoint) in written.endpoints.items() {
            let Some(endpoint) = endpoint else { continue };
            let Some(target) = endpoint.url.get() else {
                continue;
            };
            let own = !endpoint.credential.is_absent();
            let credential = if own {
                &endpoint.credential
            } else {
                &written.credential
            };
            let owner = if own {
                place.clone()
            } else {
                name.place.clone()
            };
            let weight = endpoint.weight.get().map_or(1, |at| at.value.0);
            let edits = self.edits(endpoint.request_headers.get());
            if !edits.is_empty() && !written.serves.value().is_some_and(|serves| serves.0) {
                let says = "says request_headers, which are of backends that say serves: http";
                self.fault(place, says, "leave them out");
            }
            let edits = (!edits.is_empty()).then(|| Box::new(edits));
            addresses.push(Address {
                target,
                weight,
                credential,
                owner,
                edits,
            });
        }
        addresses
    }

    fn roots(&mut self, name: &At<Name>, written: &Backend, addresses: &[Address<'_>]) -> String {
        let Some(at) = written.ca.get() else {
            return String::new();
        };
        let written_ones = written.endpoints.get().map_or(1, |list| list.0.len());
        // One that cannot be read may be https.
        let are_known = addresses.len() == written_ones;
        if are_known && !addresses.iter().any(|a| a.target.value.tls) {
            let says = format!(
                "no address of {} is https, so no certificate is checked",
                name.shown
            );
            self.fault(&at.place, says, "write https:// or remove `ca`");
        }
        let Some((path, _)) = self.certificate(at) else {
            return String::new();
        };
        match path.into_os_string().into_string() {
            Ok(path) => path,
            Err(_) => {
                self.fault(&at.place, "the file's full path is not UTF-8", "move it");
                String::new()
            }
        }
    }

    /// Where it is asked what prompts count.
    fn asked(&mut self, written: &Backend, at_root: bool) -> AskedAt {
        let Some(at) = written.tokens.get() else {
            return AskedAt::Own;
        };
        let Some(target) = &at.value.0 else {
            return AskedAt::Off;
        };
        if target.base_path.is_empty() && !at_root {
            let hint = "write the API's root, which is /v1 for most engines";
            self.refuse(at, "has no path", hint);
        }
        AskedAt::Other(super::identity::address(target))
    }

    fn models(&mut self, written: &Backend) -> Vec<Arc<str>> {
        let mut seen = HashSet::new();
        let mut models = Vec::new();
        for at in written.models.items() {
            if seen.insert(&at.value.0) {
                models.push(Arc::from(at.value.0.as_str()));
            } else {
                self.twice(at);
            }
        }
        models
    }

    /// What it calls models, by the gate's names for them.
    fn model_names(&mut self, written: &Backend) -> BTreeMap<Arc<str>, Box<str>> {
        let mut names = BTreeMap::new();
        for (model, name) in written.model_names.items() {
            let Some(name) = name else { continue };
            let (model, name) = (&model.value.0, &name.value.0);
            names.insert(model.as_str().into(), name.as_str().into());
        }
        self.names_of_names(written);
        names
    }

    /// A name that stands for a model here, and is itself a model that has another name here.
    fn names_of_names(&mut self, written: &Backend) {
        let entries = written.model_names.items();
        for (model, name) in entries {
            let Some(name) = name else { continue };
            let next = entries.iter().find(|(key, _)| key.value.0 == name.value.0);
            let Some((_, Some(next))) = next else {
                continue;
            };
            if next.value.0 != name.value.0 && model.value.0 != name.value.0 {
                let says = format!(
                    "{} is also a model of the gate's, and is called {} here",
                    name.shown, next.shown
                );
                let hint = format!(
                    "names are replaced once: a call of {} goes upstream as {}",
                    model.shown, name.shown
                );
                self.warn(&name.place, says, hint);
            }
        }
    }

    pub(super) fn in_clear(&mut self, place: &Place, target: &Target) {
        if !is_here(&target.host) {
            let to = quoted(&super::identity::address(target));
            let says = format!("the credential travels in clear to {to}");
            self.warn(place, says, "use https://");
        }
    }
}

/// Whether a host is this machine.
pub(super) fn is_here(host: &str) -> bool {
    let ip = host.parse::<std::net::IpAddr>();
    // One that is no address of anybody is dialled as this machine.
    let is_own = |ip: std::net::IpAddr| ip.is_loopback() || ip.is_unspecified();
    ip.map_or(host == "localhost", |ip| is_own(ip.to_canonical()))
}

/// Of the headers that belong to an API those that are not named, where any are.
fn withheld_headers(written: &Backend) -> KnownSet {
    if written.api_headers.is_absent() {
        return KnownSet::default();
    }
    let passed = written.api_headers.items().iter();
    passed
        .filter_map(|at| at.value.0)
        .fold(OF_APIS, KnownSet::without)
}

/// What to do about an address without a path.
const ADD_ROOT: &str = "add the API's root, which is /v1 for most engines";
/// And what else, where a file says it.
pub(crate) const OR_AT_ROOT: &str =
    "; where it really is the root of the address, write at_root: true";
/// The path at which Bedrock speaks another dialect.
const OPENAI_OF_BEDROCK: &str = "/openai/v1";

/// Whether its API has no path of its own, or could not be read.
fn is_at_root(written: &Backend) -> bool {
    let first = written.dialect.items().first();
    first.map_or(written.dialect.is_bad(), |at| at.value.0.is_at_root())
}

/// The header in which its API takes keys.
fn key_header(written: &Backend) -> &'static str {
    let first = written.dialect.items().first();
    first.map_or("authorization", |at| at.value.0.key_header())
}

/// A position as an id; the document's bound on values keeps it far below `u32::MAX`.
pub(super) fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// How a name may begin at Google's endpoint for clients of OpenAI that stands there for the one without that beginning.
const SPELT_AT_GOOGLE: [&str; 2] = ["models/", "google/"];

/// Second spellings of models in the APIs that it speaks, where any has some.
fn spellings(written: &Backend, addresses: &[Address<'_>]) -> Option<Spellings> {
    let spoken = || written.dialect.items().iter().map(|at| at.value.0);
    let speaks_openai = written.dialect.is_absent() || spoken().any(|it| it == Dialect::OpenAi);
    let mut targets = addresses.iter().map(|address| &address.target.value);
    let of_google =
        (speaks_openai && targets.any(is_openai_of_google)).then_some(&SPELT_AT_GOOGLE[..]);
    let spelt = spoken().filter_map(Dialect::path_spellings);
    let mut spelt = spelt.chain(of_google).peekable();
    spelt.peek().is_some().then(|| Spellings {
        beginnings: spelt.flatten().copied().collect(),
        is_caseless: spoken().any(Dialect::knows_no_case),
    })
}

fn is_openai_of_google(target: &Target) -> bool {
    target.host == "generativelanguage.googleapis.com"
        || target.base_path.ends_with("/v1beta/openai")
}
