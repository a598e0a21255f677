//! `--kubernetes`: a gate by the objects of a cluster.
//!
//! Invariant: nothing is published before all that it is made of is known, so that what is only unknown closes nothing; and what a Secret
//! holds comes as a file of memory, as from files of objects.
//! Not here: watching and writing (`kubernetes`), what objects come to (`control`), where the API server is (`place`), when objects are read (`controller`).

mod place;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use clap::Args;
use config::{Fault, Faults, Loaded, Sources};
use control::{Choice, Id, Input, Live, Report, Trial};
use kubernetes::{Cluster, Desired, Event, Said, Settings, View};
use tokio::sync::{Mutex as Turn, watch};

use crate::mcp_servers::Sealed;
use crate::world::World;

/// What a `GatewayClass` says whose Gateways are ours.
const CONTROLLER: &str = "tollgate/gateway";
/// How long further changes are waited for before what changed is taken.
const SETTLES_IN: Duration = Duration::from_millis(50);
/// Longest file of ours, bytes.
const FILE_BYTES_MAX: usize = 4 << 20;

/// Options of `run --kubernetes`.
#[derive(Debug, Args)]
pub(crate) struct ClusterOptions {
    /// Take the configuration from the objects of the cluster: its Gateway, the routes that are attached to it, and
    /// what these name. What -c names is a file of ours that says the rest.
    #[arg(long, conflicts_with_all = ["mcp_config", "mcp_json"])]
    kubernetes: bool,
    /// How the API server is reached [default: as a pod of its cluster].
    #[arg(long, value_name = "FILE", requires = "kubernetes")]
    kubeconfig: Option<PathBuf>,
    /// The Gateway that this gate is [default: the oldest of its class].
    #[arg(long, value_name = "NAMESPACE/NAME", requires = "kubernetes", value_parser = place::named)]
    gateway: Option<(String, String)>,
    /// A namespace that is watched; may be said again [default: all].
    #[arg(long, value_name = "NAMESPACE", requires = "kubernetes")]
    watch_namespace: Vec<String>,
    /// The controllerName of the GatewayClass.
    #[arg(long, value_name = "NAME", requires = "kubernetes", default_value = CONTROLLER)]
    controller: String,
    /// The lease of the replica that writes statuses [default: tollgate in the gate's namespace].
    #[arg(long, value_name = "NAMESPACE/NAME", requires = "kubernetes", value_parser = place::named)]
    lease: Option<(String, String)>,
    /// Let Backends be addresses of this machine and its link: for a gate that is no pod, with its engines beside it.
    #[arg(long, requires = "kubernetes")]
    local_backends: bool,
    /// The IP address of this machine that the listeners are on [default: what the Gateway asks for, or all].
    #[arg(long, value_name = "IP", requires = "kubernetes")]
    bind: Option<IpAddr>,
    /// An address or a name by which clients reach this gate, for the Gateway's status; may be said again [default: --bind].
    #[arg(long, value_name = "ADDRESS", requires = "kubernetes")]
    address: Vec<String>,
    /// The zone that this gate is in: of a Service that asks for it, endpoints of the zone are called.
    #[arg(
        long,
        value_name = "ZONE",
        requires = "kubernetes",
        env = "TOLLGATE_ZONE"
    )]
    zone: Option<String>,
}

impl ClusterOptions {
    /// Whether a cluster is meant at all.
    pub(crate) fn is_meant(&self) -> bool {
        self.kubernetes
    }

    /// Begins to watch the cluster, where one is meant.
    ///
    /// # Errors
    /// Where its API server is, is not known; or the system gives no thread.
    pub(crate) fn start(&self, own: Option<&Path>) -> Result<Option<Arc<Clustered>>, String> {
        if !self.kubernetes {
            return Ok(None);
        }
        let place = match &self.kubeconfig {
            Some(file) => place::of_file(file)?,
            None => place::of_pod()?,
        };
        let settings = Settings {
            namespaces: self.watch_namespace.clone(),
            lease: self
                .lease
                .clone()
                .unwrap_or((place.namespace, "tollgate".to_owned())),
            identity: place::identity(),
        };
        let started = Cluster::start(place.server, place.client, settings);
        let started = started.map_err(|error| format!("cannot watch the cluster: {error}"))?;
        Ok(Some(Arc::new(Clustered {
            cluster: started.cluster,
            changes: Turn::new(started.changes),
            own: own.map(Path::to_owned),
            gateway: self.gateway.clone(),
            controller: self.controller.clone(),
            reaches_machine: self.local_backends,
            bind: self.bind,
            addresses: match (self.address.as_slice(), self.bind) {
                ([], Some(ip)) if !ip.is_unspecified() => vec![ip.to_string()],
                (said, _) => said.to_vec(),
            },
            zone: self.zone.clone(),
            running: OnceLock::new(),
            report: Mutex::default(),
            loaded: Mutex::default(),
        })))
    }
}

