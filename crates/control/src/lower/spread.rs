//! How a rule's targets share its calls: by priority, or drawn by weight.
//!
//! Targets of one priority are one backend as a rule, whose endpoints have their weights. Pools have somebody who picks within them, and what is
//! faulty has its share of calls refused: each of these is a backend of its own then, and a call goes to the one that is drawn.
//! Not here: single targets (`service`), how several are one backend (`backends`).

use super::routes::Made;
use crate::backends::Manner;
use crate::findings::Findings;
use crate::refs::Ref;

/// Backends of a route.
pub(super) struct Spread {
    pub(super) backends: Vec<String>,
    /// One for each, where one is drawn; else they are in order.
    pub(super) weights: Vec<u64>,
}

impl Made<'_> {
    /// The backends of a rule.
    pub(super) fn spread(
        &mut self,
        refs: &[Ref],
        manner: &Manner,
        findings: &mut Findings,
    ) -> Option<Spread> {
        let has_calls = |of: &&Ref| of.weight > 0 && (of.is_closed || of.has_address());
        let called: Vec<&Ref> = refs.iter().filter(has_calls).collect();
        let is_alone = |of: &Ref| of.is_closed || of.target.balancing.is_some();
        if called.len() < 2 && !called.iter().any(|of| of.is_closed)
            || !called.iter().any(|of| is_alone(of))
        {
            let backends = self.tiers(refs, manner, findings)?;
            return Some(Spread {
                backends,
                weights: Vec::new(),
            });
        }
        let mut spread = Spread {
            backends: Vec::new(),
            weights: Vec::new(),
        };
        let (alone, together): (Vec<&Ref>, Vec<&Ref>) =
            called.into_iter().partition(|of| is_alone(of));
        if !together.is_empty() {
            let name = self.backends.add(&together, manner, findings)?;
            spread.add(name, together.iter().map(|of| of.weight).sum());
        }
        for of in alone {
            let name = match of.is_closed {
                true => self.backends.closed(of.target.dialect.is_none(), &of.spot),
                false => self.backends.add(&[of], manner, findings)?,
            };
            spread.add(name, of.weight);
        }
        if spread.backends.len() == 1 {
            spread.weights.clear();
        }
        Some(spread)
    }

    /// A backend for each priority.
    pub(super) fn tiers(
        &mut self,
        refs: &[Ref],
        manner: &Manner,
        findings: &mut Findings,
    ) -> Option<Vec<String>> {
        let has_address = |of: &&Ref| of.weight > 0 && of.has_address();
        if let Some(of) = refs.iter().find(|of| of.weight > 0)
            && !refs.iter().any(|of| has_address(&of))
        {
            // No endpoint of any of them is ready.
            let is_plain = of.target.dialect.is_none();
            return Some(vec![self.backends.unready(is_plain, &of.spot)]);
        }
        let mut priorities: Vec<u64> = refs
            .iter()
            .filter(has_address)
            .map(|of| of.priority)
            .collect();
        priorities.sort_unstable();
        priorities.dedup();
        let mut names = Vec::new();
        for priority in priorities {
            let of_it: Vec<&Ref> = refs
                .iter()
                .filter(|of| has_address(of) && of.priority == priority)
                .collect();
            let name = self.backends.add(&of_it, manner, findings)?;
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.is_empty()
            && let Some(of) = refs.first()
        {
            findings.fault(
                &of.spot,
                "gets no calls: every target has the weight 0",
                "give one another weight",
            );
        }
        (!names.is_empty()).then_some(names)
    }
}

impl Spread {
    fn add(&mut self, backend: String, weight: u64) {
        match self.backends.iter().position(|name| *name == backend) {
            Some(at) => {
                if let Some(known) = self.weights.get_mut(at) {
                    *known += weight;
                }
            }
            None => {
                self.backends.push(backend);
                self.weights.push(weight);
            }
        }
    }
}
