//! `authorization` of an MCPRoute: rules of which the first that fits decides, as a selection of our document.
//!
//! Where all rules do the same, and the opposite is done otherwise, each is an entry of its own; else all are one condition.
//! Invariant: what a rule cannot decide, because a claim or an argument is not as it expects, allows nothing.

use crate::fields::{Item, Said};
use crate::findings::{Findings, Spot};
use crate::tree::Tree;

use super::request::{is_closed, quoted, translated};

/// A rule: for which tools, and when.
struct Rule {
    allows: bool,
    /// By whole names; all where there is none.
    tools: Vec<String>,
    conditions: Vec<String>,
    spot: Spot,
}

/// Which tools callers may call, by whole names; nothing where all may call all.
pub(super) fn tools(
    item: &Item<'_>,
    servers: &[&str],
    has_tokens: bool,
    findings: &mut Findings,
) -> Option<Tree> {
    let mut of = item.fields(findings);
    let default = of.text("defaultAction", findings);
    let default = allows(default.as_ref(), false, findings);
    let rules = of.list("rules", findings);
    let rules: Vec<Rule> = rules
        .iter()
        .filter_map(|item| rule(item, servers, has_tokens, findings))
        .collect();
    of.end(findings);
    let entries = |rules: &[Rule]| Tree::List(rules.iter().flat_map(Rule::entries).collect());
    let (allow, deny) = if rules.iter().all(|rule| rule.allows == default) {
        if default {
            findings.warn(&item.spot, "keeps nobody from anything", "");
            return None;
        }
        (None, Some(Tree::text("*")))
    } else if rules.iter().all(|rule| rule.allows) {
        (Some(entries(&rules)), None)
    } else if rules.iter().all(|rule| !rule.allows) {
        (None, Some(entries(&rules)))
    } else {
        let last = default.to_string();
        let all = rules.iter().rev().fold(last, |rest, rule| {
            format!("{} ? {} : ({rest})", rule.whole(), rule.allows)
        });
        let members = [
            ("name", Some(Tree::text("*"))),
            ("when", Some(Tree::text(all))),
        ];
        (Some(Tree::map(members)), None)
    };
    Some(Tree::map([("allow", allow), ("deny", deny)]).of(&item.spot))
}

impl Rule {
    /// As entries of a selection.
    fn entries(&self) -> Vec<Tree> {
        if self.conditions.is_empty() && !self.tools.is_empty() {
            let names = self.tools.iter();
            return names.map(|name| Tree::text(name).of(&self.spot)).collect();
        }
        let names = match self.tools.as_slice() {
            [] => Tree::text("*"),
            some => Tree::texts(some),
        };
        if self.conditions.is_empty() {
            return vec![names.of(&self.spot)];
        }
        let when = Tree::text(self.conditions.join(" && "));
        let members = [("name", Some(names)), ("when", Some(when))];
        vec![Tree::map(members).of(&self.spot)]
    }

    /// As one condition, with its names.
    fn whole(&self) -> String {
        let names: Vec<String> = self.tools.iter().map(|name| quoted(name)).collect();
        let names = (!names.is_empty()).then(|| format!("path in [{}]", names.join(", ")));
        let all: Vec<String> = names.into_iter().chain(self.conditions.clone()).collect();
        match all.as_slice() {
            [] => "true".to_owned(),
            some => format!("({})", some.join(" && ")),
        }
    }
}

fn allows(said: Option<&Said<String>>, unless: bool, findings: &mut Findings) -> bool {
    match said.map(|said| (said.value.as_str(), said)) {
        None => unless,
        Some(("Allow", _)) => true,
        Some(("Deny", _)) => false,
        Some((_, said)) => {
            findings.fault(&said.spot, "is no action", "write Allow or Deny");
            false
        }
    }
}

