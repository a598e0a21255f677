//! Names with a `*`: which models a route takes for them.
//!
//! The gate sends a name on as it came, or another one in its place; it takes no prefix off. So `openai/*` becomes the names by
//! which that provider's models are told, and a provider whose models are not told by names waits for a list.

use super::deployment::Deployment;
use super::provider;

/// What becomes of a name with a `*`.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Passed {
    /// A route with these patterns; none for all models.
    AsWritten(Vec<String>),
    /// A route with the provider's own names, which have no prefix.
    WithoutPrefix(Vec<String>),
    /// All of them are one model.
    One,
    /// Somebody has to list the models.
    ToBeListed,
}

pub(super) fn passed(deployment: &Deployment) -> Passed {
    let (group, upstream) = (&deployment.group, &deployment.upstream);
    let Some(upstream_start) = upstream.strip_suffix('*') else {
        return Passed::One;
    };
    let start = group.strip_suffix('*').unwrap_or(group);
    if start == upstream_start {
        let all = start.is_empty();
        return Passed::AsWritten(if all { Vec::new() } else { vec![group.clone()] });
    }
    let own = provider::models(deployment.provider);
    if upstream_start.is_empty() && !deployment.is_elsewhere && !own.is_empty() {
        return Passed::WithoutPrefix(own.iter().map(|it| (*it).to_owned()).collect());
    }
    Passed::ToBeListed
}

/// The name upstream of a model that a pattern takes; `None` where it takes it not.
pub(super) fn upstream_of(model: &str, deployment: &Deployment) -> Option<String> {
    let start = deployment.group.strip_suffix('*')?;
    let rest = model.strip_prefix(start)?;
    Some(match deployment.upstream.strip_suffix('*') {
        Some(upstream) => format!("{upstream}{rest}"),
        None => deployment.upstream.clone(),
    })
}

/// Whether what a pattern takes is taken by an earlier one.
pub(super) fn is_taken(pattern: &str, earlier: &[String]) -> bool {
    earlier
        .iter()
        .any(|earlier| match earlier.strip_suffix('*') {
            Some(start) => pattern.trim_end_matches('*').starts_with(start),
            None => earlier == pattern,
        })
}
