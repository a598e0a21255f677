//! Whom the gate trusts among the services that it asks, of the bundle that the configuration names.
//!
//! Not here: what is made of certificates (`proxy::tls`).

use callout::Tls;

/// Trust in the system's roots, or in a bundle (PEM) alone where one is given.
pub(crate) fn trust(ca_pem: Option<&[u8]>) -> Result<Tls, String> {
    let config = proxy::tls::client(ca_pem, None).map_err(|fault| fault.to_string())?;
    Ok(Tls::of(config))
}
