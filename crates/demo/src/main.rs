//! `tollgate demo`: two simulated engines and the gate, with nothing to install. A program of its own, so that the gate has no
//! simulated engine in it; of its other verbs it has all.
//!
//! Not here: its options (`tollgate::demo`), the engines themselves (`engine`), the configuration (`document`), the
//! calls that the demo makes itself (`drive`), what is shown (`screen`, `live`).

mod document;
mod draw;
mod drive;
mod feed;
mod home;
mod live;
mod plain;
mod screen;
mod terminal;
mod tools;
mod view;
mod words;

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use config::Sources;
use engine::{EngineConfig, EngineHandle};
use ledger::Reader;
use telemetry::AccessLog;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tollgate::demo::Demo;
use tollgate::embedded::EmbeddedGate;
use tollgate::output::{complain, told};
use tollgate::words::counted;

use document::{Engine, document, printed};
use drive::{Plan, drive};
use home::Home;
use live::Shown;
use screen::{Addresses, End};

fn main() -> ExitCode {
    tollgate::run(Some(run))
}

/// The simulated engines' keys, which exist for one run. The configuration names nothing else.
struct Keys {
    on_prem: String,
    frontier: String,
}

impl Sources for Keys {
    fn read(&self, _: &Path, _: usize) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn var(&self, name: &str) -> Option<String> {
        match name {
            "ON_PREM_KEY" => Some(self.on_prem.clone()),
            "FRONTIER_KEY" => Some(self.frontier.clone()),
            _ => None,
        }
    }
}

/// Runs the demo until told to stop.
fn run(options: &Demo) -> ExitCode {
    if options.serve_tools {
        return tools::serve(io::stdin().lock(), io::stdout().lock());
    }
    if options.print_config {
        return told(printed(options).trim_end());
    }
    match start(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            complain(&format!("tollgate: {fault}"));
            ExitCode::FAILURE
        }
    }
}

fn start(options: &Demo) -> Result<(), String> {
    let began = Instant::now();
    let plan = plan(options);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    // From here on a signal is heard, and ends what the start has made.
    let mut signals = runtime
        .block_on(async { Signals::hear() })
        .map_err(|error| format!("cannot listen for signals: {error}"))?;
    let home = Home::make(options.keep)?;
    let keys = Keys {
        on_prem: key("on-prem"),
        frontier: key("frontier"),
    };
    let (on_prem, frontier) = engines(options, &keys)?;
    let (log, mut shown) = Shown::start(options, plan.as_ref(), home.ledger())?;
    let gate = gate(options, &keys, [&on_prem, &frontier], &home, log)?;
    let data = gate.data();
    let is_live = shown.is_live();
    screen::introduce(
        &Addresses {
            data,
            admin: gate.admin().unwrap_or(options.admin),
            on_prem: on_prem.addr(),
            frontier: frontier.addr(),
        },
        is_live,
    );
    if let Some(plan) = &plan {
        screen::plan(plan);
    }
    let mut unanswered = 0;
    let mut told = Ok(());
    runtime.block_on(async {
        let also = async {
            let made = Cell::new(0);
            let showing = shown.show(&gate, &made);
            let driving = async {
                match plan {
                    None => std::future::pending().await,
                    Some(plan) => driven(plan, reachable(data), &made, is_live).await,
                }
            };
            let end = tokio::select! {
                shown = showing => {
                    told = shown;
                    End::Itself
                }
                () = signals.ended() => End::Signal,
                n = driving => {
                    unanswered = n;
                    End::Itself
                }
            };
            screen::draining(shown.open(), end);
        };
        // There is no file to read again: SIGHUP ends the demo, as it ends most programs.
        gate.serve_until(also).await;
    });
    // With it go the tasks that hold on to the gate.
    drop(runtime);
    let totals = gate.end();
    told = told.and(shown.end());
    let totals = totals.ok_or("the gate did not end, so there is no summary")?;
    screen::summary(&totals.by_workload(), began.elapsed());
    let reader = Reader::open(&home.ledger()).map_err(|error| error.to_string())?;
    screen::report(&reader).map_err(|error| error.to_string())?;
    if home.is_kept() {
        screen::kept(&home.ledger());
    }
    on_prem.stop();
    frontier.stop();
    match told {
        // Whoever read the lines has read enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write to standard output: {error}"))
        }
        _ if unanswered > 0 => Err(format!("{} got no answer", counted(unanswered, "call"))),
        _ => Ok(()),
    }
}

