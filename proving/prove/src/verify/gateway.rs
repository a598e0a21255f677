//! A gateway that is started for a suite: a subject's directory, with the suite's upstreams behind it.
//!
//! Invariant: what is started ends with [`Running`]; a gateway that does not answer is told with its last words.
//! Not here: what a subject is (`subject`), the suite (`run`).

use std::collections::BTreeMap;
use std::path::Path;

use super::client::Target;
use super::metric::Scrape;
use super::suite::{Suite, selector};
use super::upstream::Recorder;
use crate::host::ports;
use crate::subject::{NotStarted, Places, Started, Subject, Surroundings};

/// One that was started. The processes end before their directory.
pub(crate) struct Running {
    pub(crate) target: Target,
    pub(crate) metrics: BTreeMap<String, Scrape>,
    pub(crate) started: Started,
    _dir: tempfile::TempDir,
}

impl Running {
    /// Starts the gateway of a directory, and waits until it answers anything.
    pub(crate) fn start(
        dir: &Path,
        suite: &Suite,
        upstreams: &[Recorder],
        install: bool,
    ) -> Result<Self, NotStarted> {
        let unusable = |says: String| NotStarted::Unusable(says);
        let subject = Subject::of(dir).map_err(|error| unusable(error.to_string()))?;
        if install {
            subject.install().map_err(unusable)?;
        }
        let home =
            tempfile::tempdir().map_err(|error| unusable(format!("{}: {error}", subject.name)))?;
        let port_of = |recorder: &Recorder| recorder.address().port();
        let named = suite.upstreams.iter().zip(upstreams);
        let started = Started::start(
            &subject,
            Surroundings {
                home: home.path().to_owned(),
                upstream_port: upstreams.first().map_or(0, port_of),
                further_ports: named
                    .map(|(upstream, recorder)| (upstream.name.clone(), port_of(recorder)))
                    .collect(),
                cgroup: None,
            },
        )?;
        let metrics = metrics(&subject, &started.places).map_err(unusable)?;
        Ok(Self {
            target: Target::at(ports::loopback(started.places.port)),
            metrics,
            started,
            _dir: home,
        })
    }
}

fn metrics(subject: &Subject, places: &Places) -> Result<BTreeMap<String, Scrape>, String> {
    let mut metrics = BTreeMap::new();
    for (name, metric) in &subject.manifest.metrics {
        let of = |says: String| format!("{}: metrics.{name}: {says}", subject.dir.display());
        let scrape = Scrape {
            page: Target::parse(&places.fill(&metric.url)).map_err(of)?,
            selector: selector(&metric.series).map_err(of)?,
        };
        metrics.insert(name.clone(), scrape);
    }
    Ok(metrics)
}
