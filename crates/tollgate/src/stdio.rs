//! Servers of tools that are commands: each has a bridge, which speaks to the gate as a server over Streamable HTTP does, and to a
//! process over its standard input and output. All bridges run on one thread of their own.
//!
//! Invariant: what is started is written in the configuration alone, and sees no variable of the gate's but the few that every program
//! has; a bridge answers nobody who does not bring its secret, which leaves the process nowhere.
//! Not here: a session and its process (`session`), what is asked of it (`bridge`), which tools may be used (`policy::mcp`).

mod bridge;
mod session;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use config::{Program, ToolCommand};
use jose::sign::{SecureRandom, SystemRandom};
use policy::credential::UpstreamAuth;
use policy::secret::Secret;
use policy::snapshot::Snapshot;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// Bytes of chance in a secret and in the id of a session.
const CHANCE_BYTES: usize = 32;

/// The bridges that run.
#[derive(Debug, Default)]
pub(crate) struct Bridges {
    thread: OnceLock<UnboundedSender<Arc<Bridge>>>,
    open: Mutex<Vec<Arc<Bridge>>>,
}

/// A command and where it is asked. Its processes end with it.
#[derive(Debug)]
pub(crate) struct Bridge {
    server: String,
    program: Program,
    listener: TcpListener,
    address: SocketAddr,
    secret: Secret,
    /// Told when no configuration has it any more.
    over: tokio::sync::Notify,
}

/// Tells a snapshot where each command is asked, and begins those that are new.
pub(crate) fn complete(
    snapshot: &mut Snapshot,
    commands: &[ToolCommand],
    bridges: &Bridges,
) -> Result<(), String> {
    let bridges = bridges.of(commands)?;
    for (command, bridge) in commands.iter().zip(bridges) {
        let Some(endpoint) = snapshot.endpoints.get_mut(command.endpoint.index()) else {
            continue;
        };
        endpoint.origin.port = bridge.address.port();
        endpoint.authority = bridge.address.to_string();
        endpoint.auth = UpstreamAuth::Header {
            name: "authorization".into(),
            value: bridge.secret.clone(),
        };
    }
    Ok(())
}

impl Bridges {
    /// The bridge of each command: the one that runs, where it is the same; the others end.
    fn of(&self, commands: &[ToolCommand]) -> Result<Vec<Arc<Bridge>>, String> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bridges = Vec::new();
        for command in commands {
            let is_it = |bridge: &&Arc<Bridge>| {
                bridge.server == command.server && bridge.program == command.program
            };
            let bridge = match open.iter().find(is_it) {
                Some(bridge) => Arc::clone(bridge),
                None => {
                    let begun = Bridge::new(command);
                    let begun = begun
                        .map_err(|fault| format!("mcp.servers.{}: {fault}", command.server))?;
                    let begun = Arc::new(begun);
                    // The thread ends with the process.
                    let _taken = self.thread()?.send(Arc::clone(&begun));
                    begun
                }
            };
            bridges.push(bridge);
        }
        for bridge in open.iter() {
            if !bridges.iter().any(|kept| Arc::ptr_eq(kept, bridge)) {
                bridge.over.notify_one();
            }
        }
        open.clone_from(&bridges);
        Ok(bridges)
    }

    fn thread(&self) -> Result<&UnboundedSender<Arc<Bridge>>, String> {
        if let Some(thread) = self.thread.get() {
            return Ok(thread);
        }
        let (to, mut from) = unbounded_channel::<Arc<Bridge>>();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let run = move || {
            let local = tokio::task::LocalSet::new();
            runtime.block_on(local.run_until(async move {
                while let Some(bridge) = from.recv().await {
                    tokio::task::spawn_local(bridge::serve(bridge));
                }
            }));
        };
        std::thread::Builder::new()
            .name("stdio".into())
            .spawn(run)
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(self.thread.get_or_init(|| to))
    }
}

impl Bridge {
    fn new(command: &ToolCommand) -> Result<Self, String> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
        listener
            .set_nonblocking(true)
            .map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let secret = chance().ok_or("the system gives no random bytes")?;
        Ok(Self {
            server: command.server.clone(),
            program: command.program.clone(),
            listener,
            address,
            secret: Secret::new(format!("Bearer {secret}").into_bytes()),
            over: tokio::sync::Notify::new(),
        })
    }
}

/// A text that nobody guesses.
fn chance() -> Option<String> {
    let mut bytes = [0; CHANCE_BYTES];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
