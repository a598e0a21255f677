//! Members of an object, taken by name.
//!
//! Invariant: a member that nobody took is a fault, so that nothing is left out because it was not known.
//! Not here: which members a kind has.

use config::{Entry, Node, Shape, Value, nearest, quoted};

use crate::findings::{Findings, Spot};

/// A value and where it stands.
#[derive(Clone)]
pub(crate) struct Item<'n> {
    pub(crate) node: &'n Node,
    pub(crate) spot: Spot,
}

/// What is written, and where.
#[derive(Debug, Clone)]
pub(crate) struct Said<T> {
    pub(crate) value: T,
    pub(crate) spot: Spot,
}

/// The members of a mapping.
pub(crate) struct Fields<'n> {
    pub(crate) spot: Spot,
    entries: &'n [Entry],
    taken: Vec<&'static str>,
}

impl<'n> Item<'n> {
    /// Its members; none, with a fault, where it is no mapping.
    pub(crate) fn fields(&self, findings: &mut Findings) -> Fields<'n> {
        let entries = match &self.node.value {
            Value::Map(entries) => entries.as_slice(),
            Value::List(_) | Value::Scalar(_) => {
                self.wrong("a mapping", findings);
                &[]
            }
        };
        Fields {
            spot: self.spot.clone(),
            entries,
            taken: Vec::new(),
        }
    }

    pub(crate) fn items(&self, findings: &mut Findings) -> Vec<Item<'n>> {
        let Value::List(items) = &self.node.value else {
            self.wrong("a list", findings);
            return Vec::new();
        };
        let item = |(index, node): (usize, &'n Node)| Item {
            node,
            spot: self.spot.item(index, node.line),
        };
        items.iter().enumerate().map(item).collect()
    }

    pub(crate) fn text(&self, findings: &mut Findings) -> Option<Said<String>> {
        let Value::Scalar(scalar) = &self.node.value else {
            self.wrong("text", findings);
            return None;
        };
        match scalar.shape() {
            Shape::Text => Some(self.said(scalar.raw.clone())),
            Shape::Number | Shape::Boolean | Shape::Nothing => {
                self.wrong("text", findings);
                None
            }
        }
    }

    pub(crate) fn number(&self, findings: &mut Findings) -> Option<Said<u64>> {
        let found = match &self.node.value {
            Value::Scalar(scalar) if scalar.shape() == Shape::Number => scalar.raw.parse().ok(),
            _ => None,
        };
        if found.is_none() {
            self.wrong("a whole number", findings);
        }
        found.map(|n| self.said(n))
    }

    pub(crate) fn flag(&self, findings: &mut Findings) -> Option<Said<bool>> {
        match &self.node.value {
            Value::Scalar(scalar) if scalar.shape() == Shape::Boolean => {
                Some(self.said(scalar.raw.starts_with(['t', 'T'])))
            }
            _ => {
                self.wrong("true or false", findings);
                None
            }
        }
    }

    fn is_false(&self) -> bool {
        matches!(&self.node.value, Value::Scalar(scalar)
            if scalar.shape() == Shape::Boolean && scalar.raw.starts_with(['f', 'F']))
    }

    fn said<T>(&self, value: T) -> Said<T> {
        Said {
            value,
            spot: self.spot.clone(),
        }
    }

    fn wrong(&self, wanted: &str, findings: &mut Findings) {
        findings.fault(
            &self.spot,
            format!("is {}, not {wanted}", self.node.what()),
            "",
        );
    }
}

impl<'n> Fields<'n> {
    /// Of what is not there.
    pub(crate) fn none(spot: Spot) -> Self {
        Self {
            spot,
            entries: &[],
            taken: Vec::new(),
        }
    }