/// A cluster whose objects are the configuration.
pub(crate) struct Clustered {
    cluster: Cluster,
    changes: Turn<watch::Receiver<u64>>,
    /// A file of ours that lies beside.
    own: Option<PathBuf>,
    gateway: Option<(String, String)>,
    controller: String,
    reaches_machine: bool,
    bind: Option<IpAddr>,
    addresses: Vec<String>,
    zone: Option<String>,
    /// Where the gate listens, once it does.
    running: OnceLock<String>,
    /// What was found when objects were read last.
    report: Mutex<Report>,
    /// Which objects were loaded last.
    loaded: Mutex<Option<u64>>,
}

/// What faults are told against where no file and no object is to blame.
const PLACE: &str = "kubernetes";

/// How the objects are to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Not all is known that their meaning depends on.
    Unknown,
    /// They come to what was loaded last.
    Same,
    New,
}

impl Clustered {
    /// Loads what the objects come to now.
    ///
    /// # Errors
    /// There is no Gateway of ours, it is faulty, or what all come to together cannot be taken.
    pub(crate) fn load(&self, sources: &dyn Sources, trial: &Trial<'_>) -> Result<Loaded, Faults> {
        let view = self.cluster.view();
        if let Some(lacks) = lacks(&view) {
            return Err(untaken(&lacks));
        }
        let Live { loaded, report } = self.live(&view, sources, Some(trial))?;
        // What is wanted by now may be more than was known before.
        if self.cluster.want(names(&report)) {
            return Err(untaken("what they name is not known yet"));
        }
        *locked(&self.loaded) = Some(report.print);
        *locked(&self.report) = report;
        loaded
    }

    fn live(
        &self,
        view: &View,
        sources: &dyn Sources,
        trial: Option<&Trial<'_>>,
    ) -> Result<Live, Faults> {
        let texts: Vec<(Id, &str)> = view
            .objects
            .iter()
            .map(|object| {
                let id = Id {
                    kind: object.key.kind.to_owned(),
                    namespace: object.key.namespace.clone(),
                    name: object.key.name.clone(),
                };
                (id, object.text())
            })
            .collect();
        let unread = view
            .unread
            .iter()
            .cloned()
            .map(|([kind, namespace, name], why)| {
                let id = Id {
                    kind,
                    namespace,
                    name,
                };
                (id, why)
            });
        let unread: BTreeMap<Id, String> = unread.collect();
        let own = self
            .own
            .as_deref()
            .map(|file| text(file, sources).map(|text| (file, text)));
        let own = own.transpose()?;
        let choice = Choice {
            controller: &self.controller,
            gateway: self
                .gateway
                .as_ref()
                .map(|(namespace, name)| (&**namespace, &**name)),
            reaches_machine: self.reaches_machine,
            own: own.as_ref().map(|(file, text)| Input { file, text }),
            unread: &unread,
            bind: self.bind,
            addresses: &self.addresses,
            zone: self.zone.as_deref(),
            trial,
            running: self.running.get().map(String::as_str),
        };
        Ok(control::live(&texts, &choice, &Sealed(sources)))
    }

    /// Whether the objects are to be loaded. What they name is asked for.
    pub(crate) fn look(&self) -> Look {
        let view = self.cluster.view();
        if !view.unknown.is_empty() {
            let unknown = view.unknown.join(", ");
            tracing::debug!(unknown, "not all objects are known yet");
            return Look::Unknown;
        }
        if let Some(lacks) = lacks(&view) {
            tracing::error!("the objects are not applied: {lacks}");
            return Look::Unknown;
        }
        // A file that cannot be read has its fault when it is loaded.
        let Ok(Live { report, .. }) = self.live(&view, &World, None) else {
            return Look::New;
        };
        if self.cluster.want(names(&report)) {
            return Look::Unknown;
        }
        if *locked(&self.loaded) != Some(report.print) {
            return Look::New;
        }
        Look::Same
    }

