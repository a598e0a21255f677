//! `${VAR}` in values.
//!
//! Values are filled in after the YAML is read, so what a variable holds can never become
//! structure. `${VAR:-default}` stands in for a variable that is unset or empty; `$$` is a `$`.
//! Not here: where variables come from ([`crate::Sources`]).

use crate::decode::Place;
use crate::fault::Fault;
use crate::node::{Filled, Node, Scalar, Value};
use crate::sources::Sources;

/// Fills in every value below `node`; keys are left alone.
pub(crate) fn fill(node: &mut Node, path: &str, sources: &dyn Sources, faults: &mut Vec<Fault>) {
    match &mut node.value {
        Value::Scalar(scalar) => {
            if let Err((says, hint)) = fill_scalar(scalar, sources) {
                scalar.filled = Filled::Faulty;
                let place = Place::new(path, node.line);
                faults.push(place.fault(says, hint));
            }
        }
        Value::List(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                fill(item, &format!("{path}[{index}]"), sources, faults);
            }
        }
        Value::Map(entries) => {
            for entry in entries {
                fill(
                    &mut entry.node,
                    &crate::decode::child(path, &entry.key),
                    sources,
                    faults,
                );
            }
        }
    }
}

fn fill_scalar(scalar: &mut Scalar, sources: &dyn Sources) -> Result<(), (String, String)> {
    if !scalar.raw.contains('$') {
        return Ok(());
    }
    let (mut text, mut filled) = (String::new(), Filled::No);
    let mut rest = scalar.raw.as_str();
    while let Some((before, after)) = rest.split_once('$') {
        text.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            text.push('$');
            rest = after;
        } else if let Some(after) = after.strip_prefix('{') {
            let Some((inside, after)) = after.split_once('}') else {
                return Err(("`${` is never closed".into(), "write ${NAME}".into()));
            };
            text.push_str(&value_of(inside, sources)?);
            filled = Filled::Yes;
            rest = after;
        } else {
            let says = "a lone `$` means nothing here".into();
            return Err((says, "write ${NAME} for a variable or $$ for a `$`".into()));
        }
    }
    text.push_str(rest);
    (scalar.text, scalar.filled) = (text, filled);
    Ok(())
}

fn value_of(inside: &str, sources: &dyn Sources) -> Result<String, (String, String)> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    if !is_name(name) {
        // What it is may be a secret in the wrong brackets.
        let says = "what stands after `${` is not the name of a variable".into();
        return Err((says, "write ${NAME} or ${NAME:-default}".into()));
    }
    match (sources.var(name), default) {
        (Some(value), _) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (Some(empty), None) => Ok(empty),
        (None, None) => {
            let hint = format!("set {name}, or write ${{{name}:-default}}");
            Err((format!("the variable {name} is not set"), hint))
        }
    }
}

/// Letters, digits and `_`, not starting with a digit.
pub(crate) fn is_name(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name.bytes().next().is_some_and(|b| !b.is_ascii_digit())
        && name.len() <= 256
}
