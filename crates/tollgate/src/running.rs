//! A gate that runs: what was loaded, what was published, and how to publish anew.
//!
//! Invariant: a configuration is published whole or not at all; a refused one leaves the old one
//! serving.
//! Not here: when to reload (`watch`), where it is shown (`admin`).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use admin::People;
use config::{EditorServers, Faults, KeptResponses, Loaded, Sources};
use control::Beside;
use counting::{Counters, TokenizerCache};
use ledger::LedgerService;
use policy::admin::Access;
use policy::clock::Mono;
use policy::revision::Revision;
use policy::snapshot::{Route, Snapshot};
use proxy::gate::{Connectors, Gate, RuntimeConfig, trusted};
use proxy::quota::Quota;
use proxy::tls;
use telemetry::{AccessLog, Conditions, Traces};
use tokio::sync::Notify;

use crate::again::Again;
use crate::authority;
use crate::balancing;
use crate::calibration::Calibrator;
use crate::calibration::engines::Engines;
use crate::cluster::Clustered;
use crate::credential;
use crate::descriptions::{self, Asking};
use crate::fixed::{Fixed, fixed};
use crate::identity;
use crate::issuers;
use crate::keyring::{Absent, Keyring};
use crate::ledger_log;
use crate::listeners;
use crate::login;
use crate::manifests;
use crate::marks::{Cause, Marks, Reloaded};
use crate::needs;
use crate::pool::{self, Pool};
use crate::services::{Made, Moment, Services};
use crate::stdio;
use crate::trust::{self, Untrusted};
use crate::watched::Asked;
use crate::world::{Files, Keeping, Kept, World};

/// The process's state, shared by admin, watcher and signals.
pub(crate) struct Running {
    pub(crate) gate: Gate,
    pub(crate) outlets: Outlets,
    pub(crate) quota: Quota,
    pub(crate) workers: usize,
    pub(crate) started: Instant,
    pub(crate) draining: AtomicBool,
    /// Told when somebody asks the gate to stop, but for signals.
    pub(crate) stop: Notify,
    /// Who is asked about credentials.
    pub(crate) services: Services,
    pub(crate) reloads: [AtomicU64; 2],
    pub(crate) last_reload_good: AtomicBool,
    /// Whether and when a reload that was refused is tried again.
    again: Mutex<Again>,
    origin: Origin,
    /// The files of keys are in force as they are.
    pub(crate) are_keys_taken: AtomicBool,
    current: Mutex<Current>,
}

/// Where what exchanges leave behind goes to.
pub(crate) struct Outlets {
    pub(crate) log: Option<AccessLog>,
    pub(crate) ledger: Option<LedgerService>,
    /// Who counts, where the gate was started with tokenizers.
    pub(crate) counting: Option<Pool>,
    pub(crate) traces: Option<Traces>,
    /// Who asks engines what prompts count, where the gate counts.
    pub(crate) calibrator: Option<Calibrator>,
    /// What the log tells of.
    pub(crate) conditions: Mutex<Conditions>,
}

/// What a reload starts from.
pub(crate) struct Origin {
    /// The document; none when the gate was made from the environment.
    pub(crate) file: Option<PathBuf>,
    /// Servers of tools beside those of the document.
    servers: Option<EditorServers>,
    /// Whose objects say the rest.
    pub(crate) cluster: Option<Arc<Clustered>>,
    /// What the document said at the start.
    pub(crate) fixed: Fixed,
    /// Those of the configuration in force.
    pub(crate) files: Mutex<Files>,
    /// How its files looked before it was read.
    pub(crate) marks: Marks,
}