    /// Says of the objects what was found when they were read last, and whether the gate runs by that.
    pub(crate) fn tell(&self, failed: Option<&str>) {
        let mut report = locked(&self.report);
        if let Some(why) = failed {
            report.fails(why);
        }
        let gate = Arc::new(control::Gate {
            gateway: report.gateway.clone(),
            controller: self.controller.clone(),
            addresses: self.addresses.clone(),
            sets: report.sets.clone(),
            other_sets: report.other_sets.clone(),
        });
        let desired = report.verdicts.iter().map(|verdict| {
            let (verdict, gate) = (verdict.clone(), Arc::clone(&gate));
            let Id {
                kind,
                namespace,
                name,
            } = verdict.id.clone();
            Desired {
                of: [kind, namespace, name],
                saying: Arc::new(move |object, now| {
                    let status = control::status(&verdict, object, &gate, now)?;
                    let event = control::refusal(&verdict, object, &gate);
                    let event = event.map(|(reason, message)| Event {
                        reason: reason.to_owned(),
                        message,
                    });
                    Some(Said { status, event })
                }),
            }
        });
        self.cluster.say(desired.collect());
    }

    /// Notes where the gate listens.
    pub(crate) fn runs_at(&self, address: String) {
        self.running.get_or_init(|| address);
    }

    /// Waits for a change, and for those that come with it.
    pub(crate) async fn changed(&self) {
        let mut changes = self.changes.lock().await;
        if changes.changed().await.is_err() {
            return std::future::pending().await;
        }
        tokio::time::sleep(SETTLES_IN).await;
        changes.mark_unchanged();
    }
}

impl std::fmt::Debug for Clustered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clustered")
            .field("cluster", &self.cluster)
            .finish_non_exhaustive()
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is not seen of the cluster, which may be what keeps somebody out: nothing is taken before it is.
fn lacks(view: &View) -> Option<String> {
    let mut lacks = Vec::new();
    if !view.unknown.is_empty() {
        let unknown = view.unknown.join(", ");
        lacks.push(format!("not all is known yet of {unknown}"));
    }
    for (query, why) in &view.refused {
        lacks.push(format!(
            "not before all of this kind can be read: {query}: {why}"
        ));
    }
    if view.is_full {
        let says =
            "there are more than the gate keeps: let it watch fewer namespaces, and start it again";
        lacks.push(says.to_owned());
    }
    (!lacks.is_empty()).then(|| lacks.join("; "))
}

/// Objects cannot be taken now.
fn untaken(why: &str) -> Faults {
    let says = format!("the cluster's objects are not taken: {why}");
    faults(Path::new(PLACE), says, Vec::new())
}

fn faults(file: &Path, says: String, watched: Vec<PathBuf>) -> Faults {
    Faults {
        file: file.to_owned(),
        faults: vec![Fault {
            file: None,
            path: String::new(),
            line: None,
            says,
            hint: String::new(),
        }],
        warnings: Vec::new(),
        watched,
        key_files: Vec::new(),
    }
}

fn names(report: &Report) -> Vec<[String; 3]> {
    let wanted = report.wanted.iter().cloned();
    wanted
        .map(
            |Id {
                 kind,
                 namespace,
                 name,
             }| [kind, namespace, name],
        )
        .collect()
}

/// What a file of ours says.
fn text(file: &Path, sources: &dyn Sources) -> Result<String, Faults> {
    let read = sources
        .read(file, FILE_BYTES_MAX)
        .map_err(|error| error.to_string());
    let read =
        read.and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned()));
    read.map_err(|why| {
        let says = format!("cannot read the file: {why}");
        faults(file, says, vec![file.to_owned()])
    })
}

#[cfg(test)]
mod tests {
    //! Which views of a cluster are taken.

    use super::{View, lacks};

    #[test]
    fn a_view_in_which_something_may_be_missing_is_not_taken() {
        let view = || View {
            objects: Vec::new(),
            unknown: Vec::new(),
            unread: Vec::new(),
            refused: Vec::new(),
            is_full: false,
        };
        assert_eq!(lacks(&view()), None);
        let mut full = view();
        full.is_full = true;
        assert!(lacks(&full).is_some_and(|says| says.contains("more than the gate keeps")));
        let mut refused = view();
        refused.refused = vec![("SecurityPolicies".into(), "forbidden".into())];
        assert!(lacks(&refused).is_some_and(|says| says.contains("forbidden")));
        let mut unknown = view();
        unknown.unknown = vec!["Services".into()];
        assert!(lacks(&unknown).is_some_and(|says| says.contains("Services")));
    }
}
