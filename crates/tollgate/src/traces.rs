//! Spans on their way out of the process: the collector as the configuration names it.
//!
//! Not here: what a span says, how batches wait and how they are sent (`telemetry`).

use policy::trace::Sampling;
use telemetry::{OtlpEndpoint, OtlpExporter, OtlpProtocol, Service, Traces};

/// Starts the thread that sends, and says which traces are kept.
pub(crate) fn start(settings: &config::Traces) -> Result<(Traces, Sampling), String> {
    let endpoint = endpoint(settings).map_err(|fault| format!("traces.{fault}"))?;
    let service = Service {
        name: settings.service.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        instance: instance(),
    };
    let traces = OtlpExporter::new(endpoint).and_then(|exporter| Traces::start(service, exporter));
    let traces = traces.map_err(|error| format!("cannot send traces: {error}"))?;
    Ok((traces, Sampling::millionths(settings.ratio_millionths)))
}

/// Where they are sent; nobody is asked.
pub(crate) fn endpoint(settings: &config::Traces) -> Result<OtlpEndpoint, String> {
    let trust = settings
        .tls
        .then(|| proxy::tls::client(settings.ca_pem.as_deref(), None, &[]));
    Ok(OtlpEndpoint {
        host: settings.host.clone(),
        port: settings.port,
        authority: settings.authority.clone(),
        path: settings.path.clone(),
        protocol: match settings.protocol {
            config::OtlpProtocol::Http => OtlpProtocol::Http,
            config::OtlpProtocol::Grpc => OtlpProtocol::Grpc,
        },
        auth: settings.auth.clone(),
        tls: trust.transpose().map_err(|fault| format!("ca: {fault}"))?,
    })
}

/// What tells this process from the others of its service: the machine's name and the process id.
fn instance() -> String {
    let host = rustix::system::uname();
    format!(
        "{}/{}",
        host.nodename().to_string_lossy(),
        std::process::id()
    )
}