impl Origin {
    /// Reads a configuration, with what a reload of it starts from. It is read twice: which files it names, the first
    /// time says, so that these are looked at before they are read.
    pub(crate) fn read(
        file: Option<&Path>,
        servers: Option<EditorServers>,
        cluster: Option<Arc<Clustered>>,
    ) -> Result<(Loaded, Self), Faults> {
        let load = |sources: &dyn Sources| match &cluster {
            Some(cluster) => cluster.load(sources, &|loaded| tried(loaded, sources)),
            None => load_with(file, servers.as_ref(), sources),
        };
        let first = load(&World)?;
        let marks = Marks::of(first.watched.into());
        let files = Files::default();
        let loaded = load(&Keeping(&files))?;
        let origin = Self {
            file: file.map(Into::into),
            servers,
            cluster,
            fixed: fixed(&loaded),
            files: Mutex::new(files),
            marks,
        };
        Ok((loaded, origin))
    }

    /// Of a configuration that is in no file.
    pub(crate) fn none(loaded: &Loaded) -> Self {
        Self {
            file: None,
            servers: None,
            cluster: None,
            fixed: fixed(loaded),
            files: Mutex::default(),
            marks: Marks::of(Arc::default()),
        }
    }

    /// Reads it anew.
    fn load(&self, sources: &dyn Sources) -> Result<Loaded, Faults> {
        match &self.cluster {
            Some(cluster) => cluster.load(sources, &|loaded| tried(loaded, sources)),
            None => load_with(self.file.as_deref(), self.servers.as_ref(), sources),
        }
    }

    /// Whether there is anything to be read anew.
    fn can_change(&self) -> bool {
        let has_file = |servers: &EditorServers| servers.text.is_none();
        self.file.is_some() || self.cluster.is_some() || self.servers.as_ref().is_some_and(has_file)
    }
}

/// What is published now.
#[derive(Clone)]
pub(crate) struct Current {
    pub(crate) revision: Arc<Revision>,
    /// The last revision whose budgets were read from the ledger: this one, unless the ledger could not be read.
    budgets_read: Arc<Revision>,
    pub(crate) document: Arc<serde_json::Value>,
    pub(crate) watched: Arc<[PathBuf]>,
    pub(crate) access: Arc<Access>,
    /// Keys of the gate's own, where a source of identities has them.
    pub(crate) keyring: Option<Arc<Keyring>>,
    /// People who log in to the admin endpoint.
    pub(crate) people: Option<Arc<dyn People>>,
    /// Files of keys as they were last read.
    pub(crate) key_files: Arc<[identity::KeysState]>,
    /// Engines that are asked what prompts count.
    pub(crate) engines: Arc<Engines>,
    /// Engines that are asked what they have to do.
    _watched_engines: Arc<[Arc<Asked>]>,
    /// Issuers whose keys are used.
    issuers: Arc<[String]>,
    /// What makes credentials.
    makers: Arc<[Made]>,
    /// Bounds of responses that are kept.
    kept_responses: Option<KeptResponses>,
}

impl Current {
    /// What outlives a configuration is as this one has it from now on. Only one that is published says so.
    pub(crate) fn put_in_force(&self, services: &Services) {
        services.makers.replace(Arc::clone(&self.makers));
        services.responses.bound(self.kept_responses);
    }
}

/// Loads from a file, or from the environment when there is none.
pub(crate) fn load(file: Option<&Path>, sources: &dyn Sources) -> Result<Loaded, Faults> {
    load_with(file, None, sources)
}

/// Likewise, with servers of tools that the command line names.
pub(crate) fn load_with(
    file: Option<&Path>,
    servers: Option<&EditorServers>,
    sources: &dyn Sources,
) -> Result<Loaded, Faults> {
    match file {
        Some(file) => manifests::load(file, servers, sources),
        None => config::from_environment_with(servers, sources),
    }
}

/// TLS of the data listener.
fn acceptor(written: &config::Tls) -> Result<Arc<tls::ServerConfig>, String> {
    let clients = written.clients.as_ref();
    let clients = clients
        .map(|clients| tls::Clients::trusting(&clients.ca_pem, clients.is_optional))
        .transpose()
        .map_err(|fault| format!("listen.tls.client_ca: {fault}"))?;
    let made = tls::server(&written.certificate_pem, written.key_pem.expose(), clients);
    made.map_err(|fault| format!("listen.tls: {fault}"))
}

