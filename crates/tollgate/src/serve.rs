//! `tollgate run`: from a configuration to a gate, and from a signal to its end.
//!
//! Not here: the admin endpoint (`admin`), reloads (`watch`, `running`).

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::authority::STACK_BYTES;
use config::{Loaded, Located};
use counting::TokenizerCache;
use policy::revision::Revision;
use policy::snapshot::Snapshot;
use proxy::gate::{Gate, Options, Ports};
use proxy::quota;
use telemetry::{AccessLog, Conditions, Merged, MetricsSnapshot, Target, Traces, WorkerMetrics};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::calibration::Calibrator;
use crate::host::Host;
use crate::listeners;
use crate::located::{located, with_lines};
use crate::output::complain;
use crate::running::{Origin, Outlets, Running, made};
use crate::services::{Moment, Services};
use crate::source::Source;
use crate::world::World;
use crate::{budget, cli, conditions, controller, ledger_log, needs, pool, traces, watch};

/// Descriptors kept for the admin endpoint, files and the runtime.
const RESERVED_DESCRIPTORS: usize = 64;

/// A gate and its admin listener, bound and not yet awaited.
pub(crate) struct Ready {
    pub(crate) running: Arc<Running>,
    pub(crate) admin: std::net::TcpListener,
    pub(crate) grace: Duration,
    /// How long it goes on as before after SIGTERM, but for readiness.
    pub(crate) delay: Duration,
}

/// Runs until told to stop.
pub(crate) fn run(options: &cli::Run) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Its blocking threads read configurations anew.
        .thread_stack_size(STACK_BYTES)
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&format!("tollgate: cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    // Before anything takes time: one that came during the start would end the process.
    let hangups = runtime.block_on(async {
        outlive_file_limit();
        hangups()
    });
    let source = match options.cluster.is_meant() {
        true => Source::Cluster(options.config.clone()),
        false => Source::of(options.config.as_deref()),
    };
    if options.config.is_none() {
        tracing::info!("{source}");
    }
    let servers = match options.tools.servers() {
        Ok(servers) => servers,
        Err(fault) => {
            complain(&format!("tollgate: {fault}"));
            return ExitCode::FAILURE;
        }
    };
    let read = match options.cluster.start(source.file()) {
        Ok(None) => Origin::read(source.file(), servers, None).map_err(|faults| faults.to_string()),
        Ok(Some(cluster)) => runtime.block_on(async {
            tokio::select! {
                read = controller::first(cluster, source.file()) => Ok(read),
                _ = told() => Err(String::new()),
            }
        }),
        Err(fault) => Err(format!("tollgate: {fault}")),
    };
    let (loaded, origin) = match read {
        Ok(read) => read,
        // It was told to stop.
        Err(nothing) if nothing.is_empty() => return ExitCode::SUCCESS,
        Err(says) => {
            complain(&says);
            return ExitCode::FAILURE;
        }
    };
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let mut unwritable = needs::faults(&loaded.host, None);
    with_lines(source.file(), &mut unwritable, &World);
    if !unwritable.is_empty() {
        let name = source.name();
        for fault in &unwritable {
            complain(&Located { file: name, fault }.to_string());
        }
        return ExitCode::FAILURE;
    }
    let ready = match start(loaded, &World, origin) {
        Ok(ready) => ready,
        Err(fault) => {
            let says = located(&source, fault, &World).unwrap_or_else(|says| says);
            complain(&format!("tollgate: {says}"));
            return ExitCode::FAILURE;
        }
    };
    let following = controller::follow(&ready.running);
    runtime.block_on(until_stopped(&ready, hangups, following));
    // With it go the tasks that hold on to the gate.
    drop(runtime);
    drop(end(ready));
    ExitCode::SUCCESS
}

/// Binds both listeners and starts the workers.
pub(crate) fn start(
    loaded: Loaded,
    sources: &dyn config::Sources,
    origin: Origin,
) -> Result<Ready, String> {
    let log = match &loaded.host.access_log {
        config::AccessLog::Off => None,
        config::AccessLog::Stdout => Some((Target::Stdout, "standard output".to_owned())),
        config::AccessLog::File(path) => {
            Some((Target::File(path.clone()), path.display().to_string()))
        }
    };
    let log = log
        .map(|(target, name)| {
            AccessLog::start(target)
                .map_err(|e| format!("cannot write the access log to {name}: {e}"))
        })
        .transpose()?;
    let listening = match (&origin.file, &origin.cluster) {
        (_, Some(_)) => Listening::CLUSTER,
        (Some(_), None) => Listening::FILE,
        (None, None) => Listening::ENVIRONMENT,
    };
    start_with(log, loaded, sources, origin, listening)
}

