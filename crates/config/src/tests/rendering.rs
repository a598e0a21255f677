//! A loaded document as text that a reviewer can read, without secrets.

use std::fmt::Write as _;
use std::time::Duration;

use policy::billing::Billing;
use policy::credential::{Known, KnownSet, UpstreamAuth};
use policy::disconnect::OnDisconnect;
use policy::identity::{Source, Trusted};
use policy::limit::Window;
use policy::model::ModelPattern;
use policy::retry::{Ejection, Retries};
use policy::snapshot::{
    AddedHeader, AddedMember, AddedValue, AskUsage, Bounds, PoolBounds, Snapshot, Spellings,
};
use policy::web::{Hosts, Origins};

use crate::{EngineStart, Fault, Loaded, Located, MadeCredential, UpstreamCredential, Vocabulary};

/// The header of a lone header source as one line; several sources with a line each, in order.
fn identity(loaded: &Loaded, out: &mut String) {
    let s = &loaded.snapshot;
    let mut sources: Vec<String> = s
        .identity
        .sources
        .iter()
        .map(|source| match source {
            Source::Header(source) => {
                let default = source
                    .default
                    .map(|id| s.workload(id).unwrap().name.to_string());
                let from = match &source.from {
                    Trusted::Anyone => String::new(),
                    peers => format!(" {peers:?}"),
                };
                let default = default.as_deref().unwrap_or("-");
                let user = s.identity.user_header.as_deref();
                let user = user.filter(|_| source.names_user);
                let user = user.map_or_else(String::new, |user| format!(" user={user}"));
                format!("{} default={default}{user}{from}", &*s.identity.header)
            }
            Source::Certificate(known) => {
                let mut exact: Vec<_> = known.exact.iter().map(|(n, c)| (n, &c.workload)).collect();
                exact.sort();
                let prefixes: Vec<_> = known
                    .prefixes
                    .iter()
                    .map(|(n, c)| (n, &c.workload))
                    .collect();
                format!("certificates {exact:?} {prefixes:?}")
            }
            Source::Credential(_) | Source::Session(_) => {
                unreachable!("verifiers are the host's to make")
            }
        })
        .collect();
    for source in &loaded.host.credentials {
        sources.insert(
            source.position,
            format!("{}: {:?}", source.place, source.kind),
        );
    }
    for (place, source) in sources.iter().enumerate() {
        let users = s.identity.users.get(place).copied().unwrap_or_default();
        let from_call = if users.from_call {
            " user from call"
        } else {
            ""
        };
        let hidden = if users.is_hidden { " user hidden" } else { "" };
        writeln!(out, "identity {source}{from_call}{hidden}").unwrap();
    }
}

