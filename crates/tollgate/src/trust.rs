//! Whom the gate trusts among the services that it asks and calls, of the bundle that the configuration names, and which certificate it
//! shows them.
//!
//! Not here: what is made of certificates (`proxy::tls`).

use std::path::Path;
use std::sync::Arc;

use callout::Tls;
use config::{Host, Sources};
use policy::snapshot::Origin;
use proxy::tls::ClientConfig;

/// Trust in the system's roots, or in a bundle (PEM) alone where one is given.
pub(crate) fn trust(ca_pem: Option<&[u8]>) -> Result<Tls, String> {
    let config = proxy::tls::client(ca_pem, None, &[]).map_err(|fault| fault.to_string())?;
    Ok(Tls::of(config))
}

/// Why an origin cannot be trusted.
pub(crate) enum Untrusted {
    /// Its bundle cannot be read.
    Unread(String),
    /// The bundle or the system's roots are of no use, or what the gate shows there, which is written at this place.
    Unusable(Option<String>, String),
}

/// Trust in an origin, by which calls go there and questions, too, and the certificate that the gate shows there.
pub(crate) fn of_origin(
    origin: &Origin,
    host: &Host,
    sources: &dyn Sources,
) -> Result<Arc<ClientConfig>, Untrusted> {
    let mut shown = host.client_certificates.iter();
    let shown = shown.find(|of| of.digest == origin.certificate);
    let bundle = (!origin.ca_file.is_empty())
        .then(|| sources.read(Path::new(&origin.ca_file), config::FILE_BYTES_MAX))
        .transpose()
        .map_err(|error| Untrusted::Unread(format!("{}: {error}", origin.ca_file)))?;
    let identity = shown.map(|of| (&*of.certificate_pem, of.key_pem.expose()));
    let made = proxy::tls::client(bundle.as_deref(), identity, &origin.alt_names);
    let shown_at = || shown.map(|of| of.place.clone());
    made.map_err(|fault| Untrusted::Unusable(shown_at(), fault.to_string()))
}
