//! Who is asked what engines have to do, the addresses of backends whose calls go by that; and who picks among them.
//!
//! Invariant: nobody is asked but addresses of the configuration in force, at the path that it says, and no credential is sent.
//! Not here: asking (`callout`), what is made of the answers (`policy::balancing`), how it is shown (`metrics::balancing`).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use callout::{
    Bounds, Client, EndpointPicker, EngineMetrics, EngineNews, PickerSettings, Protocol, Running,
    Tls, Url,
};
use config::{Host, Sources};
use policy::balancing::Shared;
use policy::revision::Revision;
use policy::snapshot::{self, Endpoint, Snapshot};

use crate::services::{Moment, Services};
use crate::trust::{Untrusted, of_origin, trust as trusting};
use crate::watched::{Asked, Who};

/// What the questions are counted as.
const SERVICE: &str = "engine_metrics";
const PICKER: &str = "endpoint_picker";
/// The longest that one question may take, and its connection.
const WITHIN: Duration = Duration::from_secs(2);
/// How long a connection is kept for the next question.
const IDLE: Duration = Duration::from_secs(30);

/// Gives backends whom to ask for an endpoint.
///
/// # Errors
/// A picker's address or roots are of no use.
pub(crate) fn complete(
    snapshot: &mut Snapshot,
    host: &Host,
    moment: Moment<'_>,
) -> Result<(), String> {
    for (backend, written) in snapshot.backends.iter_mut().zip(&host.pickers) {
        let Some(written) = written else { continue };
        let Some(services) = moment.services() else {
            settings(written).map_err(|fault| fault_of(&backend.name, &fault))?;
            continue;
        };
        let made = picker(written, services).map_err(|fault| fault_of(&backend.name, &fault))?;
        backend.picker = Some(made);
    }
    Ok(())
}

fn fault_of(backend: &str, fault: &str) -> String {
    format!("backends.{backend}.balancing.picker: {fault}")
}

/// Whoever picks, as is written; whom an earlier configuration asks already is asked on.
pub(crate) fn picker(
    written: &config::EndpointPicker,
    services: &Services,
) -> Result<Arc<EndpointPicker>, String> {
    services.pickers.of(written, || {
        let settings = settings(written)?;
        let questions = services.questions(PICKER, &settings.url);
        let made = EndpointPicker::new(&services.handle()?, &settings, questions);
        made.map_err(|fault| fault.to_string())
    })
}

fn settings(written: &config::EndpointPicker) -> Result<PickerSettings, String> {
    let url = Url::parse(&written.url).map_err(|fault| fault.to_string())?;
    Ok(PickerSettings {
        tls: match written.is_anyone {
            true => Tls::anyone().map_err(|fault| fault.to_string())?,
            false => trusting(written.ca_pem.as_deref())?,
        },
        within: written.timeout,
        fails_open: written.fails_open,
        adds_fields: written.adds_fields,
        url,
    })
}

/// Asks the engines of a configuration, for as long as what is returned is kept.
///
/// # Errors
/// The roots that an address trusts cannot be read.
pub(crate) fn watch(
    revision: &Revision,
    host: &Host,
    sources: &dyn Sources,
    services: &Services,
) -> Result<Vec<Arc<Asked>>, String> {
    let snapshot = &revision.snapshot;
    let mut watched = Vec::new();
    let mut bundles = BTreeMap::new();
    for (backend, metrics) in snapshot.backends.iter().zip(&host.engine_metrics) {
        let (Some(balancer), Some(metrics)) = (&backend.balancer, metrics) else {
            continue;
        };
        for (place, id) in backend.endpoints.iter().enumerate() {
            let (Some(endpoint), Some(shared)) = (snapshot.endpoint(*id), balancer.endpoint(place))
            else {
                continue;
            };
            // Whoever is reached through a proxy alone is not asked past it.
            if endpoint.origin.proxy.is_some() {
                continue;
            }
            let scheme = if endpoint.origin.tls { "https" } else { "http" };
            let url = format!("{scheme}://{}{}", endpoint.authority, metrics.path);
            let who = Who {
                shared: Arc::clone(shared),
                url,
                every: metrics.every,
                roots: *bundles
                    .entry(endpoint.origin.ca_file.as_str())
                    .or_insert_with(|| print(&endpoint.origin.ca_file, sources)),
            };
            let begin = || begin(&who, endpoint, (host, sources), services);
            let asked = services.watched.asked(&who, begin);
            let asked = asked.map_err(|fault| format!("backends.{}: {fault}", backend.name))?;
            watched.push(asked);
        }
    }
    Ok(watched)
}