/// What says where a gate listens, for whoever has to say it otherwise.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listening {
    data: &'static str,
    admin: &'static str,
}

impl Listening {
    const FILE: Self = Self {
        data: "`listen.data`",
        admin: "`listen.admin`",
    };
    const CLUSTER: Self = Self {
        data: "the port of the Gateway's listener",
        admin: "`listen.admin` of the file that -c names",
    };
    const ENVIRONMENT: Self = Self {
        data: "TOLLGATE_DATA",
        admin: "TOLLGATE_ADMIN",
    };
    /// The options of the demo.
    pub(crate) const DEMO: Self = Self {
        data: "--listen",
        admin: "--admin",
    };
}

/// Likewise, with this access log in place of the configuration's.
pub(crate) fn start_with(
    log: Option<AccessLog>,
    loaded: Loaded,
    sources: &dyn config::Sources,
    origin: Origin,
    listening: Listening,
) -> Result<Ready, String> {
    raise_descriptors();
    let (data, admin, grace) = (loaded.host.data, loaded.host.admin, loaded.host.drain_grace);
    let delay = loaded.host.drain_delay;
    let quota = quota::find();
    let workers = loaded.host.workers.unwrap_or(quota.workers);
    let ledger = loaded.host.ledger.clone();
    let addresses = listeners::addresses(&loaded.host.listeners);
    let counted = (!loaded.host.tokenizers.is_empty()).then(|| loaded.host.counting.clone());
    let cache = Arc::new(TokenizerCache::default());
    let collector = loaded.host.traces.clone();
    let bounds = &loaded.snapshot.bounds;
    let host = Host::find(&loaded.host, bounds, &quota, workers, room());
    for remark in host.remarks() {
        tracing::warn!(see = "docs/operations.md#limits-of-the-host", "{remark}");
    }
    let services = Services::of_gate();
    let moment = Moment::Start(&services);
    let (counters, publication, current) = made(loaded, &cache, seeded, sources, moment)?;
    current.put_in_force(&services);
    cache.put(counters);
    let admin_listener = bind(admin, "admin", listening.admin)?;
    let ledger = ledger.as_ref().map(ledger_log::open).transpose()?;
    if let Some(service) = &ledger {
        ledger_log::begin(service, &current.revision, None)?;
    }
    let intake = ledger.as_ref().map(|service| service.ledger().intake());
    let tracing = collector.as_ref().map(traces::start).transpose()?;
    let (traces, sampling) = tracing.unzip();
    let facts = || {
        let facts = WorkerMetrics::new(log.as_ref().map(AccessLog::lines));
        facts.with_spans(traces.as_ref().map(Traces::spans))
    };
    let conditions = Conditions::default();
    let reporter = || Some(conditions.reporter());
    let counters = Arc::clone(&cache);
    let counting = counted.map(|settings| {
        let facts = facts().with_reporter(reporter());
        pool::start(&settings, quota.time(), cache, intake, facts)
    });
    let counting = counting.transpose()?;
    services
        .prompts
        .ask_at(counting.as_ref().map(pool::Pool::desk));
    let options = Options {
        listen: data,
        workers,
        room: room(),
        stack_bytes: STACK_BYTES,
        sampling,
    };
    let defer = || counting.as_ref().map(pool::defer);
    let ports = |worker| Ports {
        sink: Box::new(facts().with_reporter(reporter())),
        ledger: ledger.as_ref().map(|ledger| ledger.handle(worker, defer())),
        counting: counting.as_ref().map(|counting| counting.handle(worker)),
    };
    let gate = Gate::start(&options, &publication, ports)
        .map_err(|error| cannot_bind("data", data, &error, listening.data))?;
    listeners::listen(&gate, &addresses);
    tracing::info!(
        data = %gate.address(),
        admin = %admin_listener.local_addr().unwrap_or(admin),
        version = &*current.revision.snapshot.version,
        workers,
        cpus = quota.cpus,
        quota = quota.quota.map_or_else(|| "none".to_owned(), |q| format!("{q:.2} cpus")),
        "ready"
    );
    for endpoint in &current.revision.snapshot.endpoints {
        if let Some(proxy) = &endpoint.origin.proxy {
            tracing::info!(
                endpoint = &*endpoint.name,
                proxy = proxy.host,
                port = proxy.port,
                "calls to this endpoint go through a proxy"
            );
        }
    }
    if workers > quota.workers {
        tracing::warn!(
            workers,
            fits = quota.workers,
            "there are more workers than the CPU quota allows to run at once"
        );
    }
    let calibrator = match &counting {
        None => None,
        Some(counting) => Some(Calibrator::start(
            &services.handle()?,
            counters,
            counting.calibrations(),
            Arc::clone(&current.engines),
        )),
    };
    let outlets = Outlets {
        log,
        ledger,
        counting,
        traces,
        calibrator,
        conditions: Mutex::new(conditions),
    };
    let running = Running::new(gate, outlets, quota, workers, origin, current, services);
    Ok(Ready {
        running: Arc::new(running),
        admin: admin_listener,
        grace,
        delay,
    })
}

