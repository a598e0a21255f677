//! `listen`, `admin`, `workers`, `access_log`, `drain`, `ledger`, `counting`, `traces`: what the process needs besides the snapshot.
//!
//! Not here: binding, serving, starting threads.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::admin::asks;
use crate::host::{AccessLog, ClientTls, Host, Lines, Tls};
use crate::scalar::LogTarget;
use crate::schema::{self, Document};

const GRACE_DEFAULT: Duration = Duration::from_secs(10 * 60);

impl super::Lowering<'_> {
    /// `None` when something is wrong, which is then among the findings.
    pub(super) fn host(&mut self, document: &Document) -> Option<Host> {
        let listen = document.listen.get();
        let data = listen.and_then(|l| l.data.get());
        let admin = listen.and_then(|l| l.admin.get());
        let data_address = data_address(document);
        let admin_address = admin.map_or_else(|| loopback(1976), |at| at.value.0);
        let is_faulty = |l: &schema::Listen| l.data.is_bad() || l.admin.is_bad();
        if clash(data_address, admin_address) && !listen.is_some_and(is_faulty) {
            let place = admin
                .or(data)
                .map(|at| at.place.clone())
                .unwrap_or_default();
            let unless = match (data, admin) {
                (None, Some(_)) => ", which is that of `data` unless said",
                (Some(_), None) => ", which is that of `admin` unless said",
                _ => "",
            };
            let port = data_address.port();
            let says = format!("both listeners would be on port {port}{unless}");
            self.fault(&place, says, "give `data` and `admin` ports of their own");
        }
        if let Some(at) = admin.filter(|at| !at.value.0.ip().is_loopback() && !asks(document)) {
            let hint = "keep it on a loopback address, or write admin: { bearer: { file: … } }";
            let says = format!(
                "{} can be reached from other machines, and asks for no credential",
                at.shown
            );
            self.warn(&at.place, says, hint);
        }
        let tls = listen.and_then(|l| l.tls.get());
        let served = tls.map(|tls| self.tls(tls));
        let workers = document.workers.value();
        let drain = document.drain.get();
        let grace = drain.and_then(|drain| drain.grace.value());
        let delay = drain.and_then(|drain| drain.delay.value());
        let ledger = document.ledger.get();
        Some(Host {
            data: data_address,
            admin: admin_address,
            admin_access: self.admin_access(document, admin_address)?,
            admin_login: self.admin_login(document, admin_address),
            tls: match served {
                Some(tls) => Some(tls?),
                None => None,
            },
            workers: workers.and_then(|count| usize::try_from(count.0).ok()),
            access_log: self.access_log(document),
            drain_grace: grace.map_or(GRACE_DEFAULT, |span| span.0),
            drain_delay: delay.map_or(Duration::ZERO, |span| span.0),
            ledger: self.ledger(&document.ledger),
            tokenizers: Vec::new(),
            credentials: Vec::new(),
            rules: None,
            ext_authz: None,
            access_review: None,
            upstream_credentials: Vec::new(),
            client_certificates: Vec::new(),
            counting: self.counting(document.counting.get()),
            calibration: self.calibration(document.counting.get()),
            asked: Vec::new(),
            engine_metrics: Vec::new(),
            pickers: Vec::new(),
            tool_commands: Vec::new(),
            tool_descriptions: Vec::new(),
            listeners: Vec::new(),
            traces: self.traces(&document.traces),
            responses: self.kept_responses(&document.responses),
            lines: Lines {
                access_log: document.access_log.get().map(|at| at.place.line),
                ledger: ledger.and_then(|of| of.path.get()).map(|at| at.place.line),
            },
        })
    }

    fn access_log(&mut self, document: &schema::Document) -> AccessLog {
        let Some(at) = document.access_log.get() else {
            return AccessLog::Stdout;
        };
        match &at.value {
            LogTarget::Stdout => AccessLog::Stdout,
            LogTarget::Off => AccessLog::Off,
            LogTarget::File(path) => {
                let path = self.path_of(path);
                let ledger = document.ledger.get().and_then(|ledger| ledger.path.get());
                let ledger = ledger.map(|at| self.path_of(&at.value));
                // By the parts of the paths, so that `./usage.db` is `usage.db`.
                if ledger.is_some_and(|ledger| ledger.components().eq(path.components())) {
                    let says = "is the ledger's file, too";
                    self.fault(&at.place, says, "name another file");
                }
                AccessLog::File(path)
            }
        }
    }

    pub(super) fn tls(&mut self, tls: &schema::Tls) -> Option<Tls> {
        let pair = &tls.pair;
        let certificate = pair.certificate.get().and_then(|at| self.certificate(at));
        let key = pair.key.get().and_then(|at| self.private_key(at));
        let is_optional = tls.client_certificates.value().is_some_and(|of| of.0);
        let clients = self.roots_of(&tls.client_ca).map(|ca_pem| ClientTls {
            ca_pem,
            is_optional,
        });
        if let Some(at) = tls.client_certificates.get()
            && tls.client_ca.is_absent()
        {
            let says = "no root is said for clients' certificates";
            self.fault(&at.place, says, "say `client_ca`, too");
        }
        let ((certificate, certificate_pem), (key, key_pem)) = (certificate?, key?);
        Some(Tls {
            certificate,
            key,
            certificate_pem,
            key_pem,
            clients,
        })
    }
}

/// Where the data plane listens.
pub(super) fn data_address(document: &Document) -> SocketAddr {
    let listen = document.listen.get();
    let data = listen.and_then(|listen| listen.data.get());
    let listeners = listen.map_or(&[][..], |listen| listen.listeners.items());
    let first = listeners.iter().find_map(|(_, of)| of.as_ref()?.data.get());
    let said = data.or(first);
    said.map_or_else(|| loopback(1975), |at| at.value.0)
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

/// Whether the second of two listeners could not be bound.
fn clash(a: SocketAddr, b: SocketAddr) -> bool {
    let any = a.ip().is_unspecified() || b.ip().is_unspecified();
    a.port() == b.port() && a.port() != 0 && (any || a.ip() == b.ip())
}