fn rule(
    item: &Item<'_>,
    servers: &[&str],
    has_tokens: bool,
    findings: &mut Findings,
) -> Option<Rule> {
    let before = findings.faults.len();
    let mut of = item.fields(findings);
    let action = of.text("action", findings);
    let mut rule = Rule {
        allows: allows(action.as_ref(), true, findings),
        tools: Vec::new(),
        conditions: Vec::new(),
        spot: item.spot.clone(),
    };
    if let Some(item) = of.take("target") {
        let mut inside = item.fields(findings);
        let tools = inside.list("tools", findings);
        inside.end(findings);
        if tools.is_empty() {
            findings.fault(
                &item.spot,
                "names no tool",
                "write tools, or leave target out",
            );
        }
        for item in tools {
            rule.tools.extend(tool(&item, servers, findings));
        }
    }
    if let Some(item) = of.take("source") {
        let mut inside = item.fields(findings);
        let token = inside.need("jwt", findings);
        inside.end(findings);
        if let Some(item) = token {
            if !has_tokens {
                let says = "asks what a token says, and the route takes none";
                findings.fault(&item.spot, says, "write oauth in its securityPolicy");
            }
            rule.conditions.extend(token_says(&item, findings));
        }
    }
    if let Some(said) = of
        .text("cel", findings)
        .filter(|of| !of.value.trim().is_empty())
    {
        match translated(said.value.trim()) {
            Ok(cel) if is_closed(&cel) => rule.conditions.push(format!("({cel})")),
            Ok(_) => {
                let says = "has a bracket that nothing closes, or that closes nothing";
                findings.fault(
                    &said.spot,
                    says,
                    "close each bracket in the condition itself",
                );
            }
            Err(fact) => {
                let says = format!(
                    "looks at {}, which conditions do not know here",
                    config::quoted(&fact)
                );
                let hint = "they know request.mcp.tool, .backend, .method and .params.arguments, request.auth.jwt.claims and .scopes";
                findings.fault(&said.spot, says, hint);
            }
        }
    }
    of.end(findings);
    // One with a fault decides nothing: without what is wrong in it, it would decide more.
    (findings.faults.len() == before).then_some(rule)
}

/// The whole name of a tool.
fn tool(item: &Item<'_>, servers: &[&str], findings: &mut Findings) -> Option<String> {
    let mut of = item.fields(findings);
    let backend = of.needed_text("backend", findings);
    let tool = of.needed_text("tool", findings);
    of.end(findings);
    let (backend, tool) = (backend?, tool?);
    if !servers.contains(&backend.value.as_str()) {
        let says = format!(
            "names {}, which is none of the route's backendRefs",
            config::quoted(&backend.value)
        );
        let hint = match config::nearest(&backend.value, servers) {
            Some(near) => format!("did you mean {near}?"),
            None => String::new(),
        };
        findings.fault(&backend.spot, says, hint);
        return None;
    }
    if tool.value.is_empty() || tool.value.contains('*') {
        let says = "is the name of one tool, and none has a * in its name";
        findings.fault(
            &tool.spot,
            says,
            "leave target out for all tools, and write cel",
        );
        return None;
    }
    Some(format!("{}__{}", backend.value, tool.value))
}

/// What a token has to say.
fn token_says(item: &Item<'_>, findings: &mut Findings) -> Vec<String> {
    let mut of = item.fields(findings);
    let scopes = of.texts("scopes", findings);
    let claims = of.list("claims", findings);
    of.end(findings);
    if scopes.is_empty() && claims.is_empty() {
        findings.fault(
            &item.spot,
            "asks nothing of a token",
            "write scopes or claims",
        );
    }
    let scopes = scopes.iter();
    let mut all: Vec<String> = scopes
        .map(|said| format!("{} in scopes", quoted(&said.value)))
        .collect();
    all.extend(claims.iter().filter_map(|item| claim(item, findings)));
    all
}

fn claim(item: &Item<'_>, findings: &mut Findings) -> Option<String> {
    let mut of = item.fields(findings);
    let name = of.needed_text("name", findings);
    let kind = of.text("valueType", findings);
    let values = of.texts("values", findings);
    of.end(findings);
    let name = name?;
    if name.value == "scope" {
        findings.fault(&name.spot, "is what scopes say", "write scopes");
        return None;
    }
    if values.is_empty() {
        findings.fault(&item.spot, "says no value", "write values");
        return None;
    }
    let values: Vec<String> = values.iter().map(|said| quoted(&said.value)).collect();
    let values = format!("[{}]", values.join(", "));
    let mut of = "claims".to_owned();
    let mut conditions = Vec::new();
    for part in name.value.split('.') {
        conditions.push(format!("{} in {of}", quoted(part)));
        of = format!("{of}[{}]", quoted(part));
    }
    conditions.push(
        match kind.as_ref().map_or("String", |said| said.value.as_str()) {
            "String" => format!("{of} in {values}"),
            "StringArray" => format!("({of} in {values} || {of}.exists(one, one in {values}))"),
            _ => {
                if let Some(kind) = &kind {
                    findings.fault(
                        &kind.spot,
                        "is no type of a claim",
                        "write String or StringArray",
                    );
                }
                return None;
            }
        },
    );
    Some(conditions.join(" && "))
}
