//! Schema types to the snapshot: references resolved, defaults filled in, files read.
//!
//! Invariant: everything that can be checked is checked even when something else is wrong; the
//! snapshot leaves here only when nothing is.
//! Not here: how fields are written (`schema`, `scalar`).

use std::io;
use std::path::{Path, PathBuf};

use policy::secret::Secret;
use policy::snapshot::{Bounds, Snapshot};
use sha2::{Digest, Sha256};

use self::identity::Known;
use crate::catalogue::CatalogueModel;
use crate::decode::{At, Decode, Field, Findings, HIDDEN, OneOrMany, Place};
use crate::fault::{Fault, Faults};
use crate::host::{
    AskedAt, ClientCertificate, EndpointPicker, EngineMetrics, Host, ToolCommand, ToolDescription,
    UpstreamCredential,
};
use crate::node::Node;
use crate::redact::{self, Redacted};
use crate::schema::{self, Document};
use crate::sources::Sources;
use crate::vars;

pub(crate) use self::backend::OR_AT_ROOT;

mod actions;
mod admin;
mod authority;
mod backend;
mod balancing;
mod batches;
mod budget;
mod client;
mod credential;
mod extra;
mod hidden;
mod host;
mod identity;
mod kubernetes;
mod ledger;
mod limit;
mod listeners;
mod login;
mod mcp;
mod openapi;
mod pem;
mod plain;
mod price;
mod proxy;
mod responses;
mod retry;
mod route;
mod timeouts;
mod tokenizer;
mod traces;
mod uncounted;
mod unread;
mod unsent;
mod web;

/// A document that was taken.
#[derive(Debug)]
pub struct Loaded {
    /// What cores read.
    pub snapshot: Snapshot,
    /// What the process needs besides.
    pub host: Host,
    /// Files whose change means a reload: the document, secrets, certificates, roots.
    pub watched: Vec<PathBuf>,
    /// The document with every secret masked.
    pub document: Redacted,
    /// What is allowed and probably not meant.
    pub warnings: Vec<Fault>,
    /// Files that the document names and that are in no file system.
    pub given: Vec<Given>,
}

/// A file that came with a document, and that it names.
#[derive(Debug, Clone)]
pub struct Given {
    /// As the document's paths lead to it.
    pub path: PathBuf,
    /// What it holds; a certificate or a secret.
    pub content: Secret,
}

/// Most of a file that holds a secret or a certificate, bytes.
pub const FILE_BYTES_MAX: usize = 4 << 20;

/// What lowering needs at hand.
struct Lowering<'a> {
    file: &'a Path,
    sources: &'a dyn Sources,
    findings: Findings,
    watched: Vec<PathBuf>,
    key_files: Vec<PathBuf>,
    /// Of what the document's files and secrets hold.
    contents: Sha256,
    /// What the host makes of what backends say.
    made: Made,
}

/// Credentials and certificates of backends that the host makes something of.
#[derive(Default)]
struct Made {
    credentials: Vec<(UpstreamCredential, Place)>,
    certificates: Vec<ClientCertificate>,
    /// Where each backend is asked what prompts count.
    asked: Vec<AskedAt>,
    /// How each backend is asked for its engines' metrics.
    engine_metrics: Vec<Option<EngineMetrics>>,
    /// Who picks for each backend.
    pickers: Vec<Option<EndpointPicker>>,
    /// Servers of tools that are commands.
    commands: Vec<ToolCommand>,
    /// Servers of tools whose descriptions are fetched.
    descriptions: Vec<ToolDescription>,
}