/// Serves admin, watches files and signals, until a signal or `also`; then drains. A further signal ends
/// what is going on: the delay first, then the drain. Each of the hangups reloads.
pub(crate) async fn until_stopped(
    ready: &Ready,
    hangups: Option<Signal>,
    also: impl Future<Output = ()>,
) {
    let running = &ready.running;
    let serving = match ready.admin.try_clone() {
        Ok(listener) => tokio::spawn(admin::serve(listener, Arc::clone(running))),
        Err(error) => {
            tracing::error!(%error, "cannot serve the admin endpoint");
            return;
        }
    };
    let watching = tokio::spawn(watch::watch(Arc::clone(running)));
    let marking = tokio::spawn(budget::mark(Arc::clone(running)));
    let telling = tokio::spawn(watch_ledger(Arc::clone(running)));
    let noticing = tokio::spawn(conditions::watch(Arc::clone(running)));
    let mut reloads = std::pin::pin!(reloads(running, hangups));
    let mut also = std::pin::pin!(also);
    let stopped = tokio::select! {
        word = told() => word,
        () = &mut reloads => Ok("reloads ended"),
        () = running.stop.notified() => Ok(ASKED),
        () = &mut also => Ok("done"),
    };
    // Readiness goes first, so that whoever balances load looks elsewhere before we close.
    running.draining.store(true, Ordering::SeqCst);
    if matches!(stopped, Ok(TERMINATED | ASKED)) && !ready.delay.is_zero() {
        tracing::info!(delay = ?ready.delay, "not ready any more; the drain begins after the delay");
        tokio::select! {
            () = tokio::time::sleep(ready.delay) => {}
            // The gate goes on as before: where calls go may change meanwhile.
            _ = async { tokio::join!(&mut reloads, &mut also) } => {}
            _ = told() => {
                tracing::warn!("second signal: ending the drain delay");
            }
        }
    }
    match stopped {
        Ok(why) => tracing::info!(why, grace = ?ready.grace, "draining"),
        Err(error) => tracing::error!(%error, "cannot listen for signals; stopping"),
    }
    watching.abort();
    marking.abort();
    telling.abort();
    running.gate.drain(ready.grace);
    let drained = async {
        while !running.gate.is_drained() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        () = drained => {}
        _ = told() => {
            tracing::warn!("second signal: exiting now");
            running.gate.drain(Duration::ZERO);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    noticing.abort();
    serving.abort();
}

/// Tells of the ledger, where there is one.
async fn watch_ledger(running: Arc<Running>) {
    if let Some(service) = &running.outlets.ledger {
        ledger_log::watch(service).await;
    }
}

/// Closes what is left, in order: workers, then the counting, the log, the ledger and the traces that they write
/// to. Gives what was counted, to the last exchange; `None` when something still holds on to the gate.
pub(crate) fn end(ready: Ready) -> Option<Merged> {
    let running = Arc::into_inner(ready.running)?;
    let revision = running.current().revision;
    let Running {
        gate,
        outlets,
        services,
        ..
    } = running;
    let Outlets {
        log,
        ledger,
        counting,
        traces,
        ..
    } = outlets;
    let mut copies: Vec<MetricsSnapshot> = gate
        .join()
        .into_iter()
        .filter_map(MetricsSnapshot::of)
        .collect();
    services.bridges.end();
    services.prompts.ask_at(None);
    // Rows and lines wait there for their counts.
    if let Some(counting) = counting {
        copies.extend(MetricsSnapshot::of(counting.close()));
    }
    if let Some(log) = log {
        log.close();
    }
    if let Some(service) = ledger {
        ledger_log::close(service);
    }
    if let Some(traces) = traces {
        traces.close();
    }
    let mut merged = telemetry::merge(copies);
    merged.register(&revision.snapshot);
    Some(merged)
}

const TERMINATED: &str = "SIGTERM";
const ASKED: &str = "the admin API";

/// Waits for SIGINT or SIGTERM.
async fn told() -> io::Result<&'static str> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        word = tokio::signal::ctrl_c() => word.map(|()| "SIGINT"),
        _ = terminate.recv() => Ok(TERMINATED),
    }
}