pub(crate) fn rendered(loaded: &Loaded) -> String {
    let mut out = String::new();
    host(loaded, &mut out);
    let s = &loaded.snapshot;
    identity(loaded, &mut out);
    let usual = if loaded.host.data.ip().is_loopback() {
        Hosts::Loopback(Vec::new())
    } else {
        Hosts::Any
    };
    if (&s.web.hosts, &s.web.origins) != (&usual, &Origins::None) {
        writeln!(out, "{:?}", s.web).unwrap();
    }
    if let Some(access) = &loaded.host.access_review {
        writeln!(out, "{access:?}").unwrap();
    }
    if s.clients != policy::client::Clients::default() {
        writeln!(out, "{:?}", s.clients).unwrap();
    }
    if s.bounds != Bounds::default() {
        writeln!(out, "bounds {:?}", s.bounds).unwrap();
    }
    for backend in &s.backends {
        let t = backend.timeouts;
        let times = [t.connect, t.first_byte, t.idle].map(window).join("/");
        writeln!(
            out,
            "backend {} timeouts={times} models={:?}",
            backend.name, backend.models
        )
        .unwrap();
        if backend.is_plain {
            writeln!(out, "  serves plain HTTP").unwrap();
        }
        for (model, name) in &backend.model_names {
            writeln!(out, "  calls {model} {name}").unwrap();
        }
        if let Some(Spellings {
            beginnings,
            is_caseless,
        }) = &backend.spellings
        {
            let case = if *is_caseless { ", in any letters" } else { "" };
            writeln!(out, "  spells a model behind {beginnings:?}{case}").unwrap();
        }
        for AddedHeader { name, value } in &backend.headers {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let value = match value {
                AddedValue::Fixed(value) => text(value),
                AddedValue::OfClient(allowed) => format!("of the client's {allowed:?}"),
            };
            writeln!(out, "  adds {}: {value}", text(name)).unwrap();
        }
        if backend.withheld_headers != KnownSet::default() {
            let withheld = [
                Known::OpenaiBeta,
                Known::AnthropicVersion,
                Known::AnthropicBeta,
            ]
            .into_iter()
            .filter(|name| backend.withheld_headers.contains(*name));
            let withheld: Vec<_> = withheld.map(Known::name).collect();
            writeln!(out, "  withholds {withheld:?}").unwrap();
        }
        for filter in &backend.filters {
            writeln!(out, "  {filter:?}").unwrap();
        }
        if backend.ask_usage != AskUsage::Auto {
            writeln!(out, "  asks usage {:?}", backend.ask_usage).unwrap();
        }
        for AddedMember { name, value } in &backend.query {
            writeln!(out, "  adds ?{name}={value}").unwrap();
        }
        if let Some(balancer) = &backend.balancer {
            writeln!(out, "  balanced {}", balancer.by().as_str()).unwrap();
        }
        if backend.exchanges_tokens {
            writeln!(out, "  exchanges callers' tokens").unwrap();
        }
        if backend.ejection != Ejection::default() {
            writeln!(out, "  {:?}", backend.ejection).unwrap();
        }
        if backend.pool != PoolBounds::default() {
            writeln!(out, "  {:?}", backend.pool).unwrap();
        }
        for id in &backend.endpoints {
            let e = s.endpoint(*id).unwrap();
            let injects = match &e.auth {
                UpstreamAuth::None => "-".to_owned(),
                UpstreamAuth::Minted(minter) => format!("made({})", minter.account()),
                UpstreamAuth::Header { name, value } => {
                    let scheme = value.expose().split(|b| *b == b' ').next().unwrap();
                    let has_scheme = scheme.len() < value.expose().len();
                    let scheme = if has_scheme {
                        String::from_utf8_lossy(scheme)
                    } else {
                        "".into()
                    };
                    format!("{name}:{scheme} ***")
                }
            };
            let o = &e.origin;
            writeln!(
                out,
                "  endpoint {} {}://{}:{} {:?} authority={} base={:?} weight={} injects={injects} ca={:?}{}{}",
                e.name,
                if o.tls { "https" } else { "http" },
                o.host, o.port, o.protocol, e.authority, e.base_path, e.weight, o.ca_file,
                o.proxy.as_ref().map_or(String::new(), |proxy| format!(" {proxy:?}")),
                if o.certificate.is_empty() { "" } else { " shows its certificate" },
            )
            .unwrap();
            if let Some(name) = &o.tls_name {
                writeln!(out, "    is checked by the name {name}").unwrap();
            }
            if !o.alt_names.is_empty() {
                writeln!(out, "    is checked by one of the names {:?}", o.alt_names).unwrap();
            }
            if o.is_kept_off_the_machine {
                writeln!(out, "    is never this machine").unwrap();
            }
            if let Some(edits) = &e.edits {
                writeln!(out, "    {edits:?}").unwrap();
            }
        }
    }
    if let Some(mcp) = &s.mcp {
        mcp_rendered(mcp, s, &mut out);
        for command in &loaded.host.tool_commands {
            let crate::ToolCommand {
                server, program, ..
            } = command;
            writeln!(out, "  command of {server} {program:?}").unwrap();
        }
    }
    for UpstreamCredential {
        endpoint,
        place,
        made,
    } in &loaded.host.upstream_credentials
    {
        let name = &s.endpoint(*endpoint).unwrap().name;
        let MadeCredential {
            header,
            scheme,
            kind,
            ..
        } = made;
        writeln!(out, "makes {place} for {name} {header}:{scheme} {kind:?}").unwrap();
    }
    for certificate in &loaded.host.client_certificates {
        writeln!(out, "certificate {}", certificate.place).unwrap();
    }
    for route in &s.routes {
        let backends: Vec<_> = route
            .backends
            .iter()
            .map(|b| &*s.backend(*b).unwrap().name)
            .collect();
        let models: Vec<_> = route.models.iter().map(model).collect();
        writeln!(
            out,
            "route {} models={models:?} backends={backends:?} override={}{}{}",
            route.name,
            route.model.as_deref().unwrap_or("-"),
            match route.billing {
                Billing::Grouped => "",
                Billing::Strict => " strict",
            },
            match route.abandon {
                OnDisconnect::Unsaid => String::new(),
                OnDisconnect::Cancel => " cancel".to_owned(),
                OnDisconnect::ReadToEnd(drain) => format!(" {drain:?}"),
            }
        )
        .unwrap();
        if !route.unlisted.is_empty() {
            let unlisted: Vec<_> = route.unlisted.iter().map(model).collect();
            writeln!(out, "  unlisted {unlisted:?}").unwrap();
        }
        if let Some(most) = route.output_max {
            writeln!(out, "  output_max={most}").unwrap();
        }
        if route.retries != Retries::default() {
            let r = &route.retries;
            let (share, statuses) = (r.share_millionths, r.statuses.iter().collect::<Vec<_>>());
            writeln!(
                out,
                "  retries attempts={} share={share}/1000000 burst={} statuses={statuses:?}",
                r.attempts, r.burst
            )
            .unwrap();
        }
        if route.is_exclusive {
            writeln!(out, "  has its accounts to itself").unwrap();
        }
        for listed in &route.unread {
            let (method, path) = (format!("{:?}", listed.method).to_uppercase(), &listed.path);
            let tokens = listed.tokens.map_or("-".into(), |n| n.to_string());
            let price = listed.price.and_then(|id| s.prices.get(id));
            let money = price.map_or("-".into(), |price| {
                format!("{}p {} {}", price.request.0, price.currency, price.id)
            });
            writeln!(
                out,
                "  unread {method} {path} tokens={tokens} money={money}"
            )
            .unwrap();
        }
        if let Some(batches) = &route.batches {
            writeln!(out, "  {batches:?}").unwrap();
        }
        let headers = [
            ("forwards", &route.forward_headers),
            ("returns", &route.return_headers),
        ];
        if let Some(actions) = &route.actions {
            writeln!(out, "  does {actions:?}").unwrap();
        }
        for (word, names) in headers.into_iter().filter(|(_, names)| !names.is_empty()) {
            let names: Vec<_> = names.iter().map(|n| String::from_utf8_lossy(n)).collect();
            writeln!(out, "  {word} {names:?}").unwrap();
        }
    }
    for listener in s.listeners.all() {
        let host = listener
            .host
            .as_ref()
            .map_or("-".into(), ToString::to_string);
        let (tls, models) = (listener.is_tls, listener.serves_models);
        let (name, port) = (&listener.name, listener.port);
        writeln!(
            out,
            "listener {name} port={port} host={host} tls={tls} models={models}"
        )
        .unwrap();
    }
    for rule in s.plain.rules() {
        let route = &s.route(rule.route).unwrap().name;
        writeln!(out, "plain {rule} => {route}").unwrap();
    }
    for workload in &s.workloads {
        writeln!(out, "workload {}", workload.name).unwrap();
        for grant in workload.grants.iter().chain(&workload.plain) {
            writeln!(out, "  grant {}", s.route(grant.route).unwrap().name).unwrap();
            for id in &grant.limits {
                let limit = s.limit(*id).unwrap();
                let rate = limit.rate;
                let (amount, per, burst) = (rate.amount, window(rate.per), rate.burst);
                let room = match limit.window {
                    Window::Bucket => format!("burst {burst}"),
                    Window::Rolling => "rolling".to_owned(),
                };
                writeln!(
                    out,
                    "    limit {} = {amount} per {per} {room}{}",
                    limit.key,
                    apart(limit.whose)
                )
                .unwrap();
            }
        }
    }
    money(s, &mut out);
    for tokenizer in &s.tokenizers {
        let source = loaded
            .host
            .tokenizers
            .iter()
            .find(|source| source.key == tokenizer.key);
        let source = source.expect("each tokenizer has what it is made of");
        let made_of = match &source.vocabulary {
            Vocabulary::Harmony => "harmony".to_owned(),
            Vocabulary::O200k => "o200k".to_owned(),
            Vocabulary::Cl100k => "cl100k".to_owned(),
            Vocabulary::Files {
                tokenizer,
                template,
                settings,
                engine,
            } => {
                let length = |content: &Option<Vec<u8>>| content.as_ref().map(Vec::len);
                let (template, settings) = (length(template), length(settings));
                let engine = match *engine == EngineStart::default() {
                    true => String::new(),
                    false => format!(" {engine:?}"),
                };
                format!(
                    "files {} {template:?} {settings:?}{engine}",
                    tokenizer.len()
                )
            }
        };
        writeln!(out, "tokenizer {:?} {made_of}", tokenizer.models).unwrap();
    }
    if !s.tokenizers.is_empty() {
        writeln!(out, "{:?}", loaded.host.counting).unwrap();
        let asked = (loaded.host.calibration, &loaded.host.asked);
        writeln!(out, "asked {asked:?}").unwrap();
    }
    for (backend, metrics) in s.backends.iter().zip(&loaded.host.engine_metrics) {
        if let Some(metrics) = metrics {
            writeln!(out, "engines of {} {metrics:?}", backend.name).unwrap();
        }
    }
    for (backend, picker) in s.backends.iter().zip(&loaded.host.pickers) {
        if let Some(picker) = picker {
            writeln!(out, "picker of {} {picker:?}", backend.name).unwrap();
        }
    }
    writeln!(out, "watched {:?}", loaded.watched).unwrap();
    warned(&loaded.warnings, &mut out);
    out
}

