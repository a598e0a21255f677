//! The thread on which a cluster is watched, and what a gate sees of it.
//!
//! Invariant: whoever looks never waits: it sees what is known. What nobody has answered for yet is named, so that nothing is taken for absent that is only unknown.
//! Not here: how a query is followed (`watcher`), who writes (`writer`).

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use callout::{ApiServer, Client, Objects};
use tokio::runtime::Builder;
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;

use crate::kinds::{Kind, NAMED, WATCHED};
use crate::object::Object;
use crate::query::Query;
use crate::shared::{Desired, Settings, Shared};
use crate::store::{Change, State};
use crate::{lease, watcher, writer};

/// Threads that wait for the system's resolver.
const LOOKUPS_MAX: usize = 4;

/// What is known of a cluster.
#[derive(Debug)]
pub struct View {
    /// All objects.
    pub objects: Vec<Arc<Object>>,
    /// What nobody has answered for yet.
    pub unknown: Vec<String>,
    /// Objects by kind, namespace and name that could not be read, and why.
    pub unread: Vec<([String; 3], String)>,
    /// All of a kind could not be read, and why.
    pub refused: Vec<(String, String)>,
    /// Not everything found room.
    pub is_full: bool,
}

/// A cluster that is watched; dropped, it is watched no more.
#[derive(Debug)]
pub struct Cluster {
    shared: Arc<Shared>,
    wanted: watch::Sender<BTreeSet<Query>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A cluster that is watched, and a word whenever what its objects say changes.
#[derive(Debug)]
pub struct Started {
    /// The cluster.
    pub cluster: Cluster,
    /// Counts changes.
    pub changes: watch::Receiver<u64>,
}

impl Cluster {
    /// Begins to watch.
    ///
    /// # Errors
    /// When the system gives no thread or no event queue.
    pub fn start(server: ApiServer, client: Client, settings: Settings) -> io::Result<Started> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(LOOKUPS_MAX)
            .thread_name("kubernetes-names")
            .build()?;
        let shared = Arc::new(Shared {
            objects: Objects::new(server, client),
            settings,
            store: Mutex::default(),
            is_away: AtomicBool::new(false),
            is_back: watch::Sender::new(0),
            changes: watch::Sender::new(0),
            all_changes: watch::Sender::new(0),
            desired: watch::Sender::default(),
            is_leader: watch::Sender::new(false),
            good_until: Mutex::default(),
        });
        let changes = shared.changes.subscribe();
        let queries = queries(&shared.settings.namespaces);
        for query in &queries {
            shared.store().asks(query);
        }
        let (wanted, named) = watch::channel(BTreeSet::new());
        let (stop, stopped) = oneshot::channel();
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("kubernetes".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    for query in queries {
                        tokio::spawn(watcher::follow(query, Arc::clone(&of_thread)));
                    }
                    let holding = tokio::spawn(lease::hold(Arc::clone(&of_thread)));
                    let writing = tokio::spawn(writer::write(Arc::clone(&of_thread)));
                    tokio::select! {
                        () = follow_named(named, Arc::clone(&of_thread)) => {}
                        _ = stopped => {}
                    }
                    holding.abort();
                    writing.abort();
                    lease::release(&of_thread).await;
                });
                // A look-up that hangs in the system cannot be ended, and is not waited for.
                runtime.shutdown_background();
            })?;
        let cluster = Self {
            shared,
            wanted,
            stop: Some(stop),
            thread: Some(thread),
        };
        Ok(Started { cluster, changes })
    }

    /// What is known now.
    #[must_use]
    pub fn view(&self) -> View {
        let store = self.shared.store();
        let mut view = View {
            objects: store.objects.values().cloned().collect(),
            unknown: Vec::new(),
            unread: Vec::new(),
            refused: Vec::new(),
            is_full: store.is_full,
        };
        for (query, state) in &store.queries {
            match (state, &query.namespace, &query.name) {
                (State::Known, ..) => {}
                (State::Asked, ..) => view.unknown.push(query.shown()),
                (State::Refused(why), Some(namespace), Some(name)) => {
                    let id = [query.kind.name, namespace, name].map(str::to_owned);
                    view.unread.push((id, why.clone()));
                }
                (State::Refused(why), ..) => view.refused.push((query.shown(), why.clone())),
            }
        }
        view
    }

    /// Has these objects watched, by kind (`Secret`, `ConfigMap`, `Service`, `EndpointSlice` by its Service, `Pod` by its labels,
    /// `Namespace`), namespace and name, and no other of those kinds. Whether it is not known yet what some of them are.
    pub fn want(&self, named: impl IntoIterator<Item = [String; 3]>) -> bool {
        let of_kind = |kind: &str| NAMED.iter().find(|of| of.name == kind);
        let query = |[kind, namespace, name]: [String; 3]| {
            let is_watched = |of: &String| *of == namespace;
            let all = &self.shared.settings.namespaces;
            let is_here = all.is_empty() || all.iter().any(is_watched);
            let kind = of_kind(&kind).filter(|kind| is_here || !kind.is_namespaced);
            let kind: &'static Kind = kind?;
            Some(Query::named(kind, &namespace, &name))
        };
        let wanted: BTreeSet<Query> = named.into_iter().filter_map(query).collect();
        let mut store = self.shared.store();
        for query in &wanted {
            store.asks(query);
        }
        let is_unknown = wanted
            .iter()
            .any(|query| store.queries.get(query) == Some(&State::Asked));
        drop(store);
        self.wanted.send_if_modified(|before| {
            let is_new = *before != wanted;
            *before = wanted;
            is_new
        });
        is_unknown
    }

    /// Has this said of objects from now on.
    pub fn say(&self, desired: Vec<Desired>) {
        self.shared.desired.send_replace(Arc::new(desired));
    }

    /// Whether this one writes what is said.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        *self.shared.is_leader.borrow()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// What is asked for from the start.
fn queries(namespaces: &[String]) -> Vec<Query> {
    let of_kind = |kind: &'static Kind| {
        let namespaces: Vec<Option<&str>> = match namespaces {
            [] => vec![None],
            _ if !kind.is_namespaced => vec![None],
            some => some
                .iter()
                .map(|namespace| Some(namespace.as_str()))
                .collect(),
        };
        namespaces
            .into_iter()
            .map(move |namespace| Query::of_kind(kind, namespace))
    };
    WATCHED.iter().flat_map(of_kind).collect()
}

/// Follows what is wanted by name, and forgets what is wanted no more.
async fn follow_named(mut wanted: watch::Receiver<BTreeSet<Query>>, shared: Arc<Shared>) {
    let mut following: BTreeMap<Query, AbortHandle> = BTreeMap::new();
    loop {
        let now = wanted.borrow_and_update().clone();
        following.retain(|query, task| {
            let is_wanted = now.contains(query);
            if !is_wanted {
                task.abort();
                shared.change(|store| store.forget(query).min(Change::Status));
            }
            is_wanted
        });
        for query in now {
            following.entry(query).or_insert_with_key(|query| {
                tokio::spawn(watcher::follow(query.clone(), Arc::clone(&shared))).abort_handle()
            });
        }
        if wanted.changed().await.is_err() {
            return;
        }
    }
}
