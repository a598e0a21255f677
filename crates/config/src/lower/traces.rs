//! `traces`: the collector that spans are sent to, and how many are.
//!
//! Not here: sending them (`telemetry`, `tollgate`).

use policy::credential::UpstreamAuth;

use super::said;
use crate::decode::{Field, Place};
use crate::host::{OtlpProtocol, Traces};
use crate::schema;

/// Where a collector takes spans over HTTP, below its address.
const PATH: &str = "/v1/traces";

impl super::Lowering<'_> {
    /// `None` where there is none, or when something is wrong, which is then among the findings.
    pub(super) fn traces(&mut self, written: &Field<schema::Traces>) -> Option<Traces> {
        let written = written.get()?;
        let protocol = written.protocol.get();
        let protocol = protocol.map_or(OtlpProtocol::Http, |at| at.value.0);
        let place = Place::new("traces", written.otlp.get().map_or(0, |at| at.place.line));
        let auth = self.auth(&written.credential, &place);
        let ca_pem = self.roots_of(&written.ca);
        let at = written.otlp.get()?;
        let target = &at.value.0;
        if matches!(auth, UpstreamAuth::Header { .. }) && !target.tls {
            self.in_clear(&at.place, target);
        }
        if protocol == OtlpProtocol::Grpc && !target.base_path.is_empty() {
            let hint = "write scheme, host and port only";
            self.refuse(at, "has a path, and gRPC has none", hint);
        }
        if let Some(ca) = written.ca.get().filter(|_| !target.tls) {
            let says = "the collector is not https, so no certificate is checked";
            let hint = "write https:// or remove `ca`";
            self.fault(&ca.place, says, hint);
        }
        let base = target.base_path.strip_suffix(PATH);
        Some(Traces {
            tls: target.tls,
            host: target.host.clone(),
            port: target.port,
            authority: target.authority.clone(),
            path: format!("{}{PATH}", base.unwrap_or(&target.base_path)),
            protocol,
            ratio_millionths: written.ratio.get().map_or(1_000_000, |at| at.value.0),
            service: said(&written.service, "tollgate"),
            auth,
            ca_pem,
        })
    }
}
