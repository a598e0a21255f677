//! Rules about tools in a configuration of agentgateway's, as far as they say no more than names.
//!
//! Invariant: whoever could not use a tool there cannot use it here: a rule that says more than names leaves nothing open.
//! Not here: what else keeps callers out (`doors`).

use super::super::read::{Given, Section, given, scalar};
use super::Plan;
use crate::decode::{Findings, Place};
use crate::node::{Node, Value};

/// Who may use which tools, as far as rules say no more than their names.
#[derive(Default)]
pub(super) struct Rules {
    allow: Vec<String>,
    deny: Vec<String>,
    /// Some rule is not carried over.
    is_less: bool,
    pub(super) are_any: bool,
}

impl Rules {
    /// Those of a policy. Rules there allow what any of them allows, and all that no rule allows is refused.
    pub(super) fn of(policies: &Section<'_>, plan: &mut Plan, findings: &mut Findings) -> Self {
        let mut rules = Self::default();
        let section = policies.section("mcpAuthorization", findings);
        for (nth, node) in section.list("rules").iter().enumerate() {
            let place = Place::new(format!("{}.rules[{nth}]", section.place.path), node.line);
            let (kind, text) = match &node.value {
                Value::Map(entries) => match entries.first() {
                    Some(entry) => (entry.key.as_str(), text_of(&entry.node)),
                    None => continue,
                },
                _ => ("allow", text_of(node)),
            };
            rules.are_any = true;
            let named = text.as_deref().and_then(named);
            match (kind, named) {
                ("allow", Some(names)) => rules.allow.extend(names),
                ("deny", Some(names)) => rules.deny.extend(names),
                _ => {
                    rules.is_less = true;
                    let says = "says more than names of tools: write it as a rule of `authority`, whose `method` is tools/call and whose `path` is the whole name";
                    plan.comment(&place, says);
                    let says = "is not taken over, and what it allows is refused until it is";
                    findings.warn(
                        &place,
                        says,
                        "docs/authority.md says how such a rule is written",
                    );
                }
            }
        }
        if rules.are_any && section.entries().all(|entry| entry.key == "rules") {
            plan.rules.push(section.place.path.clone());
        }
        rules
    }

    /// What a server says of them.
    pub(super) fn says(&self, has_tools_alone: bool) -> Vec<String> {
        if !self.are_any {
            return Vec::new();
        }
        let list = |names: &[String]| {
            let names: Vec<String> = names.iter().map(|name| scalar(name)).collect();
            format!("[{}]", names.join(", "))
        };
        let tools = match (self.is_less, self.allow.is_empty(), self.deny.is_empty()) {
            // A rule that is not carried over may deny or demand something of what others allow.
            (true, _, _) => return Self::closed(has_tools_alone),
            // Rules that deny alone leave the rest open.
            (false, true, _) => return vec![format!("tools: {{ deny: {} }}", list(&self.deny))],
            (false, false, true) => format!("tools: {{ allow: {} }}", list(&self.allow)),
            (false, false, false) => format!(
                "tools: {{ allow: {}, deny: {} }}",
                list(&self.allow),
                list(&self.deny)
            ),
        };
        let mut says = Self::closed(has_tools_alone);
        says[0] = tools;
        says
    }

    /// What a server says that shows nothing.
    pub(super) fn closed(has_tools_alone: bool) -> Vec<String> {
        let kinds = ["tools", "prompts", "resources"];
        let kinds = kinds.into_iter().take(if has_tools_alone { 1 } else { 3 });
        kinds
            .map(|kind| format!("{kind}: {{ deny: \"*\" }}"))
            .collect()
    }
}

/// The names of tools that a rule is about, where it is about nothing else.
fn named(rule: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for part in rule.split("||") {
        let part = part.trim();
        let rest = part.strip_prefix("mcp.tool.name")?.trim_start();
        let plain = |quoted: &str| {
            let quoted = quoted.trim();
            let quote = quoted.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            let inner = quoted.strip_prefix(quote)?.strip_suffix(quote)?;
            let is_fine = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
            (!inner.is_empty() && inner.chars().all(is_fine)).then(|| inner.to_owned())
        };
        match (rest.strip_prefix("=="), rest.strip_prefix("in ")) {
            (Some(name), _) => names.push(plain(name)?),
            (None, Some(list)) => {
                let list = list.trim().strip_prefix('[')?.strip_suffix(']')?;
                for name in list.split(',') {
                    names.push(plain(name)?);
                }
            }
            (None, None) => return None,
        }
    }
    Some(names)
}

pub(super) fn text_of(node: &Node) -> Option<String> {
    match given(node)? {
        Given::Text(text) => Some(text),
        Given::Variable(_) => None,
    }
}