/// What tells a bundle from others; none where the system's roots are meant, or it cannot be read, which is told where it is used.
fn print(bundle: &str, sources: &dyn Sources) -> Option<[u8; 32]> {
    let path = Some(bundle).filter(|bundle| !bundle.is_empty())?;
    let bytes = sources.read(Path::new(path), config::FILE_BYTES_MAX).ok()?;
    Some(::identity::fingerprint(&bytes))
}

/// Begins to ask an engine.
fn begin(
    who: &Who,
    endpoint: &Endpoint,
    (host, sources): (&Host, &dyn Sources),
    services: &Services,
) -> Result<Running, String> {
    let url = Url::parse(&who.url).map_err(|fault| format!("{}: {fault}", who.url))?;
    let asking = EngineMetrics {
        client: client(endpoint, host, sources)?,
        questions: services.questions(SERVICE, &url),
        url,
        every: who.every,
        shared: Arc::clone(&who.shared),
        now: proxy::monotonic,
        tell,
    };
    Ok(services.handle()?.run(asking.run()))
}

fn client(endpoint: &Endpoint, host: &Host, sources: &dyn Sources) -> Result<Client, String> {
    let origin = &endpoint.origin;
    let trust = match origin.tls {
        true => trust(origin, host, sources)?,
        false => Tls::nobody().map_err(|fault| fault.to_string())?,
    };
    let protocol = match origin.protocol {
        snapshot::Protocol::Http2 => Protocol::Http2,
        snapshot::Protocol::Http1 | snapshot::Protocol::Auto => Protocol::Either,
    };
    let bounds = Bounds {
        connect: WITHIN,
        head: WITHIN,
        total: WITHIN,
        requests: 1,
        kept: 1,
        idle: IDLE,
        allow_link_local: false,
        protocol,
    };
    Ok(Client::new(&trust, bounds))
}

/// The log tells of what changes.
fn tell(engine: &str, news: &EngineNews) {
    match news {
        EngineNews::Silent(fault) => tracing::warn!(
            engine,
            "cannot read the engine's load: it is chosen by the requests that this gate sends it: {fault}"
        ),
        EngineNews::Heard => tracing::info!(engine, "the engine's load can be read again"),
        EngineNews::Anew => {
            tracing::info!(engine, "the engine restarted: its cached prompts are gone")
        }
    }
}

/// Trust as for calls, with the certificate that the gate shows there.
fn trust(origin: &snapshot::Origin, host: &Host, sources: &dyn Sources) -> Result<Tls, String> {
    match of_origin(origin, host, sources) {
        Ok(made) => Ok(Tls::of(made)),
        Err(Untrusted::Unread(says) | Untrusted::Unusable(_, says)) => Err(says),
    }
}

/// Each endpoint of a balanced backend, with the backend's name and what is known of it.
pub(crate) fn endpoints(s: &Snapshot) -> impl Iterator<Item = (&str, &Endpoint, &Arc<Shared>)> {
    s.backends.iter().flat_map(move |backend| {
        let balancer = backend.balancer.iter();
        balancer.flat_map(move |balancer| {
            let endpoints = backend.endpoints.iter().enumerate();
            endpoints.filter_map(move |(place, id)| {
                Some((&*backend.name, s.endpoint(*id)?, balancer.endpoint(place)?))
            })
        })
    })
}
