//! From which namespaces something is let in: routes at a listener, ListenerSets at a Gateway.
//!
//! Not here: what is let in (`listener`, `gateway`).

use crate::cluster::Cluster;
use crate::fields::Item;
use crate::findings::Findings;

/// Those that are let in.
pub(crate) enum Namespaces {
    All,
    Same,
    None,
    /// Those that have these labels.
    Labels(Vec<Wanted>),
}

/// What a label of a namespace has to be.
pub(crate) struct Wanted {
    key: String,
    how: How,
}

pub(crate) enum How {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    IsAbsent,
}

impl Namespaces {
    /// Those that are said; `unless` where nothing is.
    pub(crate) fn of(item: &Item<'_>, unless: Self, findings: &mut Findings) -> Self {
        let mut of = item.fields(findings);
        let from = of.text("from", findings);
        let selector = of.take("selector");
        of.end(findings);
        match from.as_ref().map(|said| said.value.as_str()) {
            Some("All") => Self::All,
            Some("None") => Self::None,
            Some("Same") => Self::Same,
            None => unless,
            Some("Selector") => match selector {
                Some(selector) => Self::Labels(wanted(&selector, findings)),
                None => {
                    let hint = "write selector: { matchLabels: … }";
                    findings.fault(&item.spot, "chooses namespaces by no labels", hint);
                    Self::None
                }
            },
            Some(_) => {
                findings.fault(
                    &item.spot,
                    "chooses namespaces in a way that is not read",
                    "write from: All, Same or Selector",
                );
                Self::None
            }
        }
    }

    /// Whether a namespace is among them; `home` is that of who lets in.
    pub(crate) fn lets_in(&self, cluster: &Cluster<'_>, home: &str, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Same => namespace == home,
            Self::None => false,
            Self::Labels(wanted) => {
                let labels = cluster.labels_of_namespace(namespace);
                wanted.iter().all(|one| one.is_of(&labels))
            }
        }
    }
}

/// What a selector wants of labels.
fn wanted(item: &Item<'_>, findings: &mut Findings) -> Vec<Wanted> {
    let mut of = item.fields(findings);
    let mut all = Vec::new();
    if let Some(labels) = of.take("matchLabels") {
        for (key, item) in labels.fields(findings).all() {
            let value = item.text(findings).map(|said| said.value);
            all.push(Wanted {
                key: key.to_owned(),
                how: How::In(value.into_iter().collect()),
            });
        }
    }
    for item in of.list("matchExpressions", findings) {
        let mut of = item.fields(findings);
        let key = of.needed_text("key", findings);
        let operator = of.needed_text("operator", findings);
        let values = of.texts("values", findings);
        let values: Vec<String> = values.into_iter().map(|said| said.value).collect();
        of.end(findings);
        let (Some(key), Some(operator)) = (key, operator) else {
            continue;
        };
        let how = match operator.value.as_str() {
            "In" => How::In(values),
            "NotIn" => How::NotIn(values),
            "Exists" => How::Exists,
            "DoesNotExist" => How::IsAbsent,
            _ => {
                let hint = "write In, NotIn, Exists or DoesNotExist";
                findings.fault(&operator.spot, "is no operator", hint);
                continue;
            }
        };
        all.push(Wanted {
            key: key.value,
            how,
        });
    }
    of.end(findings);
    all
}

impl Wanted {
    fn is_of(&self, labels: &[(String, String)]) -> bool {
        let mut all = labels.iter();
        let value = all
            .find(|(key, _)| *key == self.key)
            .map(|(_, value)| value);
        match &self.how {
            How::In(values) => value.is_some_and(|value| values.contains(value)),
            How::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            How::Exists => value.is_some(),
            How::IsAbsent => value.is_none(),
        }
    }
}