/// Makes what workers need of a loaded configuration; `revision` gives its snapshot the levels that it begins with.
/// What the process keeps from one to the next stays as it is.
pub(crate) fn publication(
    mut loaded: Loaded,
    revision: impl FnOnce(Snapshot) -> Revision,
    sources: &dyn Sources,
    moment: Moment<'_>,
) -> Result<(RuntimeConfig, Current), String> {
    let given = std::mem::take(&mut loaded.given);
    let sources = &Beside {
        given: &given,
        sources,
    };
    let keyring = Keyring::of(&loaded, Absent::IsLost).map(Arc::new);
    let issuers = issuers::named(&loaded.host);
    let credentials = std::mem::take(&mut loaded.host.credentials);
    let key_files = identity::complete(
        &mut loaded.snapshot,
        &credentials,
        loaded.host.ledger.as_ref(),
        sources,
        moment,
    )?;
    authority::complete(&mut loaded.snapshot, &loaded.host, moment)?;
    balancing::complete(&mut loaded.snapshot, &loaded.host, moment)?;
    let connectors = connectors(&loaded, sources)?;
    let people = loaded.host.admin_login.as_ref();
    let people = people
        .map(|written| login::people(written, moment))
        .transpose()?;
    let tls = loaded.host.tls.as_ref();
    let acceptor = tls.map(acceptor).transpose()?;
    let acceptors = listeners::acceptors(&loaded.host.listeners)?;
    let made = std::mem::take(&mut loaded.host.upstream_credentials);
    let makers = credential::complete(&mut loaded.snapshot, &made, moment)?;
    let described = std::mem::take(&mut loaded.host.tool_descriptions);
    let asking = match moment.services().filter(|_| !described.is_empty()) {
        Some(services) => Some(Asking {
            known: &services.descriptions,
            handle: services.handle()?,
            // Keys that changed change no description.
            is_content: matches!(moment, Moment::Keys(_)),
        }),
        None => None,
    };
    descriptions::complete(&mut loaded.snapshot, &described, asking.as_ref())?;
    let commands = std::mem::take(&mut loaded.host.tool_commands);
    if let Some(services) = moment.services() {
        loaded.snapshot.prompt_counter = Some(Arc::clone(&services.prompts) as _);
        let responses = || Arc::clone(&services.responses) as _;
        loaded.snapshot.responses = loaded.host.responses.map(|_| responses());
        stdio::complete(&mut loaded.snapshot, &commands, &services.bridges)?;
        let allow_batches = |route: &Route| route.batches.is_some();
        if let Some(ledger) = &loaded.host.ledger
            && loaded.snapshot.routes.iter().any(allow_batches)
        {
            loaded.snapshot.batches = Some(services.batches(&ledger.path)?);
        }
    }
    let revision = Arc::new(revision(loaded.snapshot));
    let engines = Engines::of(&revision, &loaded.host, sources, moment.services())?;
    let watched_engines = match moment.services() {
        Some(services) => balancing::watch(&revision, &loaded.host, sources, services)?,
        None => Vec::new(),
    };
    let current = Current {
        revision: Arc::clone(&revision),
        budgets_read: Arc::clone(&revision),
        document: Arc::new(loaded.document.json().clone()),
        watched: loaded.watched.into(),
        access: Arc::new(loaded.host.admin_access),
        keyring,
        people: people.flatten(),
        key_files: key_files.into(),
        engines: Arc::new(engines),
        _watched_engines: watched_engines.into(),
        issuers: issuers.into(),
        makers: makers.into(),
        kept_responses: loaded.host.responses,
    };
    Ok((
        RuntimeConfig {
            revision,
            acceptor,
            acceptors,
            connectors,
        },
        current,
    ))
}