/// Lowers a parsed document.
pub(crate) fn lower(file: &Path, mut root: Node, sources: &dyn Sources) -> Result<Loaded, Faults> {
    let mut unset = Vec::new();
    vars::fill(&mut root, "", sources, &mut unset);
    let mut cx = Lowering::new(file, sources);
    let document = Document::decode(&root, "", &mut cx.findings);
    cx.findings.faults.append(&mut unset);
    if let Some(document) = &document {
        cx.has_somewhere_to_go(document, root.line);
    }
    let parts = document.map(|document| cx.document(&document));
    let warnings = ordered(cx.findings.warnings);
    let Some((mut snapshot, Some(host))) = parts.filter(|_| cx.findings.faults.is_empty()) else {
        let faults = ordered(cx.findings.faults);
        debug_assert!(!faults.is_empty(), "a document was refused without a fault");
        return Err(Faults {
            file: file.into(),
            faults,
            warnings,
            watched: cx.watched,
            key_files: cx.key_files,
        });
    };
    let document = Redacted::of(&root);
    snapshot.version = redact::version(&document).into();
    snapshot.contents = Some(Secret::new(cx.contents.finalize().to_vec()));
    Ok(Loaded {
        snapshot,
        host,
        watched: cx.watched,
        document,
        warnings,
        given: Vec::new(),
    })
}

/// The models of a catalogue.
pub(crate) fn catalogue(
    file: &Path,
    bytes: &[u8],
    sources: &dyn Sources,
) -> Result<Vec<CatalogueModel>, Faults> {
    let mut cx = Lowering::new(file, sources);
    let models = cx.models_of(file, bytes);
    match cx.findings.faults.is_empty() {
        true => Ok(models),
        false => Err(Faults {
            file: file.into(),
            faults: ordered(cx.findings.faults),
            warnings: Vec::new(),
            watched: vec![file.into()],
            key_files: Vec::new(),
        }),
    }
}

fn ordered(mut faults: Vec<Fault>) -> Vec<Fault> {
    faults.sort_by(|a, b| (a.line, &a.path).cmp(&(b.line, &b.path)));
    faults.dedup();
    faults
}

impl<'a> Lowering<'a> {
    fn new(file: &'a Path, sources: &'a dyn Sources) -> Self {
        Self {
            file,
            sources,
            findings: Findings::default(),
            watched: vec![file.to_owned()],
            key_files: Vec::new(),
            contents: Sha256::new(),
            made: Made::default(),
        }
    }
}