    /// A member; one that is null is none.
    pub(crate) fn take(&mut self, name: &'static str) -> Option<Item<'n>> {
        self.taken.push(name);
        let entry = self.entries.iter().find(|entry| entry.key == name)?;
        if matches!(&entry.node.value, Value::Scalar(s) if s.shape() == Shape::Nothing) {
            return None;
        }
        Some(Item {
            node: &entry.node,
            spot: self.spot.member(name, entry.line),
        })
    }

    /// A member that has to be there.
    pub(crate) fn need(&mut self, name: &'static str, findings: &mut Findings) -> Option<Item<'n>> {
        let found = self.take(name);
        if found.is_none() {
            findings.fault(&self.spot, format!("needs {name}, and has none"), "");
        }
        found
    }

    pub(crate) fn text(
        &mut self,
        name: &'static str,
        findings: &mut Findings,
    ) -> Option<Said<String>> {
        self.take(name)?.text(findings)
    }

    pub(crate) fn needed_text(
        &mut self,
        name: &'static str,
        findings: &mut Findings,
    ) -> Option<Said<String>> {
        self.need(name, findings)?.text(findings)
    }

    pub(crate) fn number(
        &mut self,
        name: &'static str,
        findings: &mut Findings,
    ) -> Option<Said<u64>> {
        self.take(name)?.number(findings)
    }

    pub(crate) fn flag(
        &mut self,
        name: &'static str,
        findings: &mut Findings,
    ) -> Option<Said<bool>> {
        self.take(name)?.flag(findings)
    }

    pub(crate) fn list(&mut self, name: &'static str, findings: &mut Findings) -> Vec<Item<'n>> {
        let found = self.take(name);
        found.map(|item| item.items(findings)).unwrap_or_default()
    }

    pub(crate) fn texts(
        &mut self,
        name: &'static str,
        findings: &mut Findings,
    ) -> Vec<Said<String>> {
        let items = self.list(name, findings);
        items
            .iter()
            .filter_map(|item| item.text(findings))
            .collect()
    }

    /// Members that change what happens, and are not honoured; one that says `false` asks for nothing.
    pub(crate) fn refuse(&mut self, names: &[(&'static str, &str)], findings: &mut Findings) {
        for (name, hint) in names {
            if let Some(item) = self.take(name).filter(|item| !item.is_false()) {
                findings.fault(&item.spot, "is not honoured here", *hint);
            }
        }
    }

    /// Members without which nothing that a client could rely on is different.
    pub(crate) fn pass_over(&mut self, names: &[(&'static str, &str)], findings: &mut Findings) {
        for (name, why) in names {
            if let Some(item) = self.take(name) {
                findings.warn(&item.spot, format!("is left out: {why}"), "");
            }
        }
    }

    /// Members that say nothing to a gate.
    pub(crate) fn skip(&mut self, names: &[&'static str]) {
        self.taken.extend(names);
    }

    /// Whether there is no member but those of these names.
    pub(crate) fn has_only(&self, names: &[&str]) -> bool {
        let is_nothing =
            |node: &Node| matches!(&node.value, Value::Scalar(s) if s.shape() == Shape::Nothing);
        self.entries
            .iter()
            .all(|entry| names.contains(&entry.key.as_str()) || is_nothing(&entry.node))
    }

    /// What nobody took.
    pub(crate) fn end(self, findings: &mut Findings) {
        for entry in self.entries {
            if self.taken.contains(&entry.key.as_str()) {
                continue;
            }
            let hint = match nearest(&entry.key, &self.taken) {
                Some(near) => format!("did you mean {near}?"),
                None => String::new(),
            };
            let says = format!("unknown field {}", quoted(&entry.key));
            let at = Spot {
                line: entry.line,
                ..self.spot.clone()
            };
            findings.fault(&at, says, hint);
        }
    }

    /// All members, by name.
    pub(crate) fn all(&mut self) -> Vec<(&'n str, Item<'n>)> {
        let member = |entry: &'n Entry| {
            let spot = self.spot.member(&entry.key, entry.line);
            (
                entry.key.as_str(),
                Item {
                    node: &entry.node,
                    spot,
                },
            )
        };
        self.entries.iter().map(member).collect()
    }
}