/// Makes what a gate runs by, or says what of it cannot be made: the same for `check`, a start and a reload.
pub(crate) fn made(
    loaded: Loaded,
    cache: &TokenizerCache,
    revision: impl FnOnce(Snapshot) -> Revision,
    sources: &dyn Sources,
    moment: Moment<'_>,
) -> Result<(Counters, RuntimeConfig, Current), String> {
    let counters = pool::build(cache, &loaded.host.tokenizers)?;
    let (config, current) = publication(loaded, revision, sources, moment)?;
    Ok((counters, config, current))
}

/// Whether a gate could run by a configuration, but for its tokenizers.
fn tried(loaded: Loaded, sources: &dyn Sources) -> Result<(), String> {
    publication(loaded, Revision::first, sources, Moment::Check).map(drop)
}

/// Trust for each origin, and the certificate that the gate shows there.
fn connectors(loaded: &Loaded, sources: &dyn Sources) -> Result<Connectors, String> {
    let mut connectors = Connectors::new();
    let endpoints = loaded.snapshot.endpoints.iter();
    for endpoint in endpoints.filter(|endpoint| endpoint.origin.tls) {
        let origin = &endpoint.origin;
        let key = trusted(origin);
        if connectors.contains_key(&key) {
            continue;
        }
        let connector = trust::of_origin(origin, &loaded.host, sources).map_err(|untrusted| {
            let (whose, fault) = match untrusted {
                Untrusted::Unread(fault) => return fault,
                Untrusted::Unusable(Some(place), fault) => (place, fault),
                Untrusted::Unusable(None, fault) if origin.ca_file.is_empty() => {
                    ("system roots".to_owned(), fault)
                }
                Untrusted::Unusable(None, fault) => {
                    let backend = loaded.snapshot.backend(endpoint.backend);
                    let name = backend.map_or("", |backend| &backend.name);
                    (format!("backends.{name}.ca: {}", origin.ca_file), fault)
                }
            };
            format!("{whose}: {fault}")
        })?;
        connectors.insert(key, connector);
    }
    Ok(connectors)
}

impl Running {
    pub(crate) fn new(
        gate: Gate,
        outlets: Outlets,
        quota: Quota,
        workers: usize,
        origin: Origin,
        current: Current,
        services: Services,
    ) -> Self {
        Self {
            services,
            gate,
            outlets,
            quota,
            workers,
            started: Instant::now(),
            draining: AtomicBool::new(false),
            stop: Notify::new(),
            reloads: [AtomicU64::new(0), AtomicU64::new(0)],
            last_reload_good: AtomicBool::new(true),
            again: Mutex::default(),
            origin,
            are_keys_taken: AtomicBool::new(true),
            current: Mutex::new(current),
        }
    }

    /// What is published now.
    pub(crate) fn current(&self) -> Current {
        self.current
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }

    /// Whether new exchanges are welcome.
    pub(crate) fn is_ready(&self) -> bool {
        let is_ledger_away = self.ledger_available() == Some(false);
        let is_useless = is_ledger_away && self.current().revision.snapshot.is_strict_throughout();
        self.gate.is_alive() && !self.draining.load(Ordering::SeqCst) && !is_useless
    }

    /// Whether the ledger's disk takes rows, where there is a ledger.
    pub(crate) fn ledger_available(&self) -> Option<bool> {
        let service = self.outlets.ledger.as_ref();
        service.map(|service| service.ledger().stats().available)
    }

    /// The time by which limits refill.
    pub(crate) fn now(&self) -> Mono {
        proxy::monotonic()
    }

    /// The listeners stay until the next start, and so does what follows from their addresses.
    fn stay_where_they_are(&self, loaded: &mut Loaded) {
        let now = self.current();
        let Fixed { data, admin, .. } = &self.origin.fixed;
        if data.is_some_and(|data| loaded.host.data != data) {
            loaded.snapshot.web.hosts = now.revision.snapshot.web.hosts.clone();
        }
        if loaded.host.admin != *admin {
            loaded.host.admin_access.hosts = now.access.hosts.clone();
        }
    }