impl Lowering<'_> {
    fn fault(&mut self, place: &Place, says: impl Into<String>, hint: impl Into<String>) {
        self.findings.fault(place, says, hint);
    }

    fn warn(&mut self, place: &Place, says: impl Into<String>, hint: impl Into<String>) {
        self.findings.warn(place, says, hint);
    }

    /// Notes that what is written here is wrong: `"…" {is}`.
    fn refuse<T>(&mut self, at: &At<T>, is: &str, hint: impl Into<String>) {
        self.fault(&at.place, format!("{} {is}", at.shown), hint);
    }

    /// Notes an item that an earlier one says already.
    fn twice<T>(&mut self, at: &At<T>) {
        self.refuse(at, "is listed twice", "keep one of them");
    }

    /// Calls to models need both; a gate for servers of tools alone has neither.
    fn has_somewhere_to_go(&mut self, document: &Document, line: usize) {
        let parts = [
            ("backends", document.backends.is_absent()),
            ("routes", document.routes.is_absent()),
        ];
        let is_for_tools =
            parts.iter().all(|(_, is_absent)| *is_absent) && !document.mcp.is_absent();
        for (name, _) in parts
            .iter()
            .filter(|(_, is_absent)| *is_absent && !is_for_tools)
        {
            self.fault(&Place::new("", line), format!("{name} is missing"), "");
        }
    }

    fn document(&mut self, document: &Document) -> (Snapshot, Option<Host>) {
        let (listeners, of_host) = self.listeners(document);
        let mut host = self.host(document);
        if let Some(host) = &mut host {
            host.listeners = of_host;
        }
        let mut snapshot = Snapshot {
            listeners,
            bounds: self.bounds(document.bounds.get()),
            web: self.web(document),
            clients: self.clients(document.client_address.get()),
            ..Snapshot::default()
        };
        if let Some(backends) = document.backends.get() {
            self.backends(backends, &mut snapshot);
        }
        if let Some(written) = document.tokenizers.get() {
            let (tokenizers, sources) = self.tokenizers(written);
            snapshot.tokenizers = tokenizers;
            if let Some(host) = &mut host {
                host.tokenizers = sources;
            }
        }
        if let Some(routes) = document.routes.get() {
            let has_ledger = !document.ledger.is_absent();
            self.routes(routes, document.backends.get(), has_ledger, &mut snapshot);
        }
        if let Some(mcp) = document.mcp.get() {
            self.mcp(mcp, &mut snapshot);
        }
        let (identity, credentials) = self.identity(Known {
            document,
            snapshot: &snapshot,
        });
        snapshot.identity = identity;
        let authority = self.authority(document);
        self.callers_bring_tokens(document);
        let Made {
            credentials: made,
            certificates,
            asked,
            engine_metrics,
            pickers,
            commands,
            descriptions,
        } = std::mem::take(&mut self.made);
        if let Some(host) = &mut host {
            host.credentials = credentials;
            host.upstream_credentials = made.into_iter().map(|(made, _)| made).collect();
            host.client_certificates = certificates;
            host.asked = asked;
            host.engine_metrics = engine_metrics;
            host.pickers = pickers;
            host.tool_commands = commands;
            host.tool_descriptions = descriptions;
            host.rules = authority.rules;
            host.ext_authz = authority.ext_authz;
            host.access_review = authority.access_review;
        }
        snapshot.budgets = self.budgets(document, &snapshot);
        if let Some(prices) = document.prices.get() {
            snapshot.prices = self.prices(prices, document, &snapshot);
        }
        self.unsent(document, &snapshot);
        self.names_at_tools(document);
        self.audiences_of_tools(document, &snapshot);
        self.hidden(document, &snapshot);
        if let Some(routes) = document.routes.get() {
            self.unread(routes, &mut snapshot);
        }
        if let Some(routes) = document.routes.get() {
            self.batches(routes, document, &mut snapshot);
        }
        self.are_priced(document, &snapshot);
        (snapshot, host)
    }

    fn bounds(&mut self, written: Option<&schema::Bounds>) -> Bounds {
        let mut bounds = Bounds::default();
        let Some(written) = written else {
            return bounds;
        };
        set(&written.body, &mut bounds.body_bytes, |n| n.0);
        if let Some(at) = written.head.get() {
            bounds.head_bytes = usize::try_from(at.value.0).unwrap_or(usize::MAX);
            if at.value.0 < 1024 {
                self.refuse(
                    at,
                    "leaves no room for an ordinary head",
                    "write 1KiB or more",
                );
            }
        }
        set(&written.fields, &mut bounds.head_fields, |n| size(n.0));
        set(&written.connections, &mut bounds.connections, |n| size(n.0));
        let sources = &mut bounds.source_connections;
        set(&written.source_connections, sources, |n| size(n.0));
        set(&written.streams, &mut bounds.streams, |n| n.0);
        set(&written.reads_to_end, &mut bounds.reads_to_end, |n| {
            size(n.0)
        });
        set(&written.subjects, &mut bounds.subjects, |n| size(n.0));
        let one = usize::try_from(bounds.body_bytes).unwrap_or(usize::MAX);
        if let Some(at) = written.bodies.get() {
            bounds.bodies_bytes = usize::try_from(at.value.0).unwrap_or(usize::MAX);
            let is_known = !written.body.is_bad();
            if is_known && bounds.bodies_bytes < one {
                let (unless, hint) = match &written.body {
                    Field::Is(_) => ("", "write as much as `bounds.body` or more"),
                    _ => (
                        ", which is 32MiB unless said",
                        "write as much or more, or a smaller `bounds.body`",
                    ),
                };
                let says = format!(
                    "{} does not hold one body of `bounds.body`{unless}",
                    at.shown
                );
                self.fault(&at.place, says, hint);
            }
        } else {
            bounds.bodies_bytes = bounds.bodies_bytes.max(one);
        }
        for (field, bound) in [
            (&written.head_time, &mut bounds.head_time),
            (&written.body_idle, &mut bounds.body_idle),
            (&written.body_time, &mut bounds.body_time),
            (&written.write_stall, &mut bounds.write_stall),
            (&written.keep_alive, &mut bounds.keep_alive),
            (&written.address_age, &mut bounds.address_age),
        ] {
            set(field, bound, |span| span.0);
        }
        self.check_times(written, &bounds);
        bounds
    }

    /// Where a path in the document points.
    fn path_of(&self, written: impl AsRef<Path>) -> PathBuf {
        self.file.parent().unwrap_or(Path::new("")).join(written)
    }

    /// Notes what a file or a secret of the document holds: another content is another configuration.
    fn note_content(&mut self, content: &[u8]) {
        self.contents.update((content.len() as u64).to_le_bytes());
        self.contents.update(content);
    }

    /// Reads a file that the document names and watches it from then on.
    fn read(&mut self, at: &At<impl AsRef<Path>>) -> Option<(PathBuf, Vec<u8>)> {
        self.read_up_to(at, "", FILE_BYTES_MAX)
    }

    /// The same with another bound, and what to do where it cannot be read.
    fn read_up_to(
        &mut self,
        at: &At<impl AsRef<Path>>,
        hint: &str,
        bytes_max: usize,
    ) -> Option<(PathBuf, Vec<u8>)> {
        let written = at.value.as_ref();
        let shown = file_shown(&at.shown);
        let path = self.path_of(written);
        if !self.watched.contains(&path) {
            self.watched.push(path.clone());
        }
        match self.sources.read(&path, bytes_max) {
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                let says = format!("the file {shown} is larger than {} MiB", bytes_max >> 20);
                self.fault(&at.place, says, "");
                None
            }
            Ok(bytes) => {
                self.note_content(&bytes);
                Some((path, bytes))
            }
            Err(error) => {
                let says = format!("cannot read the file {shown}: {}", reason(&error));
                let relative = !written.is_absolute();
                let start = "relative paths start where the configuration file is";
                let hints = [hint, if relative { start } else { "" }];
                let hints: Vec<&str> = hints.into_iter().filter(|h| !h.is_empty()).collect();
                self.fault(&at.place, says, hints.join("; "));
                None
            }
        }
    }
}

/// Takes what the document says of a field, where it says something.
fn set<T, U>(field: &Field<At<T>>, to: &mut U, of: impl FnOnce(&T) -> U) {
    if let Some(at) = field.get() {
        *to = of(&at.value);
    }
}

/// The text of a field, or else this one.
fn said<T: AsRef<str>>(field: &Field<At<T>>, unless: &str) -> String {
    field.value().map_or(unless, AsRef::as_ref).to_owned()
}

/// The text of a field, where there is one.
fn text<T: AsRef<str>>(field: &Field<At<T>>) -> Option<String> {
    field.value().map(|value| value.as_ref().to_owned())
}

/// Texts of a field.
fn texts<T: AsRef<str>>(field: &Field<OneOrMany<T>>) -> Vec<String> {
    let items = field.items().iter();
    items.map(|at| at.value.as_ref().to_owned()).collect()
}

fn size(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// A file in the middle of a sentence.
fn file_shown(shown: &str) -> &str {
    if shown == HIDDEN { "named here" } else { shown }
}

/// Why a file cannot be read, in words that do not repeat its path.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "it does not exist".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::IsADirectory => "it is a directory".into(),
        kind => error
            .get_ref()
            .map_or_else(|| kind.to_string(), ToString::to_string),
    }
}
