//! Servers of tools that are commands: each has a bridge, which speaks to the gate as a server over Streamable HTTP does, and to a
//! process over its standard input and output. All bridges run on one thread of their own.
//!
//! Invariant: what is started is written in the configuration alone, and sees no variable of the gate's but the few that every program
//! has; a bridge answers nobody who does not bring its secret, which leaves the process nowhere.
//! Not here: what is asked of a command (`bridge`), how many sessions it has (`sessions`), a session (`session`) and its process
//! (`process`), which tools may be used (`policy::mcp`).

mod bridge;
mod process;
mod session;
mod sessions;
mod share;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak, mpsc};
use std::time::Duration;

use config::{Program, ToolCommand};
use jose::sign::{SecureRandom, SystemRandom};
use policy::credential::UpstreamAuth;
use policy::secret::Secret;
use policy::snapshot::Snapshot;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// Bytes of chance in a secret and in the id of a session.
const CHANCE_BYTES: usize = 32;
/// How long the end of the gate waits for processes, which have two seconds for it and are killed then.
const END_WITHIN: Duration = Duration::from_secs(4);

/// The bridges that run.
#[derive(Debug, Default)]
pub(crate) struct Bridges {
    thread: OnceLock<UnboundedSender<Word>>,
    /// Those that some configuration has.
    open: Mutex<Vec<Weak<Held>>>,
}

/// What the thread of all bridges is told.
enum Word {
    Begin(Arc<Bridge>),
    /// All end, which is answered.
    End(mpsc::Sender<()>),
}

/// A bridge that configurations have: it ends with the last of them.
#[derive(Debug)]
struct Held(Arc<Bridge>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.end();
    }
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
    is_over: AtomicBool,
}

/// Tells a snapshot where each command is asked, and begins those that are new.
pub(crate) fn complete(
    snapshot: &mut Snapshot,
    commands: &[ToolCommand],
    bridges: &Bridges,
) -> Result<(), String> {
    for (command, held) in commands.iter().zip(bridges.of(commands)?) {
        let bridge = Arc::clone(&held.0);
        snapshot.runs.push(held);
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
    /// The bridge of each command: the one that runs, where it is the same. A configuration that is not taken costs none of those that run.
    fn of(&self, commands: &[ToolCommand]) -> Result<Vec<Arc<Held>>, String> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|held| held.strong_count() > 0);
        let mut bridges = Vec::new();
        for command in commands {
            let is_it = |Held(bridge): &Held| {
                bridge.server == command.server && bridge.program == command.program
            };
            let running = open.iter().filter_map(Weak::upgrade);
            let held = match running.into_iter().find(|held| is_it(held)) {
                Some(held) => held,
                None => {
                    let begun = Bridge::new(command);
                    let begun = begun
                        .map_err(|fault| format!("mcp.servers.{}: {fault}", command.server))?;
                    let held = Arc::new(Held(Arc::new(begun)));
                    // The thread ends with the process.
                    let _taken = self.thread()?.send(Word::Begin(Arc::clone(&held.0)));
                    open.push(Arc::downgrade(&held));
                    held
                }
            };
            bridges.push(held);
        }
        Ok(bridges)
    }

    /// The gate ends, and with it every process.
    pub(crate) fn end(&self) {
        let Some(thread) = self.thread.get() else {
            return;
        };
        let (to, ended) = mpsc::channel();
        if thread.send(Word::End(to)).is_ok() {
            let _late = ended.recv_timeout(END_WITHIN);
        }
    }

    fn thread(&self) -> Result<&UnboundedSender<Word>, String> {
        if let Some(thread) = self.thread.get() {
            return Ok(thread);
        }
        let (to, mut from) = unbounded_channel::<Word>();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let run = move || {
            let local = tokio::task::LocalSet::new();
            runtime.block_on(local.run_until(async move {
                let room = sessions::Room::new();
                let mut begun: Vec<Weak<Bridge>> = Vec::new();
                while let Some(word) = from.recv().await {
                    match word {
                        Word::Begin(bridge) => {
                            begun.retain(|bridge| bridge.strong_count() > 0);
                            begun.push(Arc::downgrade(&bridge));
                            tokio::task::spawn_local(bridge::serve(bridge, room.clone()));
                        }
                        Word::End(told) => {
                            begun
                                .iter()
                                .filter_map(Weak::upgrade)
                                .for_each(|of| of.end());
                            process::all_end().await;
                            let _nobody = told.send(());
                        }
                    }
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
    /// Nobody asks it any more.
    fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.over.notify_one();
    }

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
            is_over: AtomicBool::new(false),
        })
    }
}

/// A text that nobody guesses.
fn chance() -> Option<String> {
    let mut bytes = [0; CHANCE_BYTES];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use policy::id::EndpointId;

    use super::*;

    fn command(server: &str) -> ToolCommand {
        ToolCommand {
            server: server.into(),
            endpoint: EndpointId(0),
            program: Program {
                command: "/nowhere".into(),
                args: Vec::new(),
                environment: Vec::new(),
                directory: None,
            },
        }
    }

    fn is_over(held: &Held) -> bool {
        held.0.is_over.load(Ordering::Acquire)
    }

    #[test]
    fn a_configuration_that_is_not_taken_ends_no_command_of_the_one_in_force() {
        let bridges = Bridges::default();
        let in_force = bridges.of(&[command("a")]).expect("ports");
        let refused = bridges.of(&[command("b")]).expect("ports");
        let of_b = Arc::clone(&refused[0].0);
        drop(refused);
        assert!(of_b.is_over.load(Ordering::Acquire));
        assert!(!is_over(&in_force[0]));
        let next = bridges.of(&[command("a"), command("b")]).expect("ports");
        assert!(Arc::ptr_eq(&next[0], &in_force[0]), "the one that runs");
        // It ends with the last configuration that has it.
        let of_a = Arc::clone(&in_force[0].0);
        drop(next);
        assert!(!of_a.is_over.load(Ordering::Acquire));
        drop(in_force);
        assert!(of_a.is_over.load(Ordering::Acquire));
    }
}
