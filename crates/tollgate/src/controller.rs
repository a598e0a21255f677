//! When the objects of a cluster are read: until they come to a gate, and at each change from then on.
//!
//! Not here: what they come to (`cluster`), how that is published (`running`).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use config::Loaded;

use crate::cluster::{Clustered, Look};
use crate::running::{Origin, Running};

/// How often it is looked whether what could not be taken is taken now.
const AGAIN: Duration = Duration::from_secs(5);

/// Waits until the objects come to a gate.
pub(crate) async fn first(cluster: Arc<Clustered>, own: Option<&Path>) -> (Loaded, Origin) {
    let mut told = String::new();
    loop {
        let mut is_failed = false;
        let known = Arc::clone(&cluster);
        let look = tokio::task::spawn_blocking(move || known.look()).await;
        if look.is_ok_and(|look| look != Look::Unknown) {
            let (from, own) = (Arc::clone(&cluster), own.map(Path::to_owned));
            let read = move || Origin::read(own.as_deref(), None, Some(from));
            match tokio::task::spawn_blocking(read).await {
                Ok(Ok(read)) => return read,
                Ok(Err(faults)) => {
                    is_failed = true;
                    let says = faults.to_string();
                    cluster.tell(Some(&says));
                    if says != told {
                        tracing::error!(
                            "the gate waits: its objects do not make a configuration yet:\n{says}"
                        );
                        told = says;
                    }
                }
                Err(error) => tracing::error!(%error, "objects cannot be read"),
            }
        }
        tokio::select! {
            () = cluster.changed() => {}
            // A file of ours may be what is wrong, or one that it names, and is mended without a change of objects.
            () = tokio::time::sleep(AGAIN), if is_failed => {}
        }
    }
}

/// Takes changes as they come, where objects of a cluster are the configuration. Never ends.
pub(crate) async fn follow(running: &Arc<Running>) {
    let Some(cluster) = running.cluster().cloned() else {
        return std::future::pending().await;
    };
    cluster.runs_at(running.gate.address().to_string());
    cluster.tell(None);
    let mut is_failed = false;
    loop {
        tokio::select! {
            () = cluster.changed() => {}
            // A file of ours, or what may pass, may have been what was wrong, and is taken without a change of objects.
            () = tokio::time::sleep(AGAIN), if is_failed => {
                is_failed = !running.last_reload_good.load(Ordering::SeqCst);
                if !is_failed {
                    cluster.tell(None);
                }
                // A change may have begun to settle, and is looked at here, or by nobody.
            }
        }
        let taking = Arc::clone(running);
        let taken = tokio::task::spawn_blocking(move || {
            let cluster = taking.cluster()?;
            (cluster.look() == Look::New).then(|| taking.reload_now())
        });
        let Ok(Some(taken)) = taken.await else {
            continue;
        };
        is_failed = taken.is_err();
        cluster.tell(taken.err().as_deref());
    }
}