pub(super) fn warned(warnings: &[Fault], out: &mut String) {
    for fault in warnings {
        let file = std::path::Path::new("tollgate.yaml");
        writeln!(out, "warning {}", Located { file, fault }).unwrap();
    }
}

fn host(loaded: &Loaded, out: &mut String) {
    let h = &loaded.host;
    writeln!(
        out,
        "host data={} admin={} tls={} workers={:?} access_log={:?} drain={}{}",
        h.data,
        h.admin,
        h.tls
            .as_ref()
            .map_or("-".into(), |t| t.certificate.display().to_string()),
        h.workers,
        h.access_log,
        window(h.drain_grace),
        if h.drain_delay.is_zero() {
            String::new()
        } else {
            format!(" after {}", window(h.drain_delay))
        }
    )
    .unwrap();
    for bearer in &h.admin_access.bearers {
        let roles = bearer.roles.names().collect::<Vec<_>>().join(" ");
        writeln!(
            out,
            "admin bearer {} {:?} {roles}",
            bearer.name, bearer.secret
        )
        .unwrap();
    }
    if let Some(login) = &h.admin_login {
        writeln!(out, "admin login {:?}", login.client).unwrap();
        for (value, roles) in &login.roles {
            let roles = roles.names().collect::<Vec<_>>().join(" ");
            let (user, claim) = (&login.user, &login.roles_claim);
            writeln!(out, "  {user} {claim} {value}: {roles}").unwrap();
        }
    }
    if let Some(ledger) = &h.ledger {
        writeln!(out, "{ledger:?}").unwrap();
    }
    if let Some(traces) = &h.traces {
        writeln!(out, "{traces:?}").unwrap();
    }
}

