//! Servers of tools whose descriptions are fetched: at a start and at each reload, and again until they come.
//!
//! Invariant: a description that cannot be fetched or read costs the gate its start no more than [`WAIT_MAX`], and never takes the place
//! of one that is known; its server has no tools until one is known, and all else is served.
//! Not here: what a description says (`openapi`), asking (`callout`).

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use callout::{Bounds, Client, Handle, Running, Url, fetched};
use config::ToolDescription;
use openapi::{DESCRIPTION_BYTES_MAX, Left, Remote};
use policy::mcp::Described;
use policy::snapshot::Snapshot;

use crate::trust::trust;

/// How long a start or a reload waits for all descriptions together.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// How long after a fetch that failed the next one is made: at first, and at most.
const AGAIN_AFTER: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));
/// Most operations that are named in the log where they are no tools.
const NAMED_MAX: usize = 20;
const ACCEPT: &str = "application/json, application/yaml, text/yaml, */*;q=0.5";

/// What is known of descriptions that some configuration has.
#[derive(Debug, Default)]
pub(crate) struct Descriptions(Mutex<Vec<(String, Weak<Remote>)>>);

/// A description that is being fetched, until no configuration has it.
#[derive(Debug)]
struct Fetching {
    _running: Running,
}

/// Who asks for descriptions.
pub(crate) struct Asking<'a> {
    /// What is known already.
    pub(crate) known: &'a Descriptions,
    /// The thread that asks.
    pub(crate) handle: Handle,
    /// Nothing is asked for anew that is known.
    pub(crate) is_content: bool,
}

/// Has descriptions fetched, and waits for them; with nobody who asks it only says whether one could be asked for.
///
/// # Errors
/// One cannot be asked for at all.
pub(crate) fn complete(
    snapshot: &mut Snapshot,
    descriptions: &[ToolDescription],
    asking: Option<&Asking<'_>>,
) -> Result<(), String> {
    let mut asked = Vec::new();
    for description in descriptions {
        let fault = |says: String| format!("mcp.servers.{}.openapi: {says}", description.server);
        let url = Url::parse(description.remote.url()).map_err(|says| fault(says.to_string()))?;
        let trusted = trust(description.ca_pem.as_deref()).map_err(fault)?;
        asked.push((description, url, Client::new(&trusted, Bounds::default())));
    }
    let Some(asking) = asking else {
        return Ok(());
    };
    let (tell, told) = channel();
    let mut waits = 0;
    for (description, url, client) in asked {
        let remote = asking.known.known(description);
        let is_kept = !Arc::ptr_eq(&remote, &description.remote);
        if is_kept && let Some(mcp) = snapshot.mcp.as_deref_mut() {
            let mut servers = mcp.servers.iter_mut();
            let server = servers.find(|server| *server.name == *description.server);
            if let Some(server) = server {
                server.described = Some(Arc::clone(&remote) as Arc<dyn Described>);
            }
        }
        if asking.is_content && !remote.is_unknown() {
            continue;
        }
        let fetching = Fetch {
            server: description.server.clone(),
            remote,
            url,
            client,
            tell: tell.clone(),
        };
        let running = asking.handle.run(fetching.until_it_comes());
        snapshot.runs.push(Arc::new(Fetching { _running: running }));
        waits += 1;
    }
    let until = Instant::now() + WAIT_MAX;
    for _ in 0..waits {
        let left = until.saturating_duration_since(Instant::now());
        if told.recv_timeout(left).is_err() {
            break;
        }
    }
    Ok(())
}

impl Descriptions {
    /// What is known of this one from before, or else nothing yet.
    fn known(&self, description: &ToolDescription) -> Arc<Remote> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, remote)| remote.strong_count() > 0);
        let of_server = all.iter().filter(|(of, _)| *of == description.server);
        let mut known = of_server.filter_map(|(_, remote)| remote.upgrade());
        if let Some(known) = known.find(|known| known.is_like(&description.remote)) {
            return known;
        }
        let remote = Arc::clone(&description.remote);
        all.push((description.server.clone(), Arc::downgrade(&remote)));
        remote
    }
}

/// One that is fetched.
struct Fetch {
    server: String,
    remote: Arc<Remote>,
    url: Url,
    client: Client,
    /// Told of the first try.
    tell: Sender<()>,
}

impl Fetch {
    async fn until_it_comes(self) {
        let (mut pause, most) = AGAIN_AFTER;
        loop {
            let is_taken = self.once().await;
            // Whoever waits may wait no longer.
            let _gone = self.tell.send(());
            if is_taken {
                return;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(most);
        }
    }

    async fn once(&self) -> bool {
        let server = &*self.server;
        let bytes = fetched(&self.client, &self.url, ACCEPT, DESCRIPTION_BYTES_MAX).await;
        let taken = match bytes {
            Ok(bytes) => {
                // A long one takes seconds, and this thread asks for everybody.
                let remote = Arc::clone(&self.remote);
                let taken = tokio::task::spawn_blocking(move || remote.take(&bytes)).await;
                match taken {
                    Ok(taken) => taken.map_err(|fault| fault.to_string()),
                    Err(cut) => Err(cut.to_string()),
                }
            }
            Err(fault) => Err(fault.to_string()),
        };
        match taken {
            Ok((tools, left)) => {
                tracing::info!(server, tools, "read the description of a server of tools");
                left_out(server, &left);
                true
            }
            Err(says) => {
                let kept = !self.remote.is_unknown();
                tracing::warn!(
                    server,
                    says,
                    kept,
                    "cannot fetch the description of a server of tools; the gate tries again"
                );
                false
            }
        }
    }
}

fn left_out(server: &str, left: &[Left]) {
    for Left { operation, why } in left.iter().take(NAMED_MAX) {
        tracing::warn!(
            server,
            operation,
            why,
            "an operation cannot be served as a tool"
        );
    }
    let further = left.len().saturating_sub(NAMED_MAX);
    if further > 0 {
        tracing::warn!(
            server,
            further,
            "further operations cannot be served as tools"
        );
    }
}