    /// Reloads where a watched file changed, unless that is going on.
    pub(crate) fn look(&self) {
        self.origin.marks.try_to_catch_up(|why| self.reload(why));
        if self.again().is_due(Instant::now()) {
            // What was refused is in the log.
            drop(self.reload_now());
        }
        if let Some(counting) = &self.outlets.counting {
            counting.cache().drop_old();
        }
    }

    /// Has what changed before it was called taken, if it is good.
    pub(crate) fn catch_up(&self) {
        self.origin.marks.catch_up(|why| self.reload(why));
    }

    /// Reloads, and gives the version, or why it was refused.
    pub(crate) fn reload_now(&self) -> Result<String, String> {
        self.origin.marks.reload(|why| self.reload(why))
    }

    /// The cluster whose objects are the configuration.
    pub(crate) fn cluster(&self) -> Option<&Arc<Clustered>> {
        self.origin.cluster.as_ref()
    }

    /// Gives workers a configuration, and forgets what only the one before needed.
    fn publish(&self, publication: &RuntimeConfig, current: Current) {
        current.put_in_force(&self.services);
        self.gate.publish(publication);
        self.services.keep_only_issuers(&current.issuers);
        if let Some(calibrator) = &self.outlets.calibrator {
            calibrator.take(&current.engines);
        }
        *self
            .current
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = current;
    }

    /// Takes the files of keys anew, and all else as it was: a key that is revoked ends, whatever is wrong elsewhere.
    fn take_keys(&self, before: &Current) -> Result<(), String> {
        if before.key_files.is_empty() {
            return Ok(());
        }
        let files = self
            .origin
            .files
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let anew = before.key_files.iter().map(|of| of.path.clone()).collect();
        let kept = Kept {
            files: &files,
            anew,
        };
        let mut loaded = self
            .origin
            .load(&kept)
            .map_err(|faults| faults.to_string())?;
        self.stay_where_they_are(&mut loaded);
        let next = |snapshot| before.revision.next(snapshot, self.now());
        let (publication, mut current) =
            publication(loaded, next, &kept, Moment::Keys(&self.services))?;
        if let Some(service) = &self.outlets.ledger {
            // A key that is revoked ends, whether or not the ledger can be read. Only budgets of keys can begin here.
            if let Err(fault) =
                ledger_log::begin(service, &current.revision, Some(&before.budgets_read))
            {
                tracing::warn!(
                    "{fault}: budgets that keys bring from now on begin with nothing spent"
                );
                current.budgets_read = Arc::clone(&before.budgets_read);
            }
        }
        self.publish(&publication, current);
        tracing::info!("the gate took the changed keys");
        Ok(())
    }