/// Each SIGHUP from now on.
fn hangups() -> Option<Signal> {
    let hangups = signal(SignalKind::hangup());
    hangups
        .inspect_err(|error| tracing::warn!(%error, "cannot listen for SIGHUP"))
        .ok()
}

/// From now on a file that reaches the limit of file sizes (`RLIMIT_FSIZE`) is a write that fails, as on a full disk, and
/// not the end of the process.
pub fn outlive_file_limit() {
    let heard = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
    if let Err(error) = heard {
        tracing::warn!(%error, "cannot listen for SIGXFSZ");
    }
}

/// Reloads and reopens the access log at each SIGHUP.
async fn reloads(running: &Arc<Running>, hangups: Option<Signal>) {
    let Some(mut hangups) = hangups else {
        return std::future::pending().await;
    };
    while hangups.recv().await.is_some() {
        let reloading = Arc::clone(running);
        // What was refused is in the log.
        drop(tokio::task::spawn_blocking(move || reloading.reload_now()).await);
        if let Some(Err(error)) = running.outlets.log.as_ref().map(AccessLog::reopen) {
            tracing::error!(%error, "cannot reopen the access log");
        }
    }
}

/// Many streams need many descriptors; the soft limit is often a habit of 1024.
fn raise_descriptors() {
    if let Err(error) = rlimit::increase_nofile_limit(u64::MAX) {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
}

/// Connections that clients may have when each of them may need one to an upstream, too.
fn room() -> usize {
    let descriptors = rlimit::Resource::NOFILE.get_soft().unwrap_or(1024);
    let descriptors = usize::try_from(descriptors).unwrap_or(usize::MAX);
    (descriptors.saturating_sub(RESERVED_DESCRIPTORS) / 2).max(4)
}

fn bind(address: SocketAddr, which: &str, setting: &str) -> Result<std::net::TcpListener, String> {
    let listener = std::net::TcpListener::bind(address)
        .map_err(|error| cannot_bind(which, address, &error, setting))?;
    listener
        .set_nonblocking(true)
        .map_err(|error| cannot_bind(which, address, &error, setting))?;
    Ok(listener)
}

/// Why there is no listener, and which setting says another address.
fn cannot_bind(which: &str, address: SocketAddr, error: &io::Error, setting: &str) -> String {
    let hint = match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!(
                "; another process listens there, stop it or choose another port with {setting}"
            )
        }
        io::ErrorKind::PermissionDenied => {
            format!("; ports below 1024 need a privilege, {setting} says another port")
        }
        io::ErrorKind::AddrNotAvailable => {
            format!(
                "; no interface of this machine has that address, {setting} says another address"
            )
        }
        _ => String::new(),
    };
    format!("cannot listen on {address} ({which}): {error}{hint}")
}

/// The first revision, in which nobody outside can tell which keys and users share a place in a table.
fn seeded(snapshot: Snapshot) -> Revision {
    let chance = RandomState::new();
    Revision::seeded(snapshot, [chance.hash_one(0), chance.hash_one(1)])
}
