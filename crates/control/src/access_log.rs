//! EnvoyProxy: where the access log goes.
//!
//! Not here: how a gate is deployed, which no object says to it.

use crate::cluster::Cluster;
use crate::fields::Item;
use crate::findings::Findings;
use crate::tree::Tree;

/// Where the access log goes, as an EnvoyProxy says it.
pub(crate) fn access_log(cluster: &Cluster<'_>, findings: &mut Findings) -> Option<Tree> {
    let mut log = None;
    for proxy in cluster.of_kind("EnvoyProxy") {
        let mut spec = proxy.spec(findings);
        let deployed = "where and how the gate runs is not said here";
        spec.pass_over(
            &[
                ("provider", deployed),
                ("logging", "`--log` says what is logged"),
                ("concurrency", "`workers` of a file of ours says how many threads there are, the CPU quota unless said"),
                ("shutdown", "`drain` of a file of ours says how the gate stops"),
                ("mergeGateways", "there is one Gateway"),
                ("routingType", "addresses are those of the Backend"),
                ("bootstrap", "there is no Envoy to start"),
                ("extraArgs", "there is no Envoy to start"),
                ("filterOrder", "there are no filters of Envoy"),
                ("preserveRouteOrder", "routes are in the order of the Gateway API"),
                ("ipFamily", "the address of the Gateway says it"),
                ("dynamicModules", "there is no Envoy to extend"),
                ("luaValidation", "there is no Envoy to extend"),
            ],
            findings,
        );
        spec.refuse(&[("backendTLS", "write a BackendTLSPolicy")], findings);
        if let Some(telemetry) = spec.take("telemetry") {
            let mut of = telemetry.fields(findings);
            let beside = "`traces` of a file of ours says where spans go";
            of.pass_over(
                &[
                    ("metrics", "they are on the admin address"),
                    ("tracing", beside),
                    ("requestID", "ids are the gate's own"),
                ],
                findings,
            );
            if let Some(access) = of.take("accessLog") {
                if log.is_some() {
                    findings.fault(&access.spot, "is a second access log", "keep one");
                }
                log = access_log_of(cluster, &access, findings).or(log);
            }
            of.end(findings);
        }
        spec.end(findings);
    }
    log
}

fn access_log_of(cluster: &Cluster<'_>, item: &Item<'_>, findings: &mut Findings) -> Option<Tree> {
    let mut of = item.fields(findings);
    let disable = of.flag("disable", findings);
    let mut found = disable
        .filter(|said| said.value)
        .map(|said| Tree::text("off").of(&said.spot));
    for setting in of.list("settings", findings) {
        let mut setting = setting.fields(findings);
        setting.pass_over(
            &[
                ("format", "lines are the gate's own"),
                ("type", "a line is of a call"),
                ("matches", "every call has its line"),
            ],
            findings,
        );
        for sink in setting.list("sinks", findings) {
            let mut inside = sink.fields(findings);
            let kind = inside.needed_text("type", findings);
            let file = inside.take("file");
            inside.skip(&["als", "openTelemetry"]);
            inside.end(findings);
            if kind.is_some_and(|kind| kind.value != "File") {
                findings.fault(
                    &sink.spot,
                    "is no file, and lines go nowhere else",
                    "write type: File, with file: { path: /dev/stdout }",
                );
                continue;
            }
            let Some(file) = file else { continue };
            let mut file = file.fields(findings);
            let path = file.needed_text("path", findings);
            file.end(findings);
            let Some(path) = path else { continue };
            let place = if path.value == "/dev/stdout" {
                "stdout"
            } else {
                &path.value
            };
            if cluster.mode.is_live && place != "stdout" {
                let says =
                    "is a file of the gate's machine, which objects of a cluster do not name";
                findings.fault(&path.spot, says, "write /dev/stdout");
            }
            let there = found.as_ref().map(Tree::flow);
            if there.is_some_and(|there| there != Tree::text(place).flow()) {
                findings.fault(
                    &path.spot,
                    "is a second place for the access log, and there is one",
                    "keep one",
                );
            }
            found = Some(Tree::text(place).of(&path.spot));
        }
        setting.end(findings);
    }
    of.end(findings);
    found
}