/// Both simulated engines. Each reads the vocabulary of its model, which is most of what a start takes.
fn engines(options: &Demo, keys: &Keys) -> Result<(EngineHandle, EngineHandle), String> {
    thread::scope(|scope| {
        let (listen, key) = (options.frontier, &keys.frontier);
        let frontier =
            scope.spawn(move || engine(options, "frontier", listen, "gemini-2.5-flash", key));
        let (listen, key) = (options.on_prem, &keys.on_prem);
        let on_prem = engine(options, "on-prem", listen, "gpt-oss-120b", key);
        let broke = |_| Err("the simulated engine frontier did not start".to_owned());
        Ok((on_prem?, frontier.join().unwrap_or_else(broke)?))
    })
}

/// The gate in front of these engines.
fn gate(
    options: &Demo,
    keys: &Keys,
    [on_prem, frontier]: [&EngineHandle; 2],
    home: &Home,
    log: AccessLog,
) -> Result<EmbeddedGate, String> {
    let reached = |engine: &EngineHandle, key: &str| {
        let (listen, credential) = (
            engine.addr(),
            format!("credential: {{ inline: \"${{{key}}}\" }}"),
        );
        Engine { listen, credential }
    };
    let text = document(
        options,
        &reached(on_prem, "ON_PREM_KEY"),
        &reached(frontier, "FRONTIER_KEY"),
        &home.ledger(),
    ) + &document::tools(
        &std::env::current_exe().unwrap_or_default(),
        &key("sessions-of-the-demo"),
    );
    EmbeddedGate::start("demo.yaml", &text, keys, log)
}

/// What ends a demo from outside.
struct Signals([Signal; 4]);

impl Signals {
    /// From now on none of them ends the process.
    fn hear() -> io::Result<Self> {
        tollgate::outlive_file_limit();
        Ok(Self([
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
            signal(SignalKind::quit())?,
        ]))
    }

    /// Until one has come, be it before.
    async fn ended(&mut self) {
        let [interrupt, terminate, hangup, quit] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
            _ = quit.recv() => {}
        }
    }
}

/// How long what the last call left is shown.
const LAST_LOOK: Duration = Duration::from_millis(1_500);

/// Makes the calls of a plan, and gives people time to see what became of them.
async fn driven(plan: Plan, gate: SocketAddr, made: &Cell<u32>, is_live: bool) -> u32 {
    let unanswered = drive(plan, gate, made).await;
    if is_live {
        tokio::time::sleep(LAST_LOOK).await;
    }
    unanswered
}

/// The calls that the demo makes itself, if it was asked for any.
fn plan(options: &Demo) -> Option<Plan> {
    Some(Plan {
        workload: options.workload?,
        calls: options.calls,
        every: Duration::from_millis(options.every_ms),
        seed: options
            .seed
            .unwrap_or_else(|| RandomState::new().hash_one(0) % SEEDS),
    })
}

/// Seeds that are chosen by chance are below this, so that they can be typed.
const SEEDS: u64 = 10_000;

/// An address that listens everywhere is reached over loopback.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

fn engine(
    options: &Demo,
    name: &str,
    listen: SocketAddr,
    model: &str,
    key: &str,
) -> Result<EngineHandle, String> {
    engine::spawn_thread(EngineConfig {
        listen,
        models: vec![model.to_owned()],
        api_key: Some(key.to_owned()),
        ttft: Duration::from_millis(options.ttft_ms),
        inter_token: Duration::from_millis(options.inter_token_ms),
        inspect: true,
        ..EngineConfig::default()
    })
    .map_err(|error| {
        format!("cannot start the simulated engine {name} on {listen}: {error}; choose another address with --{name}")
    })
}

/// A key for one run, from the randomness that seeds hash maps.
fn key(name: &str) -> String {
    let word = || RandomState::new().build_hasher().finish();
    format!("sk-demo-{name}-{:016x}{:016x}", word(), word())
}