    fn again(&self) -> std::sync::MutexGuard<'_, Again> {
        self.again
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Loads anew and publishes, or says why not and changes nothing. One at a time: [`Marks`] sees to it.
    fn reload(&self, why: Cause) -> Reloaded {
        let before = self.current();
        if !self.origin.can_change() {
            let says =
                "the configuration comes from the environment, which is read at the start alone";
            return (before.watched, Err(says.to_owned()));
        }
        let files = Files::default();
        let world = Keeping(&files);
        let loaded = self.origin.load(&world);
        // Nothing is told twice.
        let is_known = |loaded: &Loaded| {
            let is_same = before.revision.says(&loaded.snapshot);
            why == Cause::Doubt && is_same && self.last_reload_good.load(Ordering::SeqCst)
        };
        let is_known = loaded.as_ref().is_ok_and(is_known);
        let result = loaded
            .map_err(|faults| Refused {
                says: faults.to_string(),
                watched: faults.watched,
                may_pass: false,
            })
            .and_then(|mut loaded| {
                let watched = loaded.watched.clone();
                self.stay_where_they_are(&mut loaded);
                let changed = self.origin.fixed.changed(&fixed(&loaded));
                if !changed.is_empty() && !is_known {
                    tracing::warn!(
                        settings = changed.join(", "),
                        "these changed settings take effect at the next start"
                    );
                }
                for warning in loaded.warnings.iter().filter(|_| !is_known) {
                    tracing::warn!("{warning}");
                }
                let refused = |says, may_pass| Refused {
                    says,
                    watched: watched.clone(),
                    may_pass,
                };
                // What the machine did not give it may give the next time.
                let failed = |fault| refused(fault, true);
                let unmet = needs::faults(&loaded.host, Some(&self.origin.fixed));
                if !unmet.is_empty() {
                    let lines: Vec<String> = unmet.iter().map(ToString::to_string).collect();
                    return Err(refused(lines.join("\n"), false));
                }
                let has_tokenizers = !loaded.host.tokenizers.is_empty();
                let addresses = listeners::addresses(&loaded.host.listeners);
                let none = TokenizerCache::default();
                let counting = self.outlets.counting.as_ref();
                let cache = counting.map_or(&none, |counting| counting.cache());
                let next = |snapshot| before.revision.next(snapshot, self.now());
                let moment = Moment::Reload(&self.services);
                let (counters, next, current) =
                    made(loaded, cache, next, &world, moment).map_err(failed)?;
                if has_tokenizers && counting.is_none() && !is_known {
                    tracing::warn!(
                        "tokenizers, of which there were none, take effect at the next start"
                    );
                }
                if let Some(service) = &self.outlets.ledger {
                    ledger_log::begin(service, &current.revision, Some(&before.budgets_read))
                        .map_err(failed)?;
                }
                Ok((counters, (next, current), addresses))
            });
        match result {
            Ok((counters, (publication, current), addresses)) => {
                if let Some(counting) = &self.outlets.counting {
                    let keys = counters.keys().copied().collect();
                    counting.cache().put(counters);
                    counting.calibrations().keep_only(keys);
                }
                let watched = Arc::clone(&current.watched);
                let version = current.revision.snapshot.version.to_string();
                if !is_known {
                    // Counted before it is to be seen, so that who sees it finds it counted.
                    self.reloads[0].fetch_add(1, Ordering::SeqCst);
                }
                self.publish(&publication, current);
                if !is_known {
                    // Told once it is on its way to every worker, so that who reads it can ask them.
                    tracing::info!(version, "configuration taken");
                }
                listeners::listen(&self.gate, &addresses);
                *self
                    .origin
                    .files
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner) = files;
                self.are_keys_taken.store(true, Ordering::SeqCst);
                self.last_reload_good.store(true, Ordering::SeqCst);
                self.again().end();
                (watched, Ok(version))
            }
            Err(Refused {
                says,
                watched: consulted,
                may_pass,
            }) => {
                let is_news = self.again().begin(&says, may_pass, why, Instant::now());
                if is_news {
                    tracing::error!(
                        kept = &*before.revision.snapshot.version,
                        see = "docs/troubleshooting.md#configuration-refused-the-old-one-stays-in-force",
                        "configuration refused, the old one stays in force:\n{says}"
                    );
                }
                let taken = self.take_keys(&before);
                if let Err(fault) = &taken {
                    tracing::error!("the file of keys cannot be used either: {fault}");
                }
                self.are_keys_taken.store(taken.is_ok(), Ordering::SeqCst);
                self.reloads[1]
                    .fetch_add(u64::from(is_news || why == Cause::News), Ordering::SeqCst);
                self.last_reload_good.store(false, Ordering::SeqCst);
                let mut watched = before.watched.to_vec();
                watched.extend(consulted);
                watched.sort();
                watched.dedup();
                (watched.into(), Err(says))
            }
        }
    }
}

/// Why a configuration is not taken.
struct Refused {
    says: String,
    /// The files that were consulted.
    watched: Vec<PathBuf>,
    /// The configuration is not what is wrong.
    may_pass: bool,
}

#[cfg(test)]
mod tests;