fn money(s: &Snapshot, out: &mut String) {
    for (name, backend, price) in s.prices.iter() {
        let at = backend.map_or(String::new(), |b| {
            format!(" at {}", s.backend(b).unwrap().name)
        });
        let (id, currency, request) = (&price.id, &price.currency, price.request.0);
        let whose = if price.whose.is_empty() {
            String::new()
        } else {
            format!(" for {}", price.whose)
        };
        writeln!(
            out,
            "price {name}{at} {id} {currency} request={request}p{whose}"
        )
        .unwrap();
        let base = policy::price::Tier {
            above: 0,
            rates: price.rates,
        };
        for tier in std::iter::once(&base).chain(&price.tiers) {
            let (above, r) = (tier.above, tier.rates);
            let [input, cached] = [r.input.0, r.cached.0];
            let [output, reasoning] = [r.output.0, r.reasoning.0];
            write!(
                out,
                "  above {above}: input={input}p cached={cached}p output={output}p reasoning={reasoning}p"
            )
            .unwrap();
            let writes = [r.cache_write_5m.0, r.cache_write_1h.0];
            if writes != [input, input] {
                let [five_minutes, hour] = writes;
                write!(out, " write_5m={five_minutes}p write_1h={hour}p").unwrap();
            }
            let audio = [r.audio_input.0, r.audio_output.0];
            if audio != [input, output] {
                let [audio_input, audio_output] = audio;
                write!(out, " audio={audio_input}p/{audio_output}p").unwrap();
            }
            writeln!(out).unwrap();
        }
    }
    for budget in &s.budgets.list {
        let models: Vec<_> = budget.models.iter().map(model).collect();
        let calendar = budget.calendar;
        writeln!(
            out,
            "budget {} {} {} a {} at {}min {:?} models={models:?}{}",
            budget.name,
            budget.amount,
            budget.unit.as_str(),
            calendar.every.as_str(),
            calendar.east_min,
            budget.scope,
            apart(budget.whose)
        )
        .unwrap();
    }
    for (workload, group) in s.workloads.iter().zip(&s.budgets.groups) {
        if let Some(group) = group {
            writeln!(out, "{} is in {group}", workload.name).unwrap();
        }
    }
}

fn model(pattern: &ModelPattern) -> String {
    match pattern {
        ModelPattern::Exact(name) => name.to_string(),
        ModelPattern::Prefix(start) => format!("{start}*"),
    }
}

/// A duration the way a person writes it.
fn window(span: Duration) -> String {
    let ms = span.as_millis();
    for (unit_ms, unit) in [
        (86_400_000, "d"),
        (3_600_000, "h"),
        (60_000, "m"),
        (1000, "s"),
    ] {
        if ms > 0 && ms.is_multiple_of(unit_ms) {
            return format!("{}{unit}", ms / unit_ms);
        }
    }
    format!("{ms}ms")
}

/// Whom an amount is for, where it is not for all together.
fn apart(whose: policy::subject::Whose) -> &'static str {
    match whose {
        policy::subject::Whose::Workload => "",
        policy::subject::Whose::Key => " for each key",
        policy::subject::Whose::User => " for each user",
    }
}

fn mcp_rendered(mcp: &policy::mcp::Mcp, s: &policy::snapshot::Snapshot, out: &mut String) {
    let times = [mcp.session, mcp.lists, mcp.within].map(window).join("/");
    let previous = if mcp.previous.is_some() {
        " with the secret before"
    } else {
        ""
    };
    writeln!(out, "mcp {:?} times={times}{previous}", mcp.prefix).unwrap();
    for of in mcp.oauth.iter().flat_map(|oauth| &oauth.resources) {
        writeln!(out, "  oauth {} {}", of.metadata_url, of.metadata).unwrap();
    }
    if mcp.paths.iter().any(|path| **path != *policy::mcp::PATH) {
        let routes = mcp.routes.iter().map(|of| of.path);
        let routes: Vec<u16> = routes.collect();
        writeln!(out, "  paths {:?} of routes {routes:?}", mcp.paths).unwrap();
    }
    for server in &mcp.servers {
        let backend = s.backend(server.backend).unwrap();
        writeln!(out, "  server {} backend={}", server.name, backend.name).unwrap();
        if let Some(described) = &server.described {
            let list = described.list().map(|list| {
                let list: serde_json::Value = serde_json::from_slice(&list).unwrap();
                let tools = list["tools"].as_array().unwrap().clone();
                tools
                    .iter()
                    .map(|of| of["name"].to_string())
                    .collect::<Vec<_>>()
            });
            match list {
                Some(names) => writeln!(out, "    is an API: {}", names.join(" ")).unwrap(),
                None => writeln!(out, "    is an API whose description is fetched").unwrap(),
            }
        }
        shows(&server.shows, out);
        if let Some(pins) = &server.pins {
            let written = pins
                .written
                .as_ref()
                .map(|of| of.keys().collect::<Vec<_>>());
            writeln!(
                out,
                "    pins {:?} {written:?} of {:?}",
                pins.on_change, pins.of
            )
            .unwrap();
        }
    }
    for rule in &mcp.routes {
        let name = &s.route(rule.route).unwrap().name;
        let servers: Vec<_> = mcp.servers_of(rule).map(|server| &*server.name).collect();
        writeln!(out, "  route {name} servers={servers:?}").unwrap();
        shows(&rule.shows, out);
        for globs in &rule.tool_limits {
            let texts: Vec<_> = globs.iter().map(|glob| &*glob.0).collect();
            writeln!(out, "    limits of {texts:?}").unwrap();
        }
    }
}

fn shows(shows: &policy::mcp::Shows, out: &mut String) {
    let kinds = [
        ("tools", &shows.tools),
        ("prompts", &shows.prompts),
        ("resources", &shows.resources),
    ];
    for (kind, of) in kinds {
        if !of.is_all() {
            let texts = |named: &[policy::mcp::Named]| {
                let texts = named.iter().map(|of| match &of.when {
                    Some(policy::mcp::When::Written { text, place }) => {
                        format!("{} when {text} at {place}", of.names.0)
                    }
                    _ => of.names.0.to_string(),
                });
                texts.collect::<Vec<_>>()
            };
            let (allow, deny) = (texts(&of.allow), texts(&of.deny));
            writeln!(out, "    {kind} allow={allow:?} deny={deny:?}").unwrap();
        }
    }
}
